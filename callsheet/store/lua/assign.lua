-- job:{id}  hash  PENDING, QUEUED or parked HELD -> QUEUED under a new ticket, in a worker's direct queue
-- backlog:{queue} | published:{queue} | held  zset  left         published:{direct}  zset  entered         queues  set
--
-- job:{victim}  hash  order = yield
--
-- args: id, direct queue, reason, number of its last ticket as the caller saw it ('' = any), id of the victim
-- ('' = none), attempt of the victim.
-- Answers {ticket, format}, or {} and nothing changed: the job is in none of these states or overdue, has another
-- ticket by now, or the victim does not run that attempt without an order.

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
local parked = job and job.state == 'held' and filled(job.build)
if not job or not (parked or job.state == 'pending' or job.state == 'queued') or overdue(job) then
  return answer({})
end
if filled(arg(4)) and job.ticket ~= arg(4) then
  return answer({})
end
if filled(arg(5)) then
  local victim = read(arg(5))
  if not victim or victim.state ~= 'running' or victim.attempt ~= arg(6) or filled(victim.order) then
    return answer({})
  end
  set(victim, { order = 'yield' })
  event(victim, 'ordered', arg(3))
end
if job.state == 'queued' then
  move(job, 'pending', 'recalled', arg(3), {})
end
redis.call('SADD', key.queues(), arg(2))
move(job, 'queued', 'assigned', arg(3), { ticket = plus(job.ticket, 1), queued_at = stamp(NOW), home = arg(2) })
take_turn(job)
return answer({ job.ticket, job.format })
