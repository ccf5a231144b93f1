-- Comes before every script, after a generated header (scripts.py) that defines
--   PATTERNS   the keys of keys.py: name -> pattern
--   TRANSITIONS, TERMINAL   the table of records/states.py: state -> "state state ..."
--   OP_TTL_MS, EVENTS_MAX, TRIM_MAX ... and the texts of rules.py
--
-- ARGV[1] prefix   ARGV[2] time instead of the server's (tests; "" = TIME)   ARGV[3] retention in seconds
-- ARGV[4] op ("" = the verb needs none)   ARGV[5] ...  the script's own arguments, arg(1) ...
--
-- A job is a Lua table of its hash's fields (strings) and its id. Keys are built here, not declared in KEYS:
-- one server (or a primary with replicas) holds them all.

local PREFIX, RETENTION_S, OP = ARGV[1], tonumber(ARGV[3]), ARGV[4]

-- key.<name>(...): a key below the prefix. Made on first use, since every run begins anew.
local key = setmetatable({}, {
  __index = function(made, name)
    local pattern = PATTERNS[name]
    made[name] = function(...)
      return PREFIX .. string.format(pattern, ...)
    end
    return made[name]
  end,
})

local function arg(i)
  return ARGV[4 + i]
end

local function time()
  if ARGV[2] ~= '' then
    return tonumber(ARGV[2])
  end
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(t[2]) / 1000000
end

local NOW = time()

-- Six digits: tostring() would cut a time to a tenth of a millisecond.
local function stamp(seconds)
  return string.format('%.6f', seconds)
end

local function num(text)
  return tonumber(text or '0')
end

local function plus(text, more)
  return string.format('%d', num(text) + more)
end

-- The first answer to this op, or nil. Answers are arrays of strings.
local function recall()
  local memo = OP ~= '' and redis.call('GET', key.op(OP))
  return memo and cjson.decode(memo) or nil
end

local function answer(array)
  if OP ~= '' then
    redis.call('SET', key.op(OP), cjson.encode(array), 'PX', OP_TTL_MS)
  end
  return array
end

local function read(id)
  local flat = redis.call('HGETALL', key.job(id))
  if #flat == 0 then
    return nil
  end
  local job = { id = id }
  for i = 1, #flat, 2 do
    job[flat[i]] = flat[i + 1]
  end
  return job
end

-- Like read; an alias finds its job.
local function resolve(name)
  local job = read(name)
  if job then
    return job
  end
  local id = redis.call('GET', key.alias(name))
  return id and read(id) or nil
end

local function set(job, changes)
  local flat = {}
  for field, value in pairs(changes) do
    job[field] = value
    flat[#flat + 1] = field
    flat[#flat + 1] = value
  end
  redis.call('HSET', key.job(job.id), unpack(flat))
end

-- The store has answered. A silence before it that is longer than the reaper allows was an absence, in which nobody
-- could renew. Whoever comes first ends the silence, so that it is noted here and not only by the reaper (reap.lua).
local function witness()
  local before = redis.call('GET', key.witness())
  local gap_s = redis.call('HGET', key.away(), 'gap_s')
  if before and gap_s and NOW - num(before) > num(gap_s) then
    redis.call('HSET', key.away(), 'returned', stamp(NOW))
  end
  redis.call('SET', key.witness(), stamp(NOW))
end

-- A history that is full loses the oldest behind its first ones: how a job began stays known.
local function event(job, kind, reason)
  local name = key.events(job.id)
  redis.call('XADD', name, '*', 'at', stamp(NOW), 'kind', kind,
    'attempt', job.attempt, 'worker', job.worker, 'reason', reason)
  if redis.call('XLEN', name) > EVENTS_MAX then
    redis.call('XDEL', name, redis.call('XRANGE', name, '-', '+', 'COUNT', EVENTS_FIRST + 1)[EVENTS_FIRST + 1][1])
  end
end

-- Take jobs past their retention out of the indexes; answers how many.
local function trim()
  local past = redis.call('ZRANGEBYSCORE', key.ended(), '-inf', stamp(NOW - RETENTION_S), 'LIMIT', 0, TRIM_MAX)
  for _, member in ipairs(past) do
    local entry = cjson.decode(member)
    redis.call('ZREM', key.jobs_all(), entry[1])
    redis.call('ZREM', key.jobs_tenant(entry[2]), entry[1])
    for state in pairs(TERMINAL) do
      redis.call('ZREM', key.jobs_state(state), entry[1])
    end
    redis.call('SREM', key.undelivered(), entry[1])
    redis.call('ZREM', key.ended(), member)
  end
  return #past
end

-- The record and all that lives as long as it.
local function keys_of(job)
  local keys = {
    key.job(job.id), key.events(job.id), key.attempts(job.id), key.aliases(job.id), key.delivered(job.id),
  }
  if job.idem then
    keys[#keys + 1] = key.idem(job.tenant_tag, job.idem)
  end
  for _, name in ipairs(redis.call('HKEYS', key.aliases(job.id))) do
    keys[#keys + 1] = key.alias(name)
  end
  return keys
end

local function retire(job)
  for _, name in ipairs(keys_of(job)) do
    redis.call('PEXPIRE', name, math.floor(RETENTION_S * 1000))
  end
  redis.call('SADD', key.undelivered(), job.id)
  redis.call('ZADD', key.ended(), job.ended_at, cjson.encode({ job.id, job.tenant_tag }))
  trim()
end

local function filled(text)
  return text and text ~= ''
end

-- Where a job of an active state waits: sorted set and score. A held job that waits for a worker of its build
-- waits without an end; `assign` sends it there.
local PLACE = {
  pending = function(job) return key.backlog(job.queue), job.start_tag end,
  held = function(job) return key.held(), filled(job.build) and '+inf' or job.not_before end,
  queued = function(job) return key.published(filled(job.home) and job.home or job.queue), job.queued_at end,
  running = function(job) return key.running(), job.lease_until end,
}

local function leave(job)
  if PLACE[job.state] then
    redis.call('ZREM', (PLACE[job.state](job)), job.id)
  end
  if job.state == 'pending' and job.work_s then
    if redis.call('ZCARD', key.backlog(job.queue)) == 0 then
      redis.call('HDEL', key.works(), job.queue)  -- what rounding, or an older version's worker, left ends here
    else
      redis.call('HINCRBYFLOAT', key.works(), job.queue, '-' .. job.work_s)
    end
  end
  redis.call('ZREM', key.jobs_state(job.state), job.id)
end

local function enter(job)
  if PLACE[job.state] then
    local set_name, score = PLACE[job.state](job)
    redis.call('ZADD', set_name, score, job.id)
  end
  if job.state == 'pending' and job.work_s then
    redis.call('HINCRBYFLOAT', key.works(), job.queue, job.work_s)
  end
  redis.call('ZADD', key.jobs_state(job.state), job.created_at, job.id)
end

-- The only way from one state to another.
local function move(job, to, kind, reason, changes)
  if not string.find(TRANSITIONS[job.state], to, 1, true) then
    error('callsheet: no transition ' .. job.state .. ' -> ' .. to .. ' of job ' .. job.id)
  end
  leave(job)
  if job.state == 'running' then
    changes.phase, changes.order, changes.lease_until = '', '', '0'
  elseif job.state == 'queued' and to ~= 'running' then
    changes.home = ''
  end
  changes.state = to
  if TERMINAL[to] then
    changes.ended_at = stamp(NOW)
  end
  set(job, changes)
  enter(job)
  event(job, kind, reason)
  if (to == 'running' or TERMINAL[to]) and num(job.deadline) > 0 then
    redis.call('ZREM', key.deadlines(), job.id)
  end
  if TERMINAL[to] then
    retire(job)
  end
end

-- Whether it should have started by now.
local function overdue(job)
  local deadline = num(job.deadline)
  return deadline > 0 and deadline <= NOW and num(job.started_at) == 0
end

local function expire(job)
  move(job, 'expired', 'expired', 'deadline passed', { error_type = 'JobExpired', error = EXPIRED_TEXT })
end

-- The tenant's turn that a job took is over: virtual time of its tier is at least there, and never goes back.
local function take_turn(job)
  local tier = string.match(job.queue, '^[^.]+')
  local ahead = num(job.fair_tag) - math.max(NOW, num(job.created_at))  -- a clock may step back
  if ahead > num(redis.call('HGET', key.leads(), tier) or '0') then
    redis.call('HSET', key.leads(), tier, stamp(ahead))
  end
end

-- Queues with room for a ticket of this backlog, once for each ticket, in the order of its route.
local function places(backlog)
  local route = redis.call('HGET', key.routes(), backlog)
  local found = {}
  for _, queue in ipairs(route and cjson.decode(route) or { backlog }) do
    local quota = num(redis.call('HGET', key.quotas(), queue) or '0')
    for _ = 1, quota - redis.call('ZCARD', key.published(queue)) do
      found[#found + 1] = queue
    end
  end
  return found
end

-- Tickets for the front of a backlog, up to the quotas of its queues: {id, ticket, format, queue, id ...}.
local function release(queue)
  local room = places(queue)
  local looked, taken, tickets = 0, 0, {}
  while taken < #room and looked < RELEASE_MAX do
    local id = redis.call('ZRANGE', key.backlog(queue), 0, 0)[1]
    if not id then
      break
    end
    local job = read(id)
    if not job then
      redis.call('ZREM', key.backlog(queue), id)
    elseif overdue(job) then
      expire(job)
    else
      taken = taken + 1
      local home = room[taken] ~= queue and room[taken] or ''
      if home ~= '' then
        redis.call('SADD', key.queues(), home)
      end
      move(job, 'queued', 'released', home, { ticket = plus(job.ticket, 1), queued_at = stamp(NOW), home = home })
      take_turn(job)
      tickets[#tickets + 1] = id
      tickets[#tickets + 1] = job.ticket
      tickets[#tickets + 1] = job.format
      tickets[#tickets + 1] = room[taken]
    end
    looked = looked + 1
  end
  return tickets
end

-- GPU-seconds of the running attempt as far as renewals and checkpoints told: useful, wasted, loading.
local function told(job)
  local useful, loading = num(job.run_useful), num(job.run_loading)
  local ran = num(job.renewed_at) - num(job.claimed_at)
  return { useful = useful, wasted = math.max(ran - useful - loading, 0), loading = loading }
end

-- The running attempt ends: its row is written and its GPU-seconds join the sums in `changes`.
local function close(job, how, reason, spent, kept_step, changes)
  for kind, seconds in pairs(spent) do
    changes['gpu_s_' .. kind] = stamp(num(job['gpu_s_' .. kind]) + seconds)
  end
  changes.step = kept_step
  redis.call('HSET', key.attempts(job.id), job.attempt, cjson.encode({
    worker = job.worker, claimed_at = job.claimed_at, ended_at = stamp(NOW), ['end'] = how, reason = reason,
    from_step = job.from_step or '0', to_step = kept_step,
    useful = stamp(spent.useful), wasted = stamp(spent.wasted), loading = stamp(spent.loading),
  }))
end

-- Attempt number -> row, of the attempts that have ended.
local function rows(job)
  local flat, found = redis.call('HGETALL', key.attempts(job.id)), {}
  for i = 1, #flat, 2 do
    found[flat[i]] = cjson.decode(flat[i + 1])
  end
  return found
end

-- Begin at step 0 again: what was kept is wasted.
local function give_up_steps(job, changes)
  changes.checkpoint, changes.checkpoint_before, changes.checkpoint_step, changes.build = '', '', '0', ''
  changes.checkpoint_format, changes.step, changes.exact = '0', '0', '1'
  changes.restarts = plus(job.restarts, filled(job.checkpoint) and 1 or 0)
  changes.gpu_s_wasted = stamp(num(job.gpu_s_wasted) + num(job.gpu_s_useful))
  changes.gpu_s_useful = stamp(0)
  for number, row in pairs(rows(job)) do
    row.wasted, row.useful = stamp(num(row.wasted) + num(row.useful)), stamp(0)
    redis.call('HSET', key.attempts(job.id), number, cjson.encode(row))
  end
end

-- Where a job waits between two attempts: for the worker that resumes it bit for bit, or in its backlog.
local function waiting_state(job)
  return filled(job.build) and 'held' or 'pending'
end

-- A RUNNING job whose worker is gone: back to wait, or FAILED at the last crash.
local function lose(job, max_crashes, reason)
  local function known(text)
    return filled(text) and text or '?'
  end
  local crashes = plus(job.crashes, 1)
  local changes = { crashes = crashes }
  local evidence = string.format(LOST_TEXT, known(job.worker), job.attempt, job.step or '0', job.steps,
    known(job.phase), crashes)
  close(job, 'lost', reason, told(job), job.checkpoint_step or '0', changes)
  redis.call('HINCRBY', key.losses(), 'crashes', 1)
  if num(crashes) >= num(max_crashes) then
    changes.error_type, changes.error = 'JobFailed', evidence
    move(job, 'failed', 'failed', reason, changes)
  else
    move(job, waiting_state(job), 'lost', reason, changes)
  end
end

-- Fields of the newest attempt when it begins (claim) or is found again (renew).
local function begin(job, attempt, token, worker, lease_s)
  local changes = {
    attempt = attempt, token = token, worker = worker, claimed_at = stamp(NOW), order = '', home = '',
    lease_until = stamp(NOW + lease_s), renewed_at = stamp(NOW), stepped_at = stamp(NOW), extended = '0',
    run_useful = '0', run_loading = '0', from_step = '0', step_s = '0',
  }
  if num(job.started_at) == 0 then
    changes.started_at = stamp(NOW)
  end
  return changes
end

-- Whether this attempt owns the job.
local function owns(job, attempt, token)
  return job and job.state == 'running' and job.attempt == attempt and job.token == token
end

