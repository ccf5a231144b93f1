-- job:{id}     hash  deliver_token, deliver_until
-- undelivered  set   read; a member without a record leaves
--
-- args: id, token, busy_s. Answers {"1"} or {"0"} (another delivers it, or nothing waits to be delivered).

local job = read(arg(1))
if not job then
  redis.call('SREM', key.undelivered(), arg(1))
  return { '0' }
end
local waits = redis.call('SISMEMBER', key.undelivered(), job.id) == 1
if not waits or (job.deliver_token ~= arg(2) and num(job.deliver_until) > NOW) then
  return { '0' }
end
set(job, { deliver_token = arg(2), deliver_until = stamp(NOW + num(arg(3))) })
return { '1' }
