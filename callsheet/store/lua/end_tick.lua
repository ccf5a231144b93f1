-- tick:{controller}         hash    no longer busy, if this tick still holds it
-- tick:{controller}:report  string  written then
--
-- args: controller, number, token, report. Answers {"again"} (somebody came meanwhile), {"done"}, or {"lost"} (another
-- tick has begun meanwhile). The note that somebody came stays until the next tick begins, for a repeat.

local name = key.tick(arg(1))
local tick = redis.call('HMGET', name, 'number', 'token', 'again')
if tick[1] ~= arg(2) or tick[2] ~= arg(3) then
  return { 'lost' }
end
redis.call('HSET', name, 'busy_until', '0')
redis.call('SET', key.report(arg(1)), arg(4), 'PX', REPORT_TTL_MS)
return { tick[3] == '1' and 'again' or 'done' }
