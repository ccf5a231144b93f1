-- published:{queue}  zset  those with an old ticket leave
-- job:{id}           hash  QUEUED -> PENDING at the old start tag
--
-- args: queue, older_s, limit. Answers the ids.

local memo = recall()
if memo then
  return memo
end

local published = key.published(arg(1))
local healed = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', published, '-inf', stamp(NOW - num(arg(2))), 'LIMIT', 0, arg(3))) do
  local job = read(id)
  if not job then
    redis.call('ZREM', published, id)
  else
    move(job, 'pending', 'healed', 'its ticket was lost', {})
    healed[#healed + 1] = id
  end
end
return answer(healed)
