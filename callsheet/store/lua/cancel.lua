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
  move(job, 'cancelled', 'cancelled', arg(2), {
    error_type = 'JobCancelled',
    error = string.format(CANCELLED_TEXT, arg(2)),
  })
end
return answer({ job.state })
