-- running  zset  those whose lease ran out leave
-- job:{id} hash  RUNNING -> PENDING or HELD (crashes + 1), or FAILED at the last crash
-- witness  string  read and set
--
-- args: max_crashes, limit, lease_s, gap_s. Answers the ids.
--
-- While the store is away nobody can renew. So when it has not answered anybody for gap_s, each lease that ran out
-- is extended by a whole one. Twice at most, so that a store which is asked seldom still reaps.

local memo = recall()
if memo then
  return memo
end

local before = redis.call('GET', key.witness())
local gap = before and NOW - num(before) > num(arg(4))
witness()

local function extend(job)
  set(job, { lease_until = stamp(NOW + num(arg(3))), extended = plus(job.extended, 1) })
  redis.call('ZADD', key.running(), job.lease_until, job.id)
end

if gap then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key.running(), '-inf', stamp(NOW + num(arg(3))))) do
    local job = read(id)
    if job and num(job.extended) < EXTENDED_MAX then
      extend(job)
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
