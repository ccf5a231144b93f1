-- published:{queue}  zset  those with an old ticket leave
-- job:{id}           hash  QUEUED -> PENDING (or HELD) at the old start tag
--
-- args: queue, older_s, limit, reason. Answers the ids.

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
    move(job, waiting_state(job), 'healed', arg(4), {})
    healed[#healed + 1] = id
  end
end
return answer(healed)
