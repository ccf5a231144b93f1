-- desired  hash  GPU name -> what its worker is to serve (JSON)
--
-- A wish that asks for the same weights as the one before keeps its time: they are on their way since then.
--
-- args: GPU name, JSON ("" = forget it), GPU name ... Answers {}.

local memo = recall()
if memo then
  return memo
end

for i = 5, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', key.desired(), ARGV[i])
  else
    local wish = cjson.decode(ARGV[i + 1])
    local had = redis.call('HGET', key.desired(), ARGV[i])
    had = had and cjson.decode(had)
    wish.at = had and had.load == wish.load and had.at or stamp(NOW)
    redis.call('HSET', key.desired(), ARGV[i], cjson.encode(wish))
  end
end
return answer({})
