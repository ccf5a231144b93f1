-- job:{id}           hash  from_step, step, exact; at step 0 the kept steps are given up
-- job:{id}:attempts  hash  their useful seconds become wasted then
--
-- args: id, attempt, token, step, exact ("1" or ""), reason. Answers {"1"} or {"0"} (fenced, nothing written).

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
if not owns(job, arg(2), arg(3)) then
  return answer({ '0' })
end
local step = num(arg(4))
local changes = { from_step = arg(4), step = arg(4) }
if step == 0 then
  give_up_steps(job, changes)
else
  if step < num(job.checkpoint_step) then
    changes.checkpoint, changes.checkpoint_before = job.checkpoint_before or '', ''
    changes.checkpoint_step = arg(4)
  end
  if arg(5) ~= '1' then
    changes.exact = '0'
  end
end
set(job, changes)
event(job, step == 0 and 'restarted' or 'resumed', arg(6))
return answer({ '1' })
