-- gpu:{name}  hash  replaced, expires after ttl_s         gpus  set  grows
--
-- args: name, ttl_s, then field, value ... Answers {}.

local name = key.gpu(arg(1))
redis.call('DEL', name)
redis.call('HSET', name, 'seen_at', stamp(NOW))
for i = 7, #ARGV, 2 do
  redis.call('HSET', name, ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', name, math.floor(num(arg(2)) * 1000))
redis.call('SADD', key.gpus(), arg(1))
return {}
