-- gpus  set  names; the dead leave         desired  hash  their wishes too         gpu:{name}  hash  read
--
-- Answers {{name, {field, value ...}}, ...}.

local alive = {}
for _, name in ipairs(redis.call('SMEMBERS', key.gpus())) do
  local gpu = redis.call('HGETALL', key.gpu(name))
  if #gpu == 0 then
    redis.call('SREM', key.gpus(), name)
    redis.call('HDEL', key.desired(), name)
  else
    alive[#alive + 1] = { name, gpu }
  end
end
return alive
