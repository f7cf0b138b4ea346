-- shorter reports whether a journal that ends at seq with the digest dig has lost what ends at want with wantDig. A digest
-- that is '' is not known. Sequences are below 2^53, hence exact as numbers.
local function shorter(seq, dig, want, wantDig)
  local at, least = tonumber(seq) or 0, tonumber(want) or 0
  return at < least or at == least and dig ~= '' and wantDig ~= '' and dig ~= wantDig
end
