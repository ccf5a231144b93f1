-- job:{id}  hash  lease_until, step, steps, phase, step_s, stepped_at         running  zset  lease end         witness  string  set
--
-- args: id, attempt, token, lease_s, step, steps, phase, loading GPU-seconds so far, worker, step_s.
-- Answers {order}: "", "cancel", "yield" or "fenced".
--
-- A fail-over may lose the newest writes, a claim among them. The record then shows a lower attempt than the one
-- that renews; `claim` alone gives attempts out, so a higher attempt proves the loss. While the record is PENDING or
-- QUEUED nobody owns the job, and the first to renew adopts it: from then on the record carries its attempt and token,
-- and every other holder (same attempt with another token, or another attempt) is fenced. An attempt that was
-- reaped or handed back still has its number in the record and is never adopted.

local id, attempt, token, lease_s = arg(1), arg(2), arg(3), num(arg(4))
local progress = { step = arg(5), steps = arg(6), phase = arg(7), run_loading = arg(8), step_s = arg(10) }

witness()
local job = read(id)
if not job then
  return { 'fenced' }
end

local function write(changes)
  for field, value in pairs(progress) do
    changes[field] = value
  end
  return changes
end

if job.attempt == attempt and job.token == token then
  if job.state == 'cancelled' then
    return { 'cancel' }
  elseif job.state ~= 'running' then
    return { 'fenced' }
  end
  redis.call('HINCRBYFLOAT', key.losses(), 'gpu_s', stamp(NOW - num(job.renewed_at)))
  if (job.step or '0') ~= progress.step or (job.phase or '') ~= progress.phase then
    progress.stepped_at = stamp(NOW)
  end
  set(job, write({ lease_until = stamp(NOW + lease_s), renewed_at = stamp(NOW), extended = '0' }))
  redis.call('ZADD', key.running(), job.lease_until, id)
  return { job.order or '' }
end

local free = job.state == 'pending' or job.state == 'queued'
if not free or num(attempt) <= num(job.attempt) then
  return { 'fenced' }
end
if job.state == 'pending' then
  move(job, 'queued', 'released', 'adopted', { queued_at = stamp(NOW) })
end
move(job, 'running', 'adopted', 'its claim was lost', write(begin(job, attempt, token, arg(9), lease_s)))
return { '' }
