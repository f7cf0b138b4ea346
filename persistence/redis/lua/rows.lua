-- The prefix of the scripts that search rows. A list keeps its rows in the order of their ids,
-- which are their first eight bytes. An id's place is found by binary search, so a page stays right
-- however the list grows or is trimmed between two pages.
local function id(row) return (struct.unpack('>I8', row)) end
local function place(list, len, x) -- how many of len ids are below x
  local lo, hi = 0, len
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if id(redis.call('LINDEX', list, mid)) < x then lo = mid + 1 else hi = mid end
  end
  return lo
end
-- edge returns the two rows between which a search ended, '' if there is none. A search that a
-- damaged id misled ends beside the damaged row, whose checksum the caller checks.
local function edge(list, at)
  return at > 0 and redis.call('LINDEX', list, at - 1) or '', redis.call('LINDEX', list, at) or ''
end
