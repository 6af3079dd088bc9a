-- Each byte of a store, flipped once:
--
--   ckpt-lua exec spec/judge/flip.lua STORE SCRATCH STRIDE PHASE
--
-- STORE is a target that nobody writes to. Each STRIDE-th byte of each file in it (from PHASE on)
-- gets another bit; then the library lists, verifies and restores all that is kept, in this one
-- process. What a flip may come to:
--
--   noticed   a call failed, `verify` found something, or a warning was told
--   harmless  nothing was told; the listing, the newest one and each restored byte are as before
--   changed   nothing was told; what is restored was saved so, and it has another name, or another
--             one is the newest
--   wrong     bytes were restored that nobody ever saved as one checkpoint
--
-- Prints a line for each kind of file, "KIND BYTES NOTICED HARMLESS CHANGED WRONG", and for all
-- that was not noticed where it was, "at KIND FILE FROM-TO WHAT".
local ckpt = require "ckpt"

local STORE, SCRATCH, STRIDE, PHASE = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])
local fs = ckpt.fs

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local files = {}
for path in assert(io.popen("cd '" .. STORE .. "' && find . -type f | LC_ALL=C sort")):lines() do
  files[#files + 1] = path:sub(3)
end

local attempt_dirs = {}
for _, path in ipairs(files) do
  local text = path:match "^%.ckpt/log" and read(STORE .. "/" .. path) or ""
  if text:match '"type":"attempt"' then
    attempt_dirs[text:match '"n":(%d+)'] = text:match '"dir":"([^"]+)"'
  end
end

-- A kind says what the promises say of a file, and what an expectation may be told of.
local function kind_of(path, text, kept)
  local entry = path:match "^%.ckpt/log[.%d]*/%d+%.json$"
  if entry then return "log:" .. (text:match '"type":"(%a+)"' or "?") end
  local attempt = path:match "^%.ckpt/with/(%d+)/"
  if attempt then
    if not kept[attempt_dirs[attempt]] then return "dropped" end
    return path:match "manifest" and "with:manifest" or "with"
  end
  if path:match "^%.ckpt/" then return path:match "^%.ckpt/(%a+)" end
  if not kept[path:match "^[^/]*"] then return "dropped" end
  return path:match "%.ckpt%-manifest%.json$" and "manifest" or "data"
end

local function tree(top, at, out)
  for _, name in ipairs(fs.list(top .. at) or {}) do
    local path = top .. at .. "/" .. name
    local text = read(path)
    if text then out[at .. "/" .. name] = text else tree(top, at .. "/" .. name, out) end
  end
  return out
end

local warned = false

-- All that can be asked of it. `told`: somebody said that something is wrong.
local function look()
  local out = { told = false, listed = {}, trees = {} }
  warned = false
  local function ask(value, ...)
    if value == nil then out.told = true end
    return value, ...
  end
  for i, item in ipairs(ask(ckpt.list(STORE)) or {}) do
    out.listed[i] = ("%s %s %d %s %s %s"):format(item.name, item.dir, item.number,
      tostring(item.step), tostring(item.bad), item.life)
  end
  for _, v in ipairs(ask(ckpt.verify(STORE)) or {}) do out.told = out.told or not v.ok end
  local names = { "" }
  for _, line in ipairs(out.listed) do names[#names + 1] = line:match "^%S+ (%S+)" end
  for _, name in ipairs(names) do
    fs.remove_tree(SCRATCH)
    local got = ask(ckpt.restore { uri = STORE, name = name ~= "" and name or nil, dir = SCRATCH })
    out.trees[name] = got and tree(SCRATCH, "", {})
  end
  ckpt.log.flush()
  out.told = out.told or warned
  return out
end

local truth

local function same(a, b)
  for k, v in pairs(a) do if b[k] ~= v then return false end end
  for k in pairs(b) do if a[k] == nil then return false end end
  return true
end

--- Is this, under whatever name, what was saved as one of them?
local function was_saved(got)
  local plain = {}
  for path, text in pairs(got) do
    local below = path:match "^/checkpoint[^/]*(/.*)"
    if below then plain[below] = text end
  end
  for _, want in pairs(truth.plain) do if same(plain, want) then return true end end
  return false
end

local function judge(now)
  for _, got in pairs(now.trees) do
    if not was_saved(got) then return "wrong" end
  end
  if now.told then return "noticed" end
  for name, got in pairs(now.trees) do
    if not truth.trees[name] or not same(got, truth.trees[name]) then return "changed" end
  end
  return same(now.listed, truth.listed) and "harmless" or "changed"
end

ckpt.log.use(function(level) warned = warned or level == "warning" or level == "error" end)
truth = look()
truth.plain = {}
for name, got in pairs(truth.trees) do
  truth.plain[name] = {}
  for path, text in pairs(got) do
    local below = path:match "^/checkpoint[^/]*(/.*)"
    if below then truth.plain[name][below] = text end
  end
end
-- What a damaged entry no longer lets go comes back, with a warning: it was saved, too.
for _, dir in pairs(attempt_dirs) do
  if not truth.trees[dir] then
    truth.plain[dir] = tree(STORE .. "/" .. dir, "", {})
    truth.plain[dir]["/.ckpt-manifest.json"] = nil
  end
end
assert(not truth.told and #truth.listed > 1, "the store is not whole before a byte is flipped")

local kept = {}
for _, line in ipairs(truth.listed) do kept[line:match "^%S+ (%S+)"] = true end

local counts, kinds = {}, {}
local count = 0
for _, path in ipairs(files) do
  local text = read(STORE .. "/" .. path)
  local kind = kind_of(path, text, kept)
  local c = counts[kind]
  if not c then
    c = { bytes = 0, noticed = 0, harmless = 0, changed = 0, wrong = 0 }
    counts[kind], kinds[#kinds + 1] = c, kind
  end
  local from, was
  local function tell(to)
    if was then print(("at %s %s %d-%d %s"):format(kind, path, from, to, was)) end
  end
  for at = 1 + (PHASE + count) % STRIDE, #text, STRIDE do
    local byte = string.char(bit.bxor(text:byte(at), bit.lshift(1, at % 7)))
    write(STORE .. "/" .. path, text:sub(1, at - 1) .. byte .. text:sub(at + 1))
    local what = judge(look())
    c.bytes, c[what] = c.bytes + 1, c[what] + 1
    if what == "noticed" then what = nil end
    if what ~= was then
      tell(at - 2)
      from, was = at - 1, what
    end
  end
  tell(#text - 1)
  count = count + #text
  write(STORE .. "/" .. path, text)
end
fs.remove_tree(SCRATCH)
assert(not look().told, "the store is not whole after all bytes are back")
table.sort(kinds)
for _, kind in ipairs(kinds) do
  local c = counts[kind]
  print(("%s %d %d %d %d %d"):format(kind, c.bytes, c.noticed, c.harmless, c.changed, c.wrong))
end
