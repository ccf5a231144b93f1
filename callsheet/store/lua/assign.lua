-- job:{id}  hash  PENDING, QUEUED or parked HELD -> QUEUED under a new ticket, in a worker's direct queue
-- backlog:{queue} | published:{queue} | held  zset  left         published:{direct}  zset  entered         queues  set
--
-- args: id, direct queue, reason. Answers {ticket, format}, or {} (the job is in none of these states, or overdue).

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
local parked = job and job.state == 'held' and filled(job.build)
if not job or not (parked or job.state == 'pending' or job.state == 'queued') or overdue(job) then
  return answer({})
end
if job.state == 'queued' then
  move(job, 'pending', 'recalled', arg(3), {})
end
redis.call('SADD', key.queues(), arg(2))
move(job, 'queued', 'assigned', arg(3), { ticket = plus(job.ticket, 1), queued_at = stamp(NOW), home = arg(2) })
take_turn(job)
return answer({ job.ticket, job.format })
