-- jobs:{state}  zset  counted, after the jobs past retention left         ended  zset  who they are
--
-- Answers {state, count, state, count ...}.

for _ = 1, 100 do
  if trim() < TRIM_MAX then
    break
  end
end
local counts = {}
for state in pairs(TRANSITIONS) do
  counts[#counts + 1] = state
  counts[#counts + 1] = string.format('%d', redis.call('ZCARD', key.jobs_state(state)))
end
return counts
