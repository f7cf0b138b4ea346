-- KEYS: head, journal, watermark   ARGV: token, sequence, the time in ms
local m = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'seq', 'dig', 'snap', 'accepted')
if (m[1] or '') ~= ARGV[1] then return {-1, m[2] or ''} end
local seq, wm = m[3] or '0', redis.call('GET', KEYS[3]) or '0'
if wm ~= '0' then return {-3, 'projections up to sequence ' .. wm} end
if (m[5] or '') ~= '' then return {-3, 'a snapshot'} end
-- A journal that ends somewhere without a digest has begun there and has no records.
if seq == ARGV[2] and (m[4] or '') == '' then return {2, seq} end -- an earlier try landed
if seq ~= '0' or redis.call('XLEN', KEYS[2]) > 0 then return {-3, 'a journal up to sequence ' .. seq} end
redis.call('HSET', KEYS[1], 'seq', ARGV[2], 'accepted', accept(m[6], ARGV[3]))
return {1, ARGV[2]}
