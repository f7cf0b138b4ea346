-- KEYS: list, its marks   ARGV: 'up' or 'down', cursor, how many at most
-- The marks of the rows above the cursor ('up') or below it ('down'; 0: all) as they lie in the list, and
-- the id of the one that is farthest from the cursor. None where the rows have none.
local list, cursor, many = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local len = redis.call('LLEN', list)
local first = len - redis.call('STRLEN', KEYS[2]) / 3 -- the row of the first mark; below 0 if that is trimmed
local from, to, far
if ARGV[1] == 'up' then
  from = place(list, len, cursor + 1)
  to = math.min(from + many, len)
  far = to - 1
else
  to = cursor == 0 and len or place(list, len, cursor)
  from = math.max(to - many, first, 0)
  far = from
end
if from < first or from >= to then return {'', 0} end
return {redis.call('GETRANGE', KEYS[2], 3 * (from - first), 3 * (to - first) - 1), id(redis.call('LINDEX', list, far))}
