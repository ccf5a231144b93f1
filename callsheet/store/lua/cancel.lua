-- job:{id}  hash  any active state -> CANCELLED         undelivered  set  entered
--
-- args: name (id or alias), reason. Answers {state now}, or {} for an unknown name.

local memo = recall()
if memo then
  return memo
end

local job = resolve(arg(1))
if not job then
  return {}
end
if not TERMINAL[job.state] then
  local changes = { error_type = 'JobCancelled', error = string.format(CANCELLED_TEXT, arg(2)) }
  if job.state == 'running' then
    close(job, 'cancelled', arg(2), told(job), job.step or '0', changes)
  end
  move(job, 'cancelled', 'cancelled', arg(2), changes)
end
return answer({ job.state })
