-- KEYS: head, set of images, image   ARGV: token, image id, chunk number, chunk
local m = redis.call('HMGET', KEYS[1], 'epoch', 'owner')
if (m[1] or '') ~= ARGV[1] then return {-1, m[2] or ''} end
redis.call('HSET', KEYS[3], ARGV[3], ARGV[4])
redis.call('SADD', KEYS[2], ARGV[2])
return {1, ''}
