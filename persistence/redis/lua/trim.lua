-- KEYS: head, journal   ARGV: token, first sequence to keep, most entries to trim
-- XTRIM with LIMIT only removes whole nodes of the stream. When it finds none, less than a node is
-- left, or nodes have more entries than LIMIT: then all of it is removed at once.
local m = redis.call('HMGET', KEYS[1], 'epoch', 'owner')
if (m[1] or '') ~= ARGV[1] then return {-1, m[2] or ''} end
local first = ARGV[2] .. '-0'
if redis.call('XTRIM', KEYS[2], 'MINID', '~', first, 'LIMIT', ARGV[3]) > 0 then return {2, ''} end
redis.call('XTRIM', KEYS[2], 'MINID', first)
return {1, ''}
