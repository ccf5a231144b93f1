-- leads                   hash    read        tenant:{tier}:{tenant}  string  read
--
-- args: tier, tenant as it stands in keys. Answers {virtual time of the tier, virtual time of the tenant's next turn}.

local virtual = NOW + num(redis.call('HGET', key.leads(), arg(1)) or '0')
local turn = math.max(virtual, num(redis.call('GET', key.tenant(arg(1), arg(2))) or '0'))
return { stamp(virtual), stamp(turn) }
