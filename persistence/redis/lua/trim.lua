-- KEYS: head, journal   ARGV: token, first sequence to keep
local m = redis.call('HMGET', KEYS[1], 'epoch', 'owner')
if (m[1] or '') ~= ARGV[1] then return {-1, m[2] or ''} end
redis.call('XTRIM', KEYS[2], 'MINID', ARGV[2] .. '-0')
return {1, ''}
