-- KEYS: head, watermark   ARGV: token, from, to, '1' to move the watermark, then operations:
--   'L', key, limit, n, n rows              rows of a list, in the order of their ids
--   'Z', key, limit, 2n, n times score, row rows of a sorted set
--   'W', key, '0', 2n, n times field, value a hash, replaced
--   'N', key, '0', 2n, n times field, value nonces, which only grow
-- A limit keeps that many of the newest rows; 0 keeps all. No key of a list occurs twice.
local m = redis.call('HMGET', KEYS[1], 'epoch', 'owner')
if (m[1] or '') ~= ARGV[1] then return {-1, m[2] or ''} end
local wm = redis.call('GET', KEYS[2]) or '0'
if ARGV[2] ~= ARGV[3] and wm == ARGV[3] then return {2, wm} end -- an earlier try landed
if wm ~= ARGV[2] then return {-2, wm} end

local MANY = 1000     -- arguments of one command
local LATE = 500000   -- how many rows of a list may be newer than the oldest new one

-- Ids are below 2^53: exact as numbers. Rows are never compared as text, which depends on the locale.
local function id(row) return (struct.unpack('>I8', row)) end

-- range is the elements from..to of a list, counted from 0.
local function range(key, from, to)
  local rows, n = {}, 0
  while from <= to do
    local page = redis.call('LRANGE', key, from, math.min(from + MANY - 1, to))
    for i = 1, #page do rows[n + i] = page[i] end
    n = n + #page
    from = from + MANY
  end
  return rows
end

-- plan finds where the rows ARGV[first..last] belong. It answers how many rows of the list stay as
-- they are, the rows to put behind them, and their first and last index; nil if they come too late.
local function plan(key, first, last)
  local len = redis.call('LLEN', key)
  local lowest = id(ARGV[first])
  if len == 0 or id(redis.call('LINDEX', key, -1)) < lowest then
    return {stay = len, len = len, rows = ARGV, first = first, last = last}
  end
  local lo, hi = 0, len -- the first element whose id is not below lowest
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if id(redis.call('LINDEX', key, mid)) < lowest then lo = mid + 1 else hi = mid end
  end
  if len - lo > LATE then return nil end
  local old = range(key, lo, len - 1)
  local i, j = 1, first -- what is in order already stays
  while i <= #old and j <= last do
    local a, b = id(old[i]), id(ARGV[j])
    if a > b then break end
    if a == b then j = j + 1 end
    i = i + 1
  end
  local stay, rows = lo + i - 1, {}
  if j > last then return {stay = len, len = len, rows = rows, first = 1, last = 0} end
  while i <= #old or j <= last do
    local a, b = old[i] and id(old[i]), j <= last and id(ARGV[j])
    if not b or a and a <= b then
      rows[#rows + 1] = old[i]
      i = i + 1
      if a == b then j = j + 1 end
    else
      rows[#rows + 1] = ARGV[j]
      j = j + 1
    end
  end
  return {stay = stay, len = len, rows = rows, first = 1, last = #rows}
end

-- All that can be refused is decided before the first write.
local plans = {}
local at = 5
while at <= #ARGV do
  local n = tonumber(ARGV[at + 3])
  if ARGV[at] == 'L' then
    local p = plan(ARGV[at + 1], at + 4, at + 3 + n)
    if not p then return {-3, ARGV[at + 1]} end
    plans[at] = p
  end
  at = at + 4 + n
end

local function each(first, last, fn)
  for i = first, last, MANY do fn(i, math.min(i + MANY - 1, last)) end
end

-- less compares decimal numbers of up to 20 digits, which may be above 2^53.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  local x, y = tonumber(string.sub(a, 1, 10)), tonumber(string.sub(b, 1, 10))
  if x ~= y or #a <= 10 then return x < y end
  return tonumber(string.sub(a, 11)) < tonumber(string.sub(b, 11))
end

at = 5
while at <= #ARGV do
  local kind, key, limit, n = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local first, last = at + 4, at + 3 + n
  if kind == 'L' then
    local p = plans[at]
    if p.stay < p.len then
      if p.stay == 0 then redis.call('DEL', key) else redis.call('LTRIM', key, 0, p.stay - 1) end
    end
    each(p.first, p.last, function(i, j) redis.call('RPUSH', key, unpack(p.rows, i, j)) end)
    if limit > 0 then redis.call('LTRIM', key, -limit, -1) end
  elseif kind == 'Z' then
    each(first, last, function(i, j) redis.call('ZADD', key, 'NX', unpack(ARGV, i, j)) end)
    if limit > 0 then redis.call('ZREMRANGEBYRANK', key, 0, -limit - 1) end
  elseif kind == 'W' then
    redis.call('DEL', key)
    each(first, last, function(i, j) redis.call('HSET', key, unpack(ARGV, i, j)) end)
  elseif kind == 'N' then
    for i = first, last, 2 do
      local old = redis.call('HGET', key, ARGV[i])
      if not old or less(old, ARGV[i + 1]) then redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
    end
  end
  at = at + 4 + n
end
if ARGV[4] == '1' then redis.call('SET', KEYS[2], ARGV[3]) end
return {1, ARGV[3]}
