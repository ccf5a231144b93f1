-- job:{id}  hash  order, for its running attempt
--
-- args: id, attempt, order, reason. Answers {"1"} or {"0"} (that attempt does not run).

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
if not job or job.state ~= 'running' or job.attempt ~= arg(2) then
  return answer({ '0' })
end
set(job, { order = arg(3) })
event(job, 'ordered', arg(4))
return answer({ '1' })
