-- plans  list  the newest plans, each [at, plan] (JSON)
--
-- args: plan (JSON). Answers {}.

local memo = recall()
if memo then
  return memo
end

redis.call('RPUSH', key.plans(), cjson.encode({ stamp(NOW), arg(1) }))
redis.call('LTRIM', key.plans(), -PLANS_MAX, -1)
redis.call('EXPIRE', key.plans(), PLANS_TTL_S)
return answer({})
