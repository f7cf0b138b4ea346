-- KEYS: list, its marks   ARGV: 'up' or 'down', cursor, how many at most
-- The marks of the rows above the cursor ('up') or below it ('down'; 0: all) as they lie in the list, and
-- the ids of the oldest and of the newest of these rows. None where the rows have none.
local list, cursor, many = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local len = redis.call('LLEN', list)
local first = len - redis.call('STRLEN', KEYS[2]) / 3 -- the row of the first mark; below 0 if that is trimmed
local from, to
if ARGV[1] == 'up' then
  from = place(list, len, cursor + 1)
  to = math.min(from + many, len)
else
  to = cursor == 0 and len or place(list, len, cursor)
  from = math.max(to - many, first, 0)
end
if from < first or from >= to then return {'', 0, 0} end
return {redis.call('GETRANGE', KEYS[2], 3 * (from - first), 3 * (to - first) - 1),
  id(redis.call('LINDEX', list, from)), id(redis.call('LINDEX', list, to - 1))}
