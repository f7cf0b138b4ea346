-- KEYS: head, journal ARGV: token, previous sequence, next sequence, digest, batch, and the
-- journal's end last seen by the owner (sequence, digest) All checks come before the first write: a
-- script has no rollback. Sequences are compared as text. An owner that finds the journal shorter
-- leaves a mark, as with its beat.
local m = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'dig', 'owner')
local seq, dig = m[2] or '0', m[3] or ''
if (m[1] or '') ~= ARGV[1] then return {-1, m[4] or ''} end
if seq == ARGV[3] and dig == ARGV[4] then return {2, seq} end -- an earlier try landed
if shorter(seq, dig, ARGV[6], ARGV[7]) then
  redis.call('HSET', KEYS[1], 'lost', ARGV[6])
  return {-2, seq}
end
if seq ~= ARGV[2] then return {-2, seq} end
redis.call('XADD', KEYS[2], ARGV[3] .. '-0', 'p', ARGV[2], 'd', ARGV[4], 'b', ARGV[5])
redis.call('HSET', KEYS[1], 'seq', ARGV[3], 'dig', ARGV[4])
return {1, ARGV[3]}
