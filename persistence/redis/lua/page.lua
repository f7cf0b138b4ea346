-- KEYS: list   ARGV: 'up' or 'down', cursor, how many rows to skip, how many to return
-- Rows of a list in the order of their ids: 'up' those above the cursor, oldest first; 'down' those
-- below it (0: all), newest first. Upwards skip may be negative: that many rows before the cursor
-- are added. The two rows beside the cursor follow.
local key, cursor, skip, many = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local len = redis.call('LLEN', key)
if ARGV[1] == 'up' then
  local at = place(key, len, cursor + 1)
  local from = math.max(at + skip, 0)
  return {redis.call('LRANGE', key, from, from + many - 1), edge(key, at)}
end
local at = cursor == 0 and len or place(key, len, cursor)
local to = at - skip - 1
if to < 0 then return {{}, edge(key, at)} end
local rows = redis.call('LRANGE', key, math.max(to - many + 1, 0), to)
for i = 1, math.floor(#rows / 2) do rows[i], rows[#rows + 1 - i] = rows[#rows + 1 - i], rows[i] end
return {rows, edge(key, at)}
