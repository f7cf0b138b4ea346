-- KEYS: head ARGV: token, text in place of an owner
local m = redis.call('HMGET', KEYS[1], 'epoch', 'owner')
if (m[1] or '') ~= ARGV[1] then return {-1, m[2] or ''} end
redis.call('HSET', KEYS[1], 'epoch', ARGV[2])
return {1, ''}
