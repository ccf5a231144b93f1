-- job:{id} and all that lives as long as it  lose their TTL
-- job:{id}            hash  FAILED or CANCELLED -> PENDING, without its error
-- job:{id}:delivered  set   result and links are to be delivered anew; a chord that was counted stays counted
-- ended               zset  left         undelivered  set  left         backlog:{queue}  zset  entered
--
-- args: id, from_start ("1" or ""), reason, the request without its deadline (JSON).
-- Answers {"requeued" | "kept", state now}, {} for an unknown id.

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
if not job then
  return {}
end
if (job.state ~= 'failed' and job.state ~= 'cancelled') or job.erased == '1' then
  return answer({ 'kept', job.state })
end
for _, name in ipairs(keys_of(job)) do
  redis.call('PERSIST', name)
end
redis.call('ZREM', key.ended(), cjson.encode({ job.id, job.tenant_tag }))
redis.call('SREM', key.undelivered(), job.id)
for _, part in ipairs(redis.call('SMEMBERS', key.delivered(job.id))) do
  if string.sub(part, -#CHORD_PART) ~= CHORD_PART then
    redis.call('SREM', key.delivered(job.id), part)
  end
end
local changes = {
  error_type = '', error = '', ended_at = '0', crashes = '0', delivered = '0', deliver_token = '',
  deliver_until = '0', deadline = '0', request = arg(4),
}
local from_start = arg(2) == '1'
if from_start then
  give_up_steps(job, changes)
end
move(job, from_start and 'pending' or waiting_state(job), 'requeued', arg(3), changes)
return answer({ 'requeued', job.state })
