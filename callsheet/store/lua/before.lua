-- queues  set  read        works  hash  read        backlog:{queue}  zset  counted up to a place
--
-- args: tier, place. Answers {queue, jobs, work_s ...} of the tier's backlogs that hold jobs before that place. Their
-- work is that of the whole backlog, by their number.

local found = {}
for _, queue in ipairs(redis.call('SMEMBERS', key.queues())) do
  if string.match(queue, '^[^.]+') == arg(1) then
    local jobs = redis.call('ZCOUNT', key.backlog(queue), '-inf', '(' .. arg(2))
    if jobs > 0 then
      local work = num(redis.call('HGET', key.works(), queue) or '0')
      found[#found + 1] = queue
      found[#found + 1] = string.format('%d', jobs)
      found[#found + 1] = stamp(work * jobs / redis.call('ZCARD', key.backlog(queue)))
    end
  end
end
return found
