-- KEYS: head   ARGV: owner, unique
local m = redis.call('HMGET', KEYS[1], 'seq', 'dig')
local token = redis.call('HINCRBY', KEYS[1], 'n', 1) .. ':' .. ARGV[2]
redis.call('HSET', KEYS[1], 'epoch', token, 'owner', ARGV[1])
return {1, token, m[1] or '0', m[2] or ''}
