-- job:{id}  hash  order taken back: the attempt goes on
--
-- args: id, attempt, token, reason. Answers {"1"} or {"0"} (fenced, nothing written).

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
if not owns(job, arg(2), arg(3)) then
  return answer({ '0' })
end
set(job, { order = '' })
event(job, 'declined', arg(4))
return answer({ '1' })
