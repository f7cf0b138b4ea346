-- KEYS: head, watermark, sums ARGV: token, from, to, '1' to move the watermark, the journal's end
-- last seen by the owner (sequence, digest), then operations:
--   'L', key, limit, n, n rows              rows of a list, in the order of their ids; existing ones stay
--   'C', key, limit, n, n rows              the same, but existing ones are replaced
--   'A', key, limit, n + 1, n rows, marks   as 'L', with MARK bytes for each row, kept in key .. ':marks'
--   'Z', key, limit, 3n, n times score, row, entry  closed orders, rows of a sorted set, none of them twice; an existing one
--                                           stays. key .. ':ids' gets the entry of each, where it is not empty
--   'U', key, '0', 2n, n times score, row   the same, but an existing score stays
--   'W', key, '0', 2n, n times field, value a hash, replaced
--   'R', key, '0', 3n, n times field, value, witness  fields of a hash, other fields stay; key .. ':witnesses'
--                                           gets the checksum at the value's end under the witness
--   'N', key, '0', 2n, n times field, value nonces, which only grow
-- A limit keeps that many of the newest rows; 0 keeps all. No key of a list occurs twice. The hash
-- of sums holds, for each list or sorted set, its number of rows and the exclusive or of their
-- checksums: so a lost row leaves a trace. Rows of a journal that has lost its tail are not
-- written: an owner that finds it shorter leaves a mark, as with its beat.
local m = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'seq', 'dig')
if (m[1] or '') ~= ARGV[1] then return {-1, m[2] or ''} end
if shorter(m[3] or '0', m[4] or '', ARGV[5], ARGV[6]) then
  redis.call('HSET', KEYS[1], 'lost', ARGV[5])
  return {-5, m[3] or '0'}
end
local wm = redis.call('GET', KEYS[2]) or '0'
if ARGV[2] ~= ARGV[3] and wm == ARGV[3] then return {2, wm} end -- an earlier try landed
if wm ~= ARGV[2] then return {-2, wm} end

local MANY = 1000     -- arguments of one command
local PAIRS = 500     -- scores and members of one command
local LATE = 500000   -- how many rows of a list may be moved to make room
local MARK = 7        -- bytes of a mark

-- Ids are below 2^53: exact as numbers. Rows are never compared as text, which depends on the locale.
local function id(row) return (struct.unpack('>I8', row)) end

-- The sums of the lists that this call changes. A row ends with its checksum.
local sums = {}
local function count(key, row, n)
  local s = sums[key]
  if not s then
    local text = redis.call('HGET', KEYS[3], key) or '0:00000000'
    local rows, all = string.match(text, '^(%d+):(%x+)$')
    -- An unreadable one stays so, for Verify to find.
    if not rows then s = {bad = text} else s = {rows = tonumber(rows), all = tonumber(all, 16)} end
    sums[key] = s
  end
  if s.bad then return end
  s.rows, s.all = s.rows + n, bit.bxor(s.all, (struct.unpack('>I4', row, #row - 3)))
end

-- below is how many ids of a list are below x. It searches from the newest on: most rows belong
-- there.
local function below(key, len, x)
  local lo, hi, step = 0, len, 1 -- the answer is in lo..hi
  while hi > 0 do
    local at = math.max(hi - step, 0)
    if id(redis.call('LINDEX', key, at)) < x then
      lo = at + 1
      break
    end
    hi = at
    step = step * 2
  end
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if id(redis.call('LINDEX', key, mid)) < x then lo = mid + 1 else hi = mid end
  end
  return lo
end

-- take appends the elements from..to of a list, counted from 0, to rows.
local function take(rows, key, from, to)
  while from <= to do
    local page = redis.call('LRANGE', key, from, math.min(from + MANY - 1, to))
    for i = 1, #page do rows[#rows + 1] = page[i] end
    from = from + MANY
  end
  return rows
end

-- merge appends old rows and the rows ARGV[first..last] to rows, in the order of their ids. It
-- returns the positions of new ones with their index in ARGV, and the replaced old rows. Of two
-- with one id the old one stays, or is replaced.
local function merge(rows, old, first, last, replace)
  local i, new, gone = 1, {}, {}
  for j = first, last do
    local x = id(ARGV[j])
    while i <= #old and id(old[i]) < x do
      rows[#rows + 1] = old[i]
      i = i + 1
    end
    local there = i <= #old and id(old[i]) == x
    if there and not replace then
      rows[#rows + 1] = old[i]
    else
      rows[#rows + 1] = ARGV[j]
      new[#rows] = j
      if there then gone[#gone + 1] = old[i] end
    end
    if there then i = i + 1 end
  end
  for k = i, #old do rows[#rows + 1] = old[k] end
  return new, gone
end

-- plan finds where the rows ARGV[first..last] belong and returns the changes: rows to put at the
-- end of the list ('back') or at its start ('front'), after taking off the rows between there and
-- their place, so that stay elements stay. nil if too many would have to be moved.
local function plan(key, first, last, replace)
  local len = redis.call('LLEN', key)
  local lowest, newest = id(ARGV[first]), len > 0 and id(redis.call('LINDEX', key, -1))
  if len == 0 or newest < lowest then
    return {where = 'back', stay = len, len = len, rows = ARGV, first = first, last = last}
  end
  if replace and newest == lowest then -- the newest again, and perhaps newer ones
    return {where = 'last', stay = len, len = len, rows = ARGV, first = first + 1, last = last}
  end
  local lo, hi = below(key, len, lowest), below(key, len, id(ARGV[last]) + 1)
  local p = {where = 'back', stay = lo, len = len, rows = {}, first = 1}
  if hi < len - lo then p.where, p.stay = 'front', len - hi end
  if len - p.stay > LATE then return nil end
  local old = take({}, key, lo, hi - 1)
  if p.where == 'front' then take(p.rows, key, 0, lo - 1) end
  p.new, p.gone = merge(p.rows, old, first, last, replace)
  if not next(p.new) then p.where = 'none' end
  if p.where == 'back' then take(p.rows, key, hi, len - 1) end
  p.last = #p.rows
  return p
end

-- All refusals are decided before the first write. Redis may still refuse a string that gets too
-- long, so that is written with pcall: see mark.
local plans = {}
local at = 7
while at <= #ARGV do
  local kind, n = ARGV[at], tonumber(ARGV[at + 3])
  if kind == 'L' or kind == 'C' or kind == 'A' then
    local rows = kind == 'A' and n - 1 or n
    local p = plan(ARGV[at + 1], at + 4, at + 3 + rows, kind == 'C')
    if not p then return {-3, ARGV[at + 1]} end
    plans[at] = p
  end
  at = at + 4 + n
end

local function each(first, last, fn)
  for i = first, last, MANY do fn(i, math.min(i + MANY - 1, last)) end
end

-- put applies a plan. It returns the list's new length.
local function put(key, p, first)
  if p.where == 'none' then return p.len end
  if p.new then
    for _, j in pairs(p.new) do count(key, ARGV[j], 1) end
    for _, row in ipairs(p.gone) do count(key, row, -1) end
  else
    for i = p.first, p.last do count(key, ARGV[i], 1) end
  end
  if p.where == 'last' then
    count(key, redis.call('LINDEX', key, -1), -1)
    count(key, ARGV[first], 1)
    redis.call('LSET', key, -1, ARGV[first])
  end
  if p.stay == 0 and p.len > 0 then
    redis.call('DEL', key)
  elseif p.stay < p.len and p.where == 'front' then
    redis.call('LTRIM', key, -p.stay, -1)
  elseif p.stay < p.len then
    redis.call('LTRIM', key, 0, p.stay - 1)
  end
  if p.where ~= 'front' then
    each(p.first, p.last, function(i, j) redis.call('RPUSH', key, unpack(p.rows, i, j)) end)
    return p.stay + p.last - p.first + 1
  end
  for i = 1, math.floor(#p.rows / 2) do -- each goes in front of the one before
    p.rows[i], p.rows[#p.rows + 1 - i] = p.rows[#p.rows + 1 - i], p.rows[i]
  end
  each(1, #p.rows, function(i, j) redis.call('LPUSH', key, unpack(p.rows, i, j)) end)
  return p.stay + #p.rows
end

-- trim leaves the newest rows of a list.
local function trim(key, len, limit)
  each(0, len - limit - 1, function(i, j)
    for _, row in ipairs(redis.call('LRANGE', key, i, j)) do count(key, row, -1) end
  end)
  redis.call('LTRIM', key, -limit, -1)
end

-- client returns the first bytes of all entries of an order's client id: its length and bytes; ''
-- without one. In a row it comes after id, version, flags and seven numbers. A damaged row is no
-- error here: a script that ends in the middle leaves partial writes.
local function client(row)
  local function byte(i) return string.byte(row, i) or 0 end
  if bit.band(byte(10), 16) == 0 then return '' end
  local at = 11
  for _ = 1, 7 do
    while byte(at) >= 128 do at = at + 1 end
    at = at + 1
  end
  return string.sub(row, at, at + byte(at))
end

-- close adds the new ones of the closed orders ARGV[first..last], with their entries, to a set and
-- its index. It batches them into commands, because a command costs Redis as much time as adding a
-- row. An index has no sum: Verify compares it with the rows.
local function close(key, ids, first, last)
  for i = first, last, 3 * PAIRS do
    local rows, orders, entries = {}, {}, {}
    for j = i, math.min(i + 3 * PAIRS, last + 1) - 3, 3 do rows[#rows + 1] = ARGV[j + 1] end
    local there = redis.call('ZMSCORE', key, unpack(rows))
    for n, row in ipairs(rows) do
      if not there[n] then
        local j = i + 3 * (n - 1)
        count(key, row, 1)
        orders[#orders + 1] = ARGV[j]
        orders[#orders + 1] = row
        if ARGV[j + 2] ~= '' then
          entries[#entries + 1] = '0'
          entries[#entries + 1] = ARGV[j + 2]
        end
      end
    end
    if #orders > 0 then redis.call('ZADD', key, unpack(orders)) end
    if #entries > 0 then redis.call('ZADD', ids, unpack(entries)) end
  end
end

-- leave removes an order's entry with its row.
local function leave(key, row)
  local entry = client(row)
  if entry == '' then return end
  entry = entry .. string.sub(row, 1, 8)
  local found = redis.call('ZRANGEBYLEX', key, '[' .. entry, '(' .. entry .. string.rep('\255', 5))
  for _, e in ipairs(found) do redis.call('ZREM', key, e) end
end

local function refused(answer) return type(answer) == 'table' and answer.err end

-- mark updates the marks beside a list as put updates the list. The last mark is that of the newest
-- row. There may be none for the oldest rows, written before there were marks, and some in front
-- may be of trimmed rows: those are removed when they are more than half. A string that would get
-- longer than Redis allows (proto-max-bulk-len) restarts with the newest rows: readers count the
-- others one by one.
local function mark(key, p, len, first, marks)
  if p.where == 'none' then return end
  local at, moved = redis.call('STRLEN', key), p.len - p.stay
  if p.new then -- rows were moved: so are their marks
    local old, i, all = '', 0, {}
    if p.where == 'back' and at >= MARK * moved then
      at = at - MARK * moved
      old = redis.call('GETRANGE', key, at, -1)
    elseif p.where == 'front' and at >= MARK * p.len then
      at = at - MARK * p.len
      old = redis.call('GETRANGE', key, at, at + MARK * moved - 1)
    else
      redis.call('DEL', key) -- the old marks are missing: new rows get some again
      return
    end
    for k = 1, #p.rows do
      if p.new[k] then
        local j = MARK * (p.new[k] - first)
        all[k] = string.sub(marks, j + 1, j + MARK)
      else
        all[k] = string.sub(old, i + 1, i + MARK)
        i = i + MARK
      end
    end
    if p.where == 'back' then
      if refused(redis.pcall('SETRANGE', key, at, table.concat(all))) then
        redis.call('DEL', key)
        return
      end
    else
      redis.call('SET', key, table.concat(all) .. redis.call('GETRANGE', key, at + MARK * moved, -1))
    end
  elseif refused(redis.pcall('APPEND', key, marks)) then
    redis.call('SET', key, marks)
  end
  if redis.call('STRLEN', key) > MARK * (2 * len + 1000) then
    redis.call('SET', key, redis.call('GETRANGE', key, -MARK * len, -1))
  end
end

-- less compares decimal numbers of up to 20 digits, which may be above 2^53.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  local x, y = tonumber(string.sub(a, 1, 10)), tonumber(string.sub(b, 1, 10))
  if x ~= y or #a <= 10 then return x < y end
  return tonumber(string.sub(a, 11)) < tonumber(string.sub(b, 11))
end

at = 7
while at <= #ARGV do
  local kind, key, limit, n = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local first, last = at + 4, at + 3 + n
  if kind == 'L' or kind == 'C' or kind == 'A' then
    local len = put(key, plans[at], first)
    if kind == 'A' then mark(key .. ':marks', plans[at], limit > 0 and math.min(len, limit) or len, first, ARGV[last]) end
    if limit > 0 and len > limit then trim(key, len, limit) end
  elseif kind == 'Z' then
    local ids = key .. ':ids'
    close(key, ids, first, last)
    if limit > 0 then
      each(0, redis.call('ZCARD', key) - limit - 1, function()
        local rows = redis.call('ZPOPMIN', key, math.min(MANY, redis.call('ZCARD', key) - limit))
        for i = 1, #rows, 2 do
          count(key, rows[i], -1)
          leave(ids, rows[i])
        end
      end)
    end
  elseif kind == 'U' then
    for i = first, last, 2 do
      if redis.call('ZCOUNT', key, ARGV[i], ARGV[i]) == 0 then
        redis.call('ZADD', key, ARGV[i], ARGV[i + 1])
        count(key, ARGV[i + 1], 1)
      end
    end
  elseif kind == 'R' then
    local entries, witnesses = {}, {}
    for i = first, last, 3 do
      local k = #entries
      entries[k + 1], entries[k + 2] = ARGV[i], ARGV[i + 1]
      witnesses[k + 1], witnesses[k + 2] = ARGV[i + 2], string.sub(ARGV[i + 1], -4)
    end
    each(1, #entries, function(i, j)
      redis.call('HSET', key, unpack(entries, i, j))
      redis.call('HSET', key .. ':witnesses', unpack(witnesses, i, j))
    end)
  elseif kind == 'W' then
    redis.call('DEL', key)
    each(first, last, function(i, j) redis.call('HSET', key, unpack(ARGV, i, j)) end)
  elseif kind == 'N' then
    for i = first, last, 2 do
      local function digits(text) return string.match(text, '^%d*') end -- a checksum follows them
      local old = redis.call('HGET', key, ARGV[i])
      if not old or less(digits(old), digits(ARGV[i + 1])) then redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
    end
  end
  at = at + 4 + n
end
local changed = {}
for key, s in pairs(sums) do
  changed[#changed + 1] = key
  changed[#changed + 1] = s.bad or string.format('%.0f:%s', s.rows, bit.tohex(s.all))
end
each(1, #changed, function(i, j) redis.call('HSET', KEYS[3], unpack(changed, i, j)) end)
if ARGV[4] == '1' then
  redis.call('SET', KEYS[2], ARGV[3])
  redis.call('HSET', KEYS[3], 'wm', ARGV[3])
end
return {1, ARGV[3]}
