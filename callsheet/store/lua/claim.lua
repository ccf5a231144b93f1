-- job:{id}           hash  attempt + 1, RUNNING, fence, lease; or back into its backlog
-- published:{queue}  zset  left         running  zset  entered         deadlines  zset  left
-- gpu:{name}:order   hash  read: a cordoned worker takes nothing         losses  hash  read
--
-- args: id, ticket, format, worker, token, lease_s, build.
-- Answers {"refused", reason} or {"lease", mean seconds between two losses, field, value ...} with the record after
-- the claim. The token is its own op: who runs the job under this token has its first answer in the record, who was
-- turned away in the usual memory.

local id, ticket, format, worker, token, lease_s = arg(1), arg(2), num(arg(3)), arg(4), arg(5), num(arg(6))
local build = arg(7)
local REASONS = { running = 'held-by-other', expired = 'expired' }

local function refused(reason)
  return { 'refused', reason }
end

-- Crashes seen over GPU-seconds seen, beginning with a guess.
local function mean_s_between_losses()
  local seen = redis.call('HMGET', key.losses(), 'crashes', 'gpu_s')
  return stamp((GUESSED_GPU_S + num(seen[2] or '0')) / (1 + num(seen[1] or '0')))
end

local function lease()
  return { 'lease', mean_s_between_losses(), unpack(redis.call('HGETALL', key.job(id))) }
end

local memo = recall()
if memo then
  return memo
end
witness()
local job = read(id)

-- The ticket is left to a newer worker and goes round until one takes it. Meanwhile it is listed under a name of its
-- own, so that it takes no place of its queue's quota: two such jobs would hold up all others. It is healed from there
-- as from any queue. A ticket that lost its meaning goes round no more, whatever its format.
local function leave_to_newer()
  leave(job)
  set(job, { home = PASSED .. job.queue })
  redis.call('SADD', key.queues(), job.home)
  enter(job)
  return refused('unknown-format')
end

if not job then
  return refused('unknown-job')
end
if job.ticket ~= ticket then
  return refused('stale-ticket')
end
if job.state == 'running' and job.token == token then
  return lease()
end
if job.state ~= 'queued' then
  return refused(REASONS[job.state] or 'not-queued')
end
if format > FORMAT or num(job.format) > FORMAT or num(job.checkpoint_format) > CHECKPOINT_FORMAT then
  return leave_to_newer()
end
if overdue(job) then
  expire(job)
  return refused('expired')
end
local action = redis.call('HGET', key.gpu_order(worker), 'action')
if action then
  move(job, 'pending', 'returned', worker .. ' is ' .. action, {})
  return answer(refused('cordoned'))
end
if filled(job.build) and job.build ~= build then
  move(job, 'held', 'held', 'waits for a worker of build ' .. job.build, {})
  return answer(refused('other-build'))
end
move(job, 'running', 'claimed', '', begin(job, plus(job.attempt, 1), token, worker, lease_s))
return lease()
