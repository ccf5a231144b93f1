-- gpu:{name}:order  hash  replaced         gpu_orders  set  grows
--
-- args: name, then field, value ... of the order; none lifts it. Answers {}.

local memo = recall()
if memo then
  return memo
end

local name = key.gpu_order(arg(1))
redis.call('DEL', name)
if #ARGV == 5 then
  redis.call('SREM', key.gpu_orders(), arg(1))
  return answer({})
end
redis.call('HSET', name, 'since', stamp(NOW))
for i = 6, #ARGV, 2 do
  redis.call('HSET', name, ARGV[i], ARGV[i + 1])
end
redis.call('SADD', key.gpu_orders(), arg(1))
return answer({})
