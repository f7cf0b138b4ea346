-- KEYS: head ARGV: owner, unique, heartbeat, version, to insist the time in ms, and optionally the
-- required token, beat and end (sequence, digest). A store of another version, or of a program that
-- stored none, is left as it is.
local m = redis.call('HMGET', KEYS[1], 'seq', 'dig', 'epoch', 'beat', 'owner', 'lost', 'accepted', 'version')
local seq, dig, insists = m[1] or '0', m[2] or '', ARGV[5] ~= ''
if (m[8] or '') ~= ARGV[4] and redis.call('EXISTS', KEYS[1]) == 1 then return {-6, m[8] or '', '', ''} end
if ARGV[6] and ((m[3] or '') ~= ARGV[6] or not insists and (m[4] or '') ~= ARGV[7]) then return {-3, m[5] or '', '', ''} end
if m[6] and not insists then return {-4, m[6], '', ''} end
if ARGV[6] and not insists and shorter(seq, dig, ARGV[8], ARGV[9]) then return {-5, '', seq, dig} end
local token = redis.call('HINCRBY', KEYS[1], 'n', 1) .. ':' .. ARGV[2]
redis.call('HSET', KEYS[1], 'epoch', token, 'owner', ARGV[1], 'beat', '0', 'rhythm', ARGV[3], 'version', ARGV[4])
redis.call('HDEL', KEYS[1], 'lost')
redis.call('HSETNX', KEYS[1], 'origin', ARGV[2])
if insists then redis.call('HSET', KEYS[1], 'accepted', accept(m[7], ARGV[5])) end
return {1, token, seq, dig}
