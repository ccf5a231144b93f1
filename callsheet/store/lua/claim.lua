-- job:{id}           hash  attempt + 1, RUNNING, fence, lease
-- published:{queue}  zset  left         running  zset  entered         deadlines  zset  left
--
-- args: id, ticket, format, worker, token, lease_s.
-- Answers {"refused", reason} or {"lease", field, value ...} with the record after the claim.
-- The token is its own op: who runs the job under this token has its first answer in the record.

local id, ticket, format, worker, token, lease_s = arg(1), arg(2), num(arg(3)), arg(4), arg(5), num(arg(6))
local REASONS = { running = 'held-by-other', expired = 'expired' }

local function refused(reason)
  return { 'refused', reason }
end

local function lease()
  return { 'lease', unpack(redis.call('HGETALL', key.job(id))) }
end

if format > FORMAT then
  return refused('unknown-format')
end
local job = read(id)
if not job then
  return refused('unknown-job')
end
if num(job.format) > FORMAT then
  return refused('unknown-format')
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
if overdue(job) then
  expire(job)
  return refused('expired')
end
move(job, 'running', 'claimed', '', begin(job, plus(job.attempt, 1), token, worker, lease_s))
return lease()
