-- memory:{name}  string  what a controller keeps for its next tick (JSON)
--
-- args: name, JSON. Answers {}.

local memo = recall()
if memo then
  return memo
end

redis.call('SET', key.memory(arg(1)), arg(2), 'EX', MEMORY_TTL_S)
return answer({})
