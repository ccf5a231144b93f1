-- tick:{controller}         hash    no longer busy, if this tick still holds it
-- tick:{controller}:report  string  written then
--
-- args: controller, number, token, report. Answers {"1"} or {"0"} (another tick has begun meanwhile).

local name = key.tick(arg(1))
local tick = redis.call('HMGET', name, 'number', 'token')
if tick[1] ~= arg(2) or tick[2] ~= arg(3) then
  return { '0' }
end
redis.call('HSET', name, 'busy_until', '0')
redis.call('SET', key.report(arg(1)), arg(4), 'PX', REPORT_TTL_MS)
return { '1' }
