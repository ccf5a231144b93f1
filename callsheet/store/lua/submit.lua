-- job:{id}             hash    written
-- idem:{tenant}:{key}  hash    read, written
-- alias:{name}         string  read, written      job:{first}:aliases  hash  written when alias
-- urgent               string  set
-- tenant:{tier}:{tenant}  string  virtual time of its next turn         leads  hash  read         offered  hash  grows
-- backlog:{queue} | held, deadlines, jobs:*, queues  written      undelivered  set  marked again for an alias
--
-- With release also what release.lua writes, for the job's queue.
--
-- args: id, alias ("1" or ""), release ("1" or ""), urgent ("1" or ""), then field, value ... of the record.
-- Answers {"created" | "known" | "conflict", id, urgent}, then the tickets as release.lua does; urgent is "1" when no
-- look of the controllers was asked for yet (``urgent``). The record keeps its op: that is the memory for a repeat,
-- beside the usual one when tickets were answered.

local id, alias, releasing = arg(1), arg(2) == '1', arg(3) == '1'
local memo = (releasing or arg(4) == '1') and recall()
if memo then
  return memo
end

local job = { id = id, state = 'pending', attempt = '0', ticket = '0', worker = '', token = '', op = OP }
for i = 9, #ARGV, 2 do
  job[ARGV[i]] = ARGV[i + 1]
end

-- The outcome goes to one more name, with links of its own.
local function add_name(first)
  redis.call('SET', key.alias(id), first.id)
  redis.call('HSET', key.aliases(first.id), id, job.canvas or '{}')
  event(first, 'aliased', id)
  local left = redis.call('PTTL', key.job(first.id))
  if left > 0 then
    redis.call('PEXPIRE', key.alias(id), left)
    redis.call('PEXPIRE', key.aliases(first.id), left)
    redis.call('SADD', key.undelivered(), first.id)
    redis.call('HSET', key.job(first.id), 'delivered', '0')
  end
end

local first = resolve(id)
local named = first ~= nil
if not first and job.idem then
  local known = redis.call('HGET', key.idem(job.tenant_tag, job.idem), 'job_id')
  first = known and read(known)
end
if first and first.op == OP then
  return { 'created', first.id, '' }
elseif first then
  if first.body_hash ~= job.body_hash then
    return { 'conflict', first.id, '' }
  end
  if alias and not named then
    add_name(first)
  end
  return { 'known', first.id, '' }
end

-- Strictly later than any job before it, so that order of arrival is a total order.
local newest = num(redis.call('ZREVRANGE', key.jobs_all(), 0, 0, 'WITHSCORES')[2])
job.created_at = stamp(math.max(NOW, newest + 0.000001))

-- The tenant's turn: virtual time of its tier now, or the end of its turns before, whichever is later.
local tier = string.match(job.queue, '^[^.]+')
local turns = key.tenant(tier, job.tenant_tag)
local turn = math.max(num(job.created_at) + num(redis.call('HGET', key.leads(), tier) or '0'), num(redis.call('GET', turns) or '0'))
job.fair_tag = stamp(turn)
job.start_tag = stamp(turn + num(job.delay_s))
redis.call('SET', turns, stamp(turn + num(job.charge_s)), 'EX', TURNS_TTL_S)
redis.call('HINCRBYFLOAT', key.offered(), job.queue, job.work_s or '0')
job.delay_s, job.charge_s = nil, nil

if num(job.not_before) > NOW then
  job.state = 'held'
end
local flat = {}
for field, value in pairs(job) do
  if field ~= 'id' then
    flat[#flat + 1] = field
    flat[#flat + 1] = value
  end
end
redis.call('HSET', key.job(id), unpack(flat))
if job.idem then
  redis.call('HSET', key.idem(job.tenant_tag, job.idem), 'job_id', id, 'body_hash', job.body_hash)
end
if num(job.deadline) > 0 then
  redis.call('ZADD', key.deadlines(), job.deadline, id)
end
redis.call('SADD', key.queues(), job.queue)
redis.call('ZADD', key.jobs_all(), job.created_at, id)
redis.call('ZADD', key.jobs_tenant(job.tenant_tag), job.created_at, id)
enter(job)
event(job, 'submitted', '')
local tickets = releasing and job.state == 'pending' and release(job.queue) or {}

-- Whether this is the first to ask for a look of the controllers.
local function asks()
  if arg(4) ~= '1' or job.state == 'held' or num(redis.call('GET', key.urgent()) or '0') > NOW then
    return false
  end
  redis.call('SET', key.urgent(), stamp(NOW + URGENT_TTL_MS / 1000), 'PX', URGENT_TTL_MS)
  return true
end

local urgent = asks()
local created = { 'created', id, urgent and '1' or '', unpack(tickets) }
return (#tickets > 0 or urgent) and answer(created) or created
