-- job:{id}:delivered  set  grows; expires with the record
--
-- args: id, part. Answers {}. Without a record there is nothing to mark.

if redis.call('EXISTS', key.job(arg(1))) == 0 then
  return {}
end
redis.call('SADD', key.delivered(arg(1)), arg(2))
local left = redis.call('PTTL', key.job(arg(1)))
if left > 0 then
  redis.call('PEXPIRE', key.delivered(arg(1)), left)
end
return {}
