-- job:{id}         hash  gpu_class, queue of a PENDING or HELD job
-- backlog:{queue}  zset  out of one, into the other at the same start tag         queues  set  grows
--
-- args: id, gpu_class, queue. Answers {"1"} or {"0"} (it is in neither state).

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
if not job or (job.state ~= 'pending' and job.state ~= 'held') then
  return answer({ '0' })
end
leave(job)
local before = job.queue
set(job, { gpu_class = arg(2), queue = arg(3) })
enter(job)
redis.call('SADD', key.queues(), job.queue)
event(job, 'rerouted', before .. ' -> ' .. job.queue)
return answer({ '1' })
