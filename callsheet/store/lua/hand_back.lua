-- job:{id}  hash  RUNNING -> PENDING (or HELD for a worker of its build)
-- running   zset  left         backlog:{queue} | held  zset  entered, at the old start tag
--
-- args: id, attempt, token, reason, gpu_s useful, wasted, loading, preempted ("1" or "").
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
if arg(8) == '1' then
  changes.preemptions = plus(job.preemptions, 1)
end
local spent = { useful = num(arg(5)), wasted = num(arg(6)), loading = num(arg(7)) }
close(job, 'handed-back', arg(4), spent, job.checkpoint_step or '0', changes)
move(job, waiting_state(job), 'handed-back', arg(4), changes)
return answer({ '1' })
