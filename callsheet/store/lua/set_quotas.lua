-- quotas  hash  replaced         routes  hash  replaced
--
-- args: how many quotas, then queue, quota ..., then backlog, queues (JSON) ... Answers {}.

local memo = recall()
if memo then
  return memo
end

redis.call('DEL', key.quotas(), key.routes())
local last = 5 + 2 * num(arg(1))
for i = 6, #ARGV, 2 do
  redis.call('HSET', i <= last and key.quotas() or key.routes(), ARGV[i], ARGV[i + 1])
end
return answer({})
