-- quotas             hash  tickets that may be out per queue
-- backlog:{queue}    zset  front leaves
-- published:{queue}  zset  grows
-- routes             hash  queues that tickets of a backlog go to (JSON)
-- leads              hash  virtual time of a tier ahead of the clock
--
-- args: queue. Answers {id, ticket, format, queue, id ...}: tickets to publish.

local memo = recall()
if memo then
  return memo
end

return answer(release(arg(1)))
