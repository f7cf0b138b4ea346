-- KEYS: head, journal   ARGV: token, first sequence to keep, most entries to trim
-- XTRIM with LIMIT takes whole nodes of the stream alone. When it finds none, what is left is less than a node, or nodes
-- have more entries than LIMIT: then all of it goes at once.
local m = redis.call('HMGET', KEYS[1], 'epoch', 'owner')
if (m[1] or '') ~= ARGV[1] then return {-1, m[2] or ''} end
local first = ARGV[2] .. '-0'
if redis.call('XTRIM', KEYS[2], 'MINID', '~', first, 'LIMIT', ARGV[3]) > 0 then return {2, ''} end
redis.call('XTRIM', KEYS[2], 'MINID', first)
return {1, ''}
