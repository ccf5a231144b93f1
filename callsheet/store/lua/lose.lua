-- job:{id} hash  RUNNING -> PENDING or HELD (crashes + 1), or FAILED at the last crash; running  zset  left
--
-- args: id, attempt, token, reason, max_crashes. Answers {"1"} or {"0"} (fenced, nothing written).

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
if not owns(job, arg(2), arg(3)) then
  return answer({ '0' })
end
lose(job, arg(5), arg(4))
return answer({ '1' })
