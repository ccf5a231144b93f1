-- offered             hash  queue -> work ever submitted to its backlog
-- works               hash  queue -> work that waits in it
-- backlog:{queue}     zset  counted, its front read         published:{queue}  zset  read, but for direct queues
-- job:{id}            hash  work_s, start_tag, created_at, ticket, queue read
--
-- args: how many heads, prefix of direct queues.
-- Answers {{queue, jobs, offered_s, {id, start_tag, work_s, created_at, ...} of the backlog's front, the same of all
-- its jobs with a ticket in a shared queue}, ...}, and work_s of the whole backlog before the lists.

local heads, direct = num(arg(1)), arg(2)

local function rows(ids)
  local found = {}
  for _, id in ipairs(ids) do
    local job = redis.call('HMGET', key.job(id), 'start_tag', 'work_s', 'created_at', 'ticket')
    for _, value in ipairs({ id, job[1] or '0', job[2] or '0', job[3] or '0', job[4] or '0' }) do
      found[#found + 1] = value
    end
  end
  return found
end

local out = {}
for _, place in ipairs(redis.call('SMEMBERS', key.queues())) do
  if string.sub(place, 1, #direct) ~= direct then
    for _, id in ipairs(redis.call('ZRANGE', key.published(place), 0, -1)) do
      local queue = redis.call('HGET', key.job(id), 'queue')
      if queue then
        out[queue] = out[queue] or {}
        out[queue][#out[queue] + 1] = id
      end
    end
  end
end

-- Those that had a submit, and those that jobs were moved into.
local known = {}
local flat = redis.call('HGETALL', key.offered())
for i = 1, #flat, 2 do
  known[flat[i]] = flat[i + 1]
end
for _, queue in ipairs(redis.call('HKEYS', key.works())) do
  if not known[queue] and redis.call('ZCARD', key.backlog(queue)) > 0 then
    known[queue] = '0'
  end
end
for queue in pairs(out) do
  known[queue] = known[queue] or '0'
end

local answers = {}
for queue, offered in pairs(known) do
  local published = out[queue] or {}
  local jobs = redis.call('ZCARD', key.backlog(queue)) + #published
  local front = heads > 0 and redis.call('ZRANGE', key.backlog(queue), 0, heads - 1) or {}
  local work = redis.call('HGET', key.works(), queue) or '0'
  answers[#answers + 1] = { queue, string.format('%d', jobs), work, offered, rows(front), rows(published) }
end
return answers
