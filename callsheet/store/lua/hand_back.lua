-- job:{id}  hash  RUNNING -> PENDING, preemptions + 1
-- running   zset  left         backlog:{queue}  zset  entered at the old start tag
--
-- args: id, attempt, token, reason, gpu_s wasted. Answers {"1"} or {"0"} (fenced, nothing written).

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
if not owns(job, arg(2), arg(3)) then
  return answer({ '0' })
end
move(job, 'pending', 'handed-back', arg(4), {
  preemptions = plus(job.preemptions, 1),
  gpu_s_wasted = stamp(num(job.gpu_s_wasted) + num(arg(5))),
})
return answer({ '1' })
