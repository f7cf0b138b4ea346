-- KEYS: list, its marks   ARGV: 'up' or 'down', cursor, how many at most
-- The marks of the rows above the cursor ('up') or below it ('down'; 0: all) in the list's order,
-- the oldest and the newest of these rows, and the two beside the cursor. Empty if the rows have no
-- marks.
local MARK = 7 -- bytes of a mark
local list, cursor, many = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local len = redis.call('LLEN', list)
local first = len - redis.call('STRLEN', KEYS[2]) / MARK -- the row of the first mark; below 0 if that is trimmed
local from, to, at
if ARGV[1] == 'up' then
  from = place(list, len, cursor + 1)
  at = from
  to = math.min(from + many, len)
else
  to = cursor == 0 and len or place(list, len, cursor)
  at = to
  from = math.max(to - many, first, 0)
end
if from < first or from >= to then return {'', '', '', edge(list, at)} end
return {redis.call('GETRANGE', KEYS[2], MARK * (from - first), MARK * (to - first) - 1),
  redis.call('LINDEX', list, from), redis.call('LINDEX', list, to - 1), edge(list, at)}
