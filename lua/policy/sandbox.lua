--- Makes the part of the standard libraries that policies get, before anything of a policy runs.
---
--- Called once in a fresh state with all standard libraries, and with `guard`: functions in C that
--- raise an error if a string function would take too long (they look at its arguments). It bounds
--- string and table for everybody in the state, so for the rule library too, and returns the table
--- of what policies may use.
---
--- Wrappers end in a tail call: then an error of the function names the policy's line, not ours.
-- luacheck: globals string table
local guard = ...

local error, getmetatable, ipairs, next, rawget, select, tonumber, tostring, type, unpack =
  error, getmetatable, ipairs, next, rawget, select, tonumber, tostring, type, unpack
local find, format, gmatch, gsub, match, rep =
  string.find, string.format, string.gmatch, string.gsub, string.match, string.rep
local insert, remove = table.insert, table.remove
local min = math.min
local metatable_of = debug.getmetatable

local admit_gmatch, admit_pattern, admit_plain, admit_rep =
  guard.gmatch, guard.pattern, guard.plain, guard.rep

-- ---- strings ----

function string.find(s, pattern, init, plain)
  if plain then admit_plain(s, pattern) else admit_pattern(s, pattern) end
  return find(s, pattern, init, plain)
end

function string.match(s, pattern, init)
  admit_pattern(s, pattern)
  return match(s, pattern, init)
end

-- Looks before each match, which is a call in C of its own, and one that found nothing may be asked
-- again.
function string.gmatch(s, pattern)
  admit_gmatch(s, pattern)
  local match_next = gmatch(s, pattern)
  return function()
    admit_gmatch(s, pattern)
    return match_next()
  end
end

-- Bounds the depth: each gsub that calls a function stands on C's stack, whose end LuaJIT does not
-- look for.
local depth, DEPTH_MAX = 0, 20

function string.gsub(s, pattern, by, n)
  admit_pattern(s, pattern)
  if type(by) ~= "function" then return gsub(s, pattern, by, n) end
  if depth == DEPTH_MAX then error("gsub calls itself too often", 2) end
  depth = depth + 1
  local text, count = gsub(s, pattern, by, n)
  depth = depth - 1
  return text, count
end

function string.rep(...)
  admit_rep(...)
  return rep(...)
end

-- An address would differ from run to run, and tell where things lie in memory.
local function text_of(v)
  local kind = type(v)
  if kind == "string" or kind == "number" or kind == "boolean" or kind == "nil" then
    return tostring(v)
  end
  local meta = getmetatable(v)
  if type(meta) == "table" and rawget(meta, "__tostring") then return tostring(v) end
  return kind
end

local function bounded_format(fmt, ...)
  if type(fmt) == "string" then
    local plain = gsub(fmt, "%%%%", "")
    if find(plain, "%%[^%a%%]*p") then error("format: %p is not available", 2) end
  end
  local n = select("#", ...)
  local args = { ... }
  for i = 1, n do
    local kind = type(args[i])
    if kind ~= "string" and kind ~= "number" then args[i] = text_of(args[i]) end
  end
  return format(fmt, unpack(args, 1, n))
end

-- ---- tables ----

-- These are in Lua, where each step is counted; in C one call could move half a million rows, or go
-- down to a place of "-2147483648": C takes a text for a number, too.
function table.insert(t, ...)
  local pos, v = ...
  if type(pos) == "string" then pos = tonumber(pos) end
  if select("#", ...) ~= 2 or type(t) ~= "table" or type(pos) ~= "number" then
    return insert(t, ...)
  end
  for i = #t, pos, -1 do t[i + 1] = t[i] end
  t[pos] = v
end

function table.remove(t, pos)
  if type(pos) == "string" then pos = tonumber(pos) end
  if pos == nil or type(t) ~= "table" or type(pos) ~= "number" then return remove(t) end
  local n = #t
  if pos < 1 or pos > n then return nil end
  local v = t[pos]
  for i = pos, n do t[i] = t[i + 1] end
  return v
end

local function ascending(a, b) return a < b end

--- Merges, so that it takes n log n steps whatever the order and whatever the comparison says, and
--- leaves equal ones as they were. (Lua's own takes n^2 steps for some orders.)
function table.sort(t, before)
  if type(t) ~= "table" then
    error("bad argument #1 to 'sort' (table expected, got " .. type(t) .. ")", 2)
  end
  before = before or ascending
  local n = #t
  local from, to, width = t, {}, 1
  while width < n do
    for low = 1, n, 2 * width do
      local middle, high = min(low + width, n + 1), min(low + 2 * width, n + 1)
      local i, j = low, middle
      for k = low, high - 1 do
        if i < middle and (j >= high or not before(from[j], from[i])) then
          to[k], i = from[i], i + 1
        else
          to[k], j = from[j], j + 1
        end
      end
    end
    from, to, width = to, from, 2 * width
  end
  if from ~= t then
    for i = 1, n do t[i] = from[i] end
  end
end
local sort = table.sort

-- ---- one order for all keys ----

local rank = { number = 1, string = 2, boolean = 3 }

local function less(a, b)
  local x, y = type(a), type(b)
  if x ~= y then return rank[x] < rank[y] end
  if x == "boolean" then return not a and b end
  return a < b
end

local function check(t, name)
  if type(t) ~= "table" then
    error(("bad argument #1 to '%s' (table expected, got %s)"):format(name, type(t)), 3)
  end
end

local function check_key(k, name)
  if not rank[type(k)] then
    error(("%s: a %s as a key has no order; use texts or numbers"):format(name, type(k)), 3)
  end
end

-- What a function is handed is copied as it is read (library/base.lua).
local function complete(t)
  local meta = metatable_of(t)
  if meta and meta.complete then meta.complete(t) end
end

local function sorted_pairs(t)
  check(t, "pairs")
  complete(t)
  local keys, n = {}, 0
  for k in next, t do
    check_key(k, "pairs")
    n = n + 1
    keys[n] = k
  end
  sort(keys, less)
  local i = 0
  return function()
    local k, v
    repeat -- what was taken out meanwhile is passed over, as by Lua's own
      i = i + 1
      k = keys[i]
      if k ~= nil then v = rawget(t, k) end
    until k == nil or v ~= nil
    return k, v
  end, t, nil
end

local function sorted_next(t, after)
  check(t, "next")
  complete(t)
  local best
  for k in next, t do
    check_key(k, "next")
    if (after == nil or less(after, k)) and (best == nil or less(k, best)) then best = k end
  end
  if best == nil then return nil end
  return best, rawget(t, best)
end

-- ---- what policies see ----

-- The rule library hands these out as views that nobody can write to.
local function chosen(library, names)
  local out = {}
  for name in names:gmatch("%a+%d*") do out[name] = library[name] end
  return out
end

local strings =
  chosen(string, "byte char find gmatch gsub len lower match rep reverse sub upper")
strings.format = bounded_format
getmetatable("").__index = strings
getmetatable("").__metatable = false

local maths = {}
for name, value in next, math do maths[name] = value end
maths.random, maths.randomseed = nil, nil

return {
  assert = assert,
  error = error,
  ipairs = ipairs,
  next = sorted_next,
  pairs = sorted_pairs,
  rawequal = rawequal,
  select = select,
  tonumber = tonumber,
  tostring = text_of,
  type = type,
  unpack = unpack,
  string = strings,
  table = chosen(table, "concat insert maxn remove sort"),
  math = maths,
}
