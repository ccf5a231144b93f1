-- quotas             hash  tickets that may be out per queue
-- backlog:{queue}    zset  front leaves
-- published:{queue}  zset  grows
--
-- args: queue. Answers {id, ticket, format, id, ticket, format ...}: tickets to publish.

local memo = recall()
if memo then
  return memo
end

local queue = arg(1)
local quota = num(redis.call('HGET', key.quotas(), queue) or '0')
local free = quota - redis.call('ZCARD', key.published(queue))
local looked, tickets = 0, {}
while free > 0 and looked < RELEASE_MAX do
  local id = redis.call('ZRANGE', key.backlog(queue), 0, 0)[1]
  if not id then
    break
  end
  local job = read(id)
  if not job then
    redis.call('ZREM', key.backlog(queue), id)
  elseif overdue(job) then
    expire(job)
  else
    move(job, 'queued', 'released', '', { ticket = plus(job.ticket, 1), queued_at = stamp(NOW) })
    tickets[#tickets + 1] = id
    tickets[#tickets + 1] = job.ticket
    tickets[#tickets + 1] = job.format
    free = free - 1
  end
  looked = looked + 1
end
return answer(tickets)
