-- jobs:pending     zset  its oldest read
-- job:{id}         hash  fair_tag, start_tag of those that waited too long
-- backlog:{queue}  zset  they stand at the place of their creation
--
-- args: limit, then tier, seconds ... Answers the ids of the jobs that moved.

local memo = recall()
if memo then
  return memo
end

local bounds, least = {}, math.huge
for i = 2, #ARGV - 4, 2 do
  bounds[arg(i)] = num(arg(i + 1))
  least = math.min(least, bounds[arg(i)])
end
if least == math.huge then
  return answer({})
end

local moved = {}
local oldest = redis.call('ZRANGEBYSCORE', key.jobs_state('pending'), '-inf', stamp(NOW - least), 'LIMIT', 0, arg(1))
for _, id in ipairs(oldest) do
  local job = read(id)
  local bound = job and bounds[string.match(job.queue, '^[^.]+')]
  local waited = job and NOW - num(job.created_at)
  if bound and job.state == 'pending' and waited >= bound and num(job.start_tag) > num(job.created_at) then
    leave(job)
    set(job, { fair_tag = job.created_at, start_tag = job.created_at })
    enter(job)
    event(job, 'hastened', string.format(HASTENED_TEXT, waited))
    moved[#moved + 1] = id
  end
end
return answer(moved)
