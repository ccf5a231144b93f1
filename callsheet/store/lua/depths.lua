-- queues  set  every queue name         backlog:{queue} | published:{queue}  zset  counted
--
-- args: "backlog" or "published". Answers {queue, count ...} of those that hold something.

local depths = {}
for _, queue in ipairs(redis.call('SMEMBERS', key.queues())) do
  local depth = redis.call('ZCARD', key[arg(1)](queue))
  if depth > 0 then
    depths[#depths + 1] = queue
    depths[#depths + 1] = string.format('%d', depth)
  end
end
return depths
