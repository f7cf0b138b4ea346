-- KEYS: head   ARGV: token, beat
local m = redis.call('HMGET', KEYS[1], 'epoch', 'owner')
if (m[1] or '') ~= ARGV[1] then return {-1, m[2] or ''} end
redis.call('HSET', KEYS[1], 'beat', ARGV[2])
return {1, ''}
