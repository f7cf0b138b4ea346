-- KEYS: list   ARGV: 'up' or 'down', cursor, how many rows to skip, how many to return
-- Rows of a list in the order of their ids: 'up' those above the cursor, oldest first; 'down' those
-- below it (0: all), newest first. An id finds its place by halving, so a page stays right however
-- the list grows or is trimmed between two pages.
local function id(row) return (struct.unpack('>I8', row)) end
local key, cursor, skip, many = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local len = redis.call('LLEN', key)
local function place(x) -- how many ids are below x
  local lo, hi = 0, len
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if id(redis.call('LINDEX', key, mid)) < x then lo = mid + 1 else hi = mid end
  end
  return lo
end
if ARGV[1] == 'up' then
  local from = place(cursor + 1) + skip
  return redis.call('LRANGE', key, from, from + many - 1)
end
local to = (cursor == 0 and len or place(cursor)) - skip - 1
if to < 0 then return {} end
local rows = redis.call('LRANGE', key, math.max(to - many + 1, 0), to)
for i = 1, math.floor(#rows / 2) do rows[i], rows[#rows + 1 - i] = rows[#rows + 1 - i], rows[i] end
return rows
