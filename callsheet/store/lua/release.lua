-- quotas             hash  tickets that may be out per queue
-- backlog:{queue}    zset  front leaves
-- published:{queue}  zset  grows
--
-- args: queue. Answers {id, ticket, format, id, ticket, format ...}: tickets to publish.

local memo = recall()
if memo then
  return memo
end

return answer(release(arg(1)))
