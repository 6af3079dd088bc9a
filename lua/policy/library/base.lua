--- Functions that all parts of the rule library share: errors with a line, suggestions, units,
--- printing.
---
--- Strings are never used as objects here ("x"):format: their methods are the policy's. The sandbox
--- may refuse a pattern with several repeats on a long text, to the library as to a policy.
local M = ...

local error, ipairs, next, pairs, rawget, rawset, setmetatable, tonumber, tostring, type =
  error, ipairs, next, pairs, rawget, rawset, setmetatable, tonumber, tostring, type
local byte, find, format, gsub, match, sub =
  string.byte, string.find, string.format, string.gsub, string.match, string.sub
local concat, sort = table.concat, table.sort
local floor, huge, min = math.floor, math.huge, math.min
local getinfo = debug and debug.getinfo
local metatable_of, set_metatable_of = debug.getmetatable, debug.setmetatable

-- ---- errors ----

local sources = {} -- chunk names of policy files

--- Returns "mine.lua:7": the line of a policy that is running; its name alone where no line is
--- known.
---@return string
function M.where()
  for level = 2, getinfo and 40 or 0 do
    local info = getinfo(level, "Sl")
    if not info then break end
    if sources[info.source] and info.currentline > 0 then
      return format("%s:%d", sub(info.source, 2), info.currentline)
    end
  end
  return (M.loading or M.asking or "policy") .. ".lua"
end

--- Returns "mine.lua:7": where a function of a policy begins.
function M.line_of(f)
  local info = getinfo and getinfo(f, "S")
  return info and format("%s:%d", sub(info.source, 2), info.linedefined) or M.where()
end

---@param name string of a policy
function M.add_source(name) sources["=" .. name .. ".lua"] = true end

---@param kind "syntax"|"setting"|"answer"
function M.fail(kind, text) error({ kind = kind, text = text }, 0) end

--- Raises misuse, at the line that does it. While a file is loaded that is a fault of the file;
--- later it is an error like any other of a policy's functions.
function M.misuse(text, ...)
  local said = M.where() .. ": " .. format(text, ...)
  if not M.loading then error(said, 0) end
  M.fail("syntax", said)
end

-- ---- values ----

---@param v any
---@return string for a message: short, and in quotes if it is a text
function M.show(v)
  if type(v) == "string" then return format("%q", #v > 60 and sub(v, 1, 57) .. "..." or v) end
  if type(v) == "number" or type(v) == "boolean" then return tostring(v) end
  return v == nil and "nothing" or "a " .. type(v)
end

---@return boolean
function M.is_finite(v) return type(v) == "number" and v == v and v < huge and v > -huge end

--- Returns the keys of a table in one order, whatever order they were set in.
function M.sorted_keys(t)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  sort(keys, function(a, b)
    if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then return a < b end
    return tostring(type(a)) < tostring(type(b))
  end)
  return keys
end

--- for k, v in M.each(t): as pairs, in the order of M.sorted_keys.
function M.each(t)
  local keys, i = M.sorted_keys(t), 0
  return function()
    i = i + 1
    return keys[i], t[keys[i]]
  end
end

--- Returns the length of a list, or nil if the table has other keys than 1..n.
function M.list_length(t)
  local n, top = 0, 0
  for k in pairs(t) do
    if type(k) ~= "number" or k < 1 or k ~= floor(k) then return nil end
    n = n + 1
    if k > top then top = k end
  end
  return n == top and n or nil
end

function M.is_empty(t) return next(t) == nil end

--- Returns the table at a key; an empty one if there is none.
function M.table_at(t, key)
  local v = t[key]
  return type(v) == "table" and v or {}
end

local function copy_table(t)
  local out = {}
  for k, item in next, t do
    if type(item) == "table" then item = copy_table(item) end
    out[k] = item
  end
  return out
end

--- Copies a value: nobody else sees changes of the copy.
function M.copy(v)
  if type(v) ~= "table" then return v end
  return copy_table(v)
end

-- Most of what a function is handed it never looks at: a member is copied when it is read. Until
-- all are, the copy has two members that nobody else has a key for: what it is a copy of, and the
-- names that were read or written, whose members stay away where they are taken away.
local ORIGINAL, TOUCHED = {}, {}
local lazy = { __metatable = false }

local function copy_lazily(v)
  if type(v) ~= "table" then return v end
  if v[1] ~= nil then return copy_table(v) end -- a list is read from its beginning to its end
  return setmetatable({ [ORIGINAL] = v, [TOUCHED] = {} }, lazy)
end

function lazy.__index(copy, k)
  local v, touched = rawget(copy, ORIGINAL)[k], rawget(copy, TOUCHED)
  if v == nil or touched[k] then return nil end
  touched[k] = true
  v = copy_lazily(v)
  rawset(copy, k, v)
  return v
end

function lazy.__newindex(copy, k, v)
  rawget(copy, TOUCHED)[k] = true
  rawset(copy, k, v)
end

function lazy.complete(copy)
  local original, touched = rawget(copy, ORIGINAL), rawget(copy, TOUCHED)
  set_metatable_of(copy, nil)
  copy[ORIGINAL], copy[TOUCHED] = nil, nil
  for k, v in next, original do
    if not touched[k] then copy[k] = copy_lazily(v) end
  end
end

--- Makes a table whole before somebody goes through its members.
function M.complete(t)
  if metatable_of(t) == lazy then lazy.complete(t) end
end

-- Where a function is only tried, each name that a job could report has a number.
local reported = {
  __index = function(_, k) return type(k) == "string" and 0.5 or nil end,
  __metatable = false,
}

local function make_up(t, key)
  if type(t[key]) == "table" then setmetatable(t[key], reported) end
end

--- Copies what a policy's function is handed at the event `e`.
function M.hand(e, v)
  if not e.trial then return copy_lazily(v) end
  local out = M.copy(v)
  if type(e.trial) == "table" then
    out.trial = nil
    M.watch(out, v == e, M.made_up(e.trial))
  else
    out.trial = nil
    make_up(out, "result")
    make_up(out, "metrics")
    make_up(M.table_at(out, "checkpoint"), "metrics")
  end
  return out
end

--- Joins a list of reasons into one text, each said once.
function M.join(reasons, separator)
  if #reasons == 1 then return reasons[1] end
  local seen, out = {}, {}
  for _, reason in ipairs(reasons) do
    if reason ~= "" and not seen[reason] then
      seen[reason] = true
      out[#out + 1] = reason
    end
  end
  return concat(out, separator)
end

-- ---- durations and sizes ----

local seconds = { ms = 0.001, s = 1, m = 60, min = 60, h = 3600, d = 86400, w = 604800 }
local bytes = {
  B = 1,
  kB = 1e3,
  KB = 1e3,
  MB = 1e6,
  GB = 1e9,
  TB = 1e12,
  KiB = 2 ^ 10,
  MiB = 2 ^ 20,
  GiB = 2 ^ 30,
  TiB = 2 ^ 40,
}

-- Returns the sum of all "NUMBER UNIT" in a text without spaces, or nil.
local function sum_of(text, units)
  local total, at = 0, 1
  while at <= #text do
    local number = tonumber(match(text, "^[%d.]+", at))
    local unit, last = match(text, "(%a+)()", at)
    if not number or not units[unit] then return nil end
    total = total + number * units[unit]
    at = last
  end
  return #text > 0 and total or nil
end

local LONGEST = 40

local function measure(v, units)
  local n = v
  if type(v) == "string" then
    if #v > LONGEST then return nil end
    n = not find(v, "[^%d. ]") and tonumber(v) or sum_of(gsub(v, " ", ""), units)
  end
  return type(n) == "number" and n >= 0 and n or nil
end

local FOREVER = 2 ^ 63 / 1e9 -- as base/seconds.h has it: JSON has no infinity

--- Returns the seconds of a number (of seconds) or a text as "500ms", "5m", "1h30m", "7d", "inf";
--- nil if it is none. A time that is too long is for ever.
function M.seconds(v)
  local s = v == "inf" and huge or measure(v, seconds)
  return s and min(s, FOREVER)
end

--- Returns the bytes of a number or a text as "10MB", "1GiB"; nil if it is none.
function M.bytes(v)
  local n = measure(v, bytes)
  return n and n < huge and n or nil
end

--- For messages: 300 -> "5m", 90 -> "90s".
function M.show_seconds(s)
  if s == FOREVER then return "292 years" end
  for _, unit in ipairs { "d", "h", "m" } do
    if s > 0 and s % seconds[unit] == 0 then return format("%d%s", s / seconds[unit], unit) end
  end
  return format("%gs", s)
end

function M.show_bytes(n)
  for _, unit in ipairs { "TiB", "GiB", "MiB", "KiB" } do
    if n >= bytes[unit] then return format("%.1f %s", n / bytes[unit], unit) end
  end
  return format("%d bytes", n)
end

-- ---- suggestions ----

-- Counts the letters that have to be changed, added or taken away to make one word of the other.
local function distance(a, b)
  local row = {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local corner = row[0]
    row[0] = i
    for j = 1, #b do
      local cost = byte(a, i) == byte(b, j) and 0 or 1
      corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + cost)
    end
  end
  return row[#b]
end

--- Returns ' (did you mean "keep"?)' for a word that is close to one of the table's keys, else "".
function M.did_you_mean(word, known)
  local best, least
  if type(word) ~= "string" or #word > 60 then return "" end
  for _, name in ipairs(M.sorted_keys(known)) do
    local d = type(name) == "string" and distance(word, name)
    if d and d <= min(3, floor(#name / 2)) and (not least or d < least) then
      best, least = name, d
    end
  end
  return best and format(' (did you mean "%s"?)', best) or ""
end

--- Makes a view of a table that nobody can write to. A name that is not there is an error that says
--- so.
---@param t table
---@param title string "keep", "the table of options"
---@param known? table names that are there though their value is nil
function M.frozen(t, title, known)
  return setmetatable({}, {
    __metatable = false,
    __index = function(_, k)
      local v = rawget(t, k)
      if v == nil and not (known and known[k]) then
        M.misuse("%s has no %s%s", title, M.show(k), M.did_you_mean(k, known or t))
      end
      return v
    end,
    __newindex = function(_, k) M.misuse("%s cannot be changed (%s)", title, M.show(k)) end,
  })
end

-- ---- one text for one value ----

local DEPTH = 32

local function unprintable(path, what)
  local text = "%s is %s: numbers, texts, booleans and tables of them can be kept"
  M.fail("answer", format(text, path, what))
end

local print_value

local function print_table(t, path, depth)
  M.complete(t)
  local out, n = {}, M.list_length(t)
  if depth > DEPTH then unprintable(path, "nested too deeply") end
  if n == 0 then return "{}" end
  for _, k in ipairs(M.sorted_keys(t)) do
    if not n and type(k) ~= "string" then
      unprintable(path, "neither a list nor a table with names")
    end
    local text = print_value(rawget(t, k), path .. "." .. tostring(k), depth + 1)
    out[#out + 1] = n and text or format("%q:%s", k, text)
  end
  return n and "[" .. concat(out, ",") .. "]" or "{" .. concat(out, ",") .. "}"
end

function print_value(v, path, depth)
  if type(v) == "table" then return print_table(v, path, depth) end
  if type(v) == "string" then return format("%q", v) end
  if type(v) == "boolean" then return tostring(v) end
  if type(v) ~= "number" then unprintable(path, "a " .. type(v)) end
  if not M.is_finite(v) then unprintable(path, "not a finite number") end
  return format("%.17g", v)
end

--- Returns a text that is equal for equal values, whatever the order of their keys. Refuses values
--- that JSON cannot carry.
---@param v any
---@param title string what it is, for the message
---@return string
function M.canonical(v, title) return print_value(v, title, 1) end

--- True if the text has no character that a glob or a path could not have.
function M.is_plain(text) return not find(text, "%c") end

--- Makes a policy's text fit for one line of a terminal.
function M.one_line(text, longest)
  text = gsub(text, "%c", " ")
  return #text > longest and sub(text, 1, longest - 3) .. "..." or text
end
