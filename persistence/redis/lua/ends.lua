-- accept counts the operators' acceptances of the store's content, with this one; in an emptied
-- store it continues from the clock.
local function accept(last, now) return string.format('%.0f', math.max((tonumber(last or '0') or 0) + 1, tonumber(now))) end

-- shorter reports whether a journal that ends at seq with the digest dig has lost the records up to
-- want with wantDig. A digest '' is unknown. Sequences are below 2^53, hence exact as numbers.
local function shorter(seq, dig, want, wantDig)
  local at, least = tonumber(seq) or 0, tonumber(want) or 0
  return at < least or at == least and dig ~= '' and wantDig ~= '' and dig ~= wantDig
end
