-- held       zset  those whose not_before has come leave: HELD -> PENDING
-- deadlines  zset  those that have not started in time leave: -> EXPIRED
--
-- args: limit (of each). Answers the queues that received jobs.

local memo = recall()
if memo then
  return memo
end

-- Call what is due in one sorted set; drop members without a record.
local function each_due(zset, visit)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', zset, '-inf', stamp(NOW), 'LIMIT', 0, arg(1))) do
    local job = read(id)
    if job then
      visit(job)
    else
      redis.call('ZREM', zset, id)
    end
  end
end

local queues, seen = {}, {}
each_due(key.deadlines(), expire)
each_due(key.held(), function(job)
  move(job, 'pending', 'woken', '', {})
  if not seen[job.queue] then
    seen[job.queue] = true
    queues[#queues + 1] = job.queue
  end
end)
return answer(queues)
