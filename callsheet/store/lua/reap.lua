-- running  zset  those whose lease ran out leave
-- job:{id} hash  RUNNING -> PENDING or HELD (crashes + 1), or FAILED at the last crash
-- witness  string  read and set         away  hash  gap_s set, returned read
--
-- args: max_crashes, limit, lease_s, gap_s. Answers the ids.
--
-- While the store is away nobody can renew. So when it had not answered anybody for gap_s, no lease ends before a whole
-- one has passed since it came back, whoever it was that it answered first. Twice in a row at most for one attempt, so
-- that a store which is asked seldom still reaps.

local memo = recall()
if memo then
  return memo
end

redis.call('HSET', key.away(), 'gap_s', arg(4))
witness()

local returned = redis.call('HGET', key.away(), 'returned')
local safe_until = returned and num(returned) + num(arg(3)) or 0
if safe_until > NOW then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key.running(), '-inf', '(' .. stamp(safe_until))) do
    local job = read(id)
    if job and num(job.extended) < EXTENDED_MAX then
      set(job, { lease_until = stamp(safe_until), extended = plus(job.extended, 1) })
      redis.call('ZADD', key.running(), job.lease_until, job.id)
    end
  end
end

local lost = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', key.running(), '-inf', stamp(NOW), 'LIMIT', 0, arg(2))) do
  local job = read(id)
  if not job then
    redis.call('ZREM', key.running(), id)
  else
    lose(job, arg(1), 'lease ran out')
    lost[#lost + 1] = id
  end
end
return answer(lost)
