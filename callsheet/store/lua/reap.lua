-- running  zset  those whose lease ran out leave
-- job:{id} hash  RUNNING -> PENDING (crashes + 1), or FAILED at the last crash
--
-- args: max_crashes, limit. Answers the ids.

local memo = recall()
if memo then
  return memo
end

local function or_unknown(text)
  return (text and text ~= '') and text or '?'
end

local function evidence(job, crashes)
  return string.format(LOST_TEXT, or_unknown(job.worker), job.attempt, job.step or '0', job.steps,
    or_unknown(job.phase), crashes)
end

local lost = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', key.running(), '-inf', stamp(NOW), 'LIMIT', 0, arg(2))) do
  local job = read(id)
  if not job then
    redis.call('ZREM', key.running(), id)
  else
    local changes = { crashes = plus(job.crashes, 1) }
    if num(changes.crashes) >= num(arg(1)) then
      changes.error_type, changes.error = 'JobFailed', evidence(job, changes.crashes)
      move(job, 'failed', 'failed', 'lease ran out', changes)
    else
      move(job, 'pending', 'lost', 'lease ran out', changes)
    end
    lost[#lost + 1] = id
  end
end
return answer(lost)
