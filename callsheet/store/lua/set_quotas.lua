-- quotas  hash  replaced
--
-- args: queue, quota, queue, quota ... Answers {}.

local memo = recall()
if memo then
  return memo
end

redis.call('DEL', key.quotas())
for i = 5, #ARGV, 2 do
  redis.call('HSET', key.quotas(), ARGV[i], ARGV[i + 1])
end
return answer({})
