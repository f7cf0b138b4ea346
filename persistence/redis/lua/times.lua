-- KEYS: list of trades of one pair ARGV: a time in microseconds The two rows between which that
-- time lies: the last trade before it, and the first at it or later. Within a pair times grow with
-- ids, so this is a binary search. A row is its id, two bytes, and numbers of seven bits a byte:
-- pair, price, amount, time.
local function time(row)
  local at, value = 11, 0
  for field = 1, 4 do
    local unit, byte = 1
    value = 0
    repeat
      byte = string.byte(row, at) or 0
      value, unit, at = value + byte % 128 * unit, unit * 128, at + 1
    until byte < 128
  end
  return value
end
local list, sought = KEYS[1], tonumber(ARGV[1])
local lo, hi = 0, redis.call('LLEN', list)
while lo < hi do
  local mid = math.floor((lo + hi) / 2)
  if time(redis.call('LINDEX', list, mid)) < sought then lo = mid + 1 else hi = mid end
end
return {edge(list, lo)}
