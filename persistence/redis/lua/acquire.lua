-- KEYS: head   ARGV: owner, unique, and perhaps the token and the beat that must be there
local m = redis.call('HMGET', KEYS[1], 'seq', 'dig', 'epoch', 'beat', 'owner')
if ARGV[3] and ((m[3] or '') ~= ARGV[3] or (m[4] or '') ~= ARGV[4]) then return {-3, m[5] or '', '', ''} end
local token = redis.call('HINCRBY', KEYS[1], 'n', 1) .. ':' .. ARGV[2]
redis.call('HSET', KEYS[1], 'epoch', token, 'owner', ARGV[1], 'beat', '0')
return {1, token, m[1] or '0', m[2] or ''}
