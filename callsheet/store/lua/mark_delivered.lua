-- undelivered  set   left         job:{id}  hash  delivered, delivery unlocked         job:{id}:aliases  hash  read
--
-- args: id, token, then the names that were served. Answers {"1"}, or {"0"} when the job has not ended or a name of
-- it was not served (it stays undelivered and locked).

local id, token = arg(1), arg(2)
local job = read(id)
if not job then
  redis.call('SREM', key.undelivered(), id)
  return { '1' }
end
local served = {}
for i = 7, #ARGV do
  served[ARGV[i]] = true
end
if not TERMINAL[job.state] or not served[id] then
  return { '0' }
end
for _, name in ipairs(redis.call('HKEYS', key.aliases(id))) do
  if not served[name] then
    return { '0' }
  end
end
redis.call('SREM', key.undelivered(), id)
set(job, { delivered = '1' })
if job.deliver_token == token then
  set(job, { deliver_token = '', deliver_until = '0' })
end
return { '1' }
