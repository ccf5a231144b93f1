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

local function event(job, kind, reason)
  redis.call('XADD', key.events(job.id), 'MAXLEN', EVENTS_MAX, '*', 'at', stamp(NOW), 'kind', kind,
    'attempt', job.attempt, 'worker', job.worker, 'reason', reason)
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
  local keys = { key.job(job.id), key.events(job.id), key.aliases(job.id), key.delivered(job.id) }
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

-- Where a job of an active state waits: sorted set and score.
local PLACE = {
  pending = function(job) return key.backlog(job.queue), job.start_tag end,
  held = function(job) return key.held(), job.not_before end,
  queued = function(job) return key.published(job.queue), job.queued_at end,
  running = function(job) return key.running(), job.lease_until end,
}

local function leave(job)
  if PLACE[job.state] then
    redis.call('ZREM', (PLACE[job.state](job)), job.id)
  end
  redis.call('ZREM', key.jobs_state(job.state), job.id)
end

local function enter(job)
  if PLACE[job.state] then
    local set_name, score = PLACE[job.state](job)
    redis.call('ZADD', set_name, score, job.id)
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

-- Tickets for the front of a backlog, up to its queue's quota: {id, ticket, format, id, ticket, format ...}.
local function release(queue)
  local quota = num(redis.call('HGET', key.quotas(), queue) or '0')
  local free = quota - redis.call('ZCARD', key.published(queue))
  local looked, tickets = 0, {}
  while free > 0 and looked < RELEASE_MAX do
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
      move(job, 'queued', 'released', '', { ticket = plus(job.ticket, 1), queued_at = stamp(NOW) })
      tickets[#tickets + 1] = id
      tickets[#tickets + 1] = job.ticket
      tickets[#tickets + 1] = job.format
      free = free - 1
    end
    looked = looked + 1
  end
  return tickets
end

-- Fields of the newest attempt when it begins (claim) or is found again (renew).
local function begin(job, attempt, token, worker, lease_s)
  local changes = {
    attempt = attempt, token = token, worker = worker, claimed_at = stamp(NOW), order = '',
    lease_until = stamp(NOW + lease_s),
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

