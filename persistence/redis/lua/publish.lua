-- KEYS: head, watermark, set of images   ARGV: token, sequence, image, prefix of images' keys
-- Without an image it only checks. Sequences are below 2^53, hence exact as numbers.
local m = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'snap', 'snap1')
if (m[1] or '') ~= ARGV[1] then return {-1, m[2] or ''} end
local wm = redis.call('GET', KEYS[2]) or '0'
if tonumber(wm) < tonumber(ARGV[2]) then return {-3, wm} end
local newest, older = m[3] or '', m[4] or ''
local at = string.match(newest, '^(%d+)%.') or '0'
if tonumber(at) > tonumber(ARGV[2]) then return {-4, at} end
if ARGV[3] == '' then return {1, ''} end
-- A second image at one sequence replaces the first: it is saved again because the first is bad.
if at ~= ARGV[2] then older = newest end
redis.call('HSET', KEYS[1], 'snap', ARGV[3], 'snap1', older)
local function id(image) return string.match(image, '^[^:]*') end
for _, image in ipairs(redis.call('SMEMBERS', KEYS[3])) do
  if image ~= id(ARGV[3]) and image ~= id(older) then
    redis.call('UNLINK', ARGV[4] .. image)
    redis.call('SREM', KEYS[3], image)
  end
end
return {1, ''}
