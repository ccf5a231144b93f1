-- job:{id}  hash  of an ended job: without prompt, film and checkpoints         erasing  zset  entered
--
-- args: id, the request without its prompt (JSON). Answers {"1"}, {"0"} (it has not ended), {} (unknown).

local memo = recall()
if memo then
  return memo
end

local job = read(arg(1))
if not job then
  return {}
end
if not TERMINAL[job.state] then
  return answer({ '0' })
end
set(job, {
  request = arg(2), film = '', manifest = '', checkpoint = '', checkpoint_before = '', checkpoint_step = '0',
  erased = '1',
})
event(job, 'erased', '')
redis.call('ZADD', key.erasing(), stamp(NOW), job.id)
return answer({ '1' })
