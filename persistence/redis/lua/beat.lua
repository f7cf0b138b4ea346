-- KEYS: head ARGV: token, beat, and the journal's end last seen by the owner (sequence, digest). An
-- owner that finds it shorter leaves a mark, so that each later start notices the loss.
local m = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'seq', 'dig')
if (m[1] or '') ~= ARGV[1] then return {-1, m[2] or ''} end
local seq = m[3] or '0'
if shorter(seq, m[4] or '', ARGV[3], ARGV[4]) then
  redis.call('HSET', KEYS[1], 'lost', ARGV[3])
  return {-2, seq}
end
redis.call('HSET', KEYS[1], 'beat', ARGV[2])
return {1, ''}
