-- job:{id}  hash  SUCCEEDED or FAILED, with TTL from now on (so its side keys)
-- running   zset  left         undelivered  set  entered         ended  zset  entered
--
-- args: id, attempt, token, state, step, gpu_s useful, wasted, loading, then field, value ... of the outcome.
-- Answers {"1"} or {"0"} (fenced, nothing written).

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
if not owns(job, arg(2), arg(3)) then
  return answer({ '0' })
end
local changes = {}
for i = 13, #ARGV, 2 do
  changes[ARGV[i]] = ARGV[i + 1]
end
if arg(4) == 'succeeded' then  -- its objects go
  changes.checkpoint, changes.checkpoint_before, changes.checkpoint_step, changes.build = '', '', '0', ''
end
local spent = { useful = num(arg(6)), wasted = num(arg(7)), loading = num(arg(8)) }
close(job, arg(4), changes.error_type or '', spent, num(arg(5)) > 0 and arg(5) or job.step or '0', changes)
move(job, arg(4), arg(4), changes.error_type or '', changes)
return answer({ '1' })
