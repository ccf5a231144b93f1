-- tick:{controller}  hash  number, token, busy_until, again         witness  string  set
--
-- args: controller, number, token, busy_s. Answers {"1"} (begun, or begun before under this token) or {"0"}. Who comes
-- while another tick is under way leaves a note: that one runs once more.

local name, number, token = key.tick(arg(1)), arg(2), arg(3)
local tick = redis.call('HMGET', name, 'number', 'token', 'busy_until')
if tick[1] == number and tick[2] == token then
  return { '1' }
end
witness()
if tick[1] and num(tick[3]) > NOW then
  redis.call('HSET', name, 'again', '1')
  return { '0' }
end
if tick[1] and num(number) <= num(tick[1]) then
  return { '0' }
end
redis.call('HSET', name, 'number', number, 'token', token, 'busy_until', stamp(NOW + num(arg(4))), 'again', '')
redis.call('PEXPIRE', name, TICK_TTL_MS)
return { '1' }
