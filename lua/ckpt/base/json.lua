--- JSON as the metadata of a checkpoint is written: in one piece, ", " and ": " between the parts,
--- all but ASCII escaped, NaN and Infinity as such.
---
--- What is read and written again stays what it was: an empty list stays a list, the keys of an
--- object keep their order, and `null` is `json.null`, because nil would remove the key.

jit.off(true, true)
local core = require "ckpt.core"
local decoder = require "ckpt.base.json_decode"
local marks = require "ckpt.base.json_marks"
local misuse = require "ckpt.base.misuse"

---@class ckpt.json
local json = {}

--- This value stands for `null`.
json.null = marks.null

-- Deeper than this is a table that contains itself, or no data that anybody meant to write.
local DEPTH_MAX = 1000

local ESCAPES = {
  ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r",
  ["\t"] = "\\t",
}

local function refuse(text) error({ refused = text }, 0) end

-- Returns one character of UTF-8 at `i`: its number and the position after it. Halves of a
-- surrogate pair pass: a reader may have met one that stood alone.
local function character(text, i)
  local first = text:byte(i)
  local length = first < 0x80 and 1 or first < 0xc2 and 0 or first < 0xe0 and 2
    or first < 0xf0 and 3 or first < 0xf5 and 4 or 0
  if length == 0 or i + length - 1 > #text then return nil end
  local code = length == 1 and first or first % 2 ^ (7 - length)
  for k = i + 1, i + length - 1 do
    local byte = text:byte(k)
    if byte < 0x80 or byte > 0xbf then return nil end
    code = code * 64 + byte - 0x80
  end
  local least = length == 3 and 0x800 or length == 4 and 0x10000 or 0
  if code < least or code > 0x10ffff then return nil end
  return code, i + length
end

local function escape_wide(run)
  local out, i = {}, 1
  while i <= #run do
    local code, after = character(run, i)
    if not code then return nil end
    if code > 0xffff then
      code = code - 0x10000
      out[#out + 1] = ("\\u%04x\\u%04x"):format(0xd800 + math.floor(code / 0x400),
        0xdc00 + code % 0x400)
    else
      out[#out + 1] = ("\\u%04x"):format(code)
    end
    i = after
  end
  return table.concat(out)
end

local function encode_text(text)
  local escaped = text:gsub('[%c"\\]', function(c)
    return ESCAPES[c] or ("\\u%04x"):format(c:byte())
  end)
  if not escaped:find("[\128-\255]") then return '"' .. escaped .. '"' end
  local whole = escaped:gsub("[\128-\255]+", function(run)
    return escape_wide(run) or refuse("a text that is not UTF-8 cannot be put into JSON: keep "
      .. "bytes in a file of the checkpoint")
  end)
  return '"' .. whole .. '"'
end

local function encode_number(n)
  if n ~= n then return "NaN" end
  if n == math.huge then return "Infinity" end
  if n == -math.huge then return "-Infinity" end
  if n == 0 and 1 / n < 0 then return "-0.0" end
  if n == math.floor(n) and math.abs(n) < 2 ^ 53 then return ("%d"):format(n) end
  for digits = 15, 17 do
    local text = ("%." .. digits .. "g"):format(n)
    if tonumber(text) == n then return text end
  end
end

-- 64-bit integers of LuaJIT.
local function encode_wide(value)
  local digits = tostring(value):match("^(%-?%d+)U?LL$")
  return digits or refuse("a cdata cannot be put into JSON")
end

local function key_text(key)
  if type(key) == "string" then return key end
  if type(key) == "number" then return encode_number(key) end
  refuse(("a %s cannot be a key in JSON: use a text"):format(type(key)))
end

-- Returns the texts of the keys in the order in which they are written, and the key that each
-- stands for: those that have a place come first, the others by their bytes.
local function ordered_keys(value)
  local keys, of, place = {}, {}, {}
  for i, key in ipairs(marks.order_of(value)) do place[key] = i end
  for key in pairs(value) do
    local text = key_text(key)
    if of[text] ~= nil then refuse(("two keys of a table are both %q in JSON"):format(text)) end
    of[text] = key
    keys[#keys + 1] = text
  end
  table.sort(keys, function(a, b)
    local x, y = place[a], place[b]
    if x and y then return x < y end
    if x or y then return x ~= nil end
    return a < b
  end)
  return keys, of
end

-- Tells whether a table is a list: it has the keys 1 ... n and no others. An empty table is an
-- object unless it is marked.
local function is_list(value)
  local count = 0
  for key in pairs(value) do
    if type(key) ~= "number" then return false end
    count = count + 1
  end
  if count == 0 then return marks.is_list(value) end
  return count == #value and not marks.is_object(value)
end

local encode_value

local function encode_table(value, depth)
  if depth > DEPTH_MAX then refuse("a table that contains itself cannot be put into JSON") end
  local parts = {}
  if is_list(value) then
    for i = 1, #value do parts[i] = encode_value(value[i], depth + 1) end
    return "[" .. table.concat(parts, ", ") .. "]"
  end
  local keys, of = ordered_keys(value)
  for i, key in ipairs(keys) do
    parts[i] = encode_text(key) .. ": " .. encode_value(value[of[key]], depth + 1)
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

function encode_value(value, depth)
  local kind = type(value)
  if value == json.null then return "null" end
  if kind == "string" then return encode_text(value) end
  if kind == "number" then return encode_number(value) end
  if kind == "boolean" then return tostring(value) end
  if kind == "cdata" then return encode_wide(value) end
  if kind ~= "table" then refuse(("a %s cannot be put into JSON"):format(kind)) end
  return marks.literal(value) or encode_table(value, depth)
end

--- Returns the JSON text of a value. The keys of an object come in the order that it was read with
--- or that `order` gave it, others after them by their bytes.
---@param value any texts in UTF-8, numbers, booleans, tables, json.null
---@return string? text nil if something in it has no place in JSON
---@return string? problem
function json.encode(value)
  local ok, text = pcall(encode_value, value, 1)
  if ok then return text end
  if type(text) == "table" and text.refused then return nil, text.refused end
  error(text, 0)
end

--- Returns the value of a JSON text. NaN, Infinity and -Infinity are numbers. A text that would
--- take more than 64 MiB as a tree is refused before it is one: most texts that are read here
--- others wrote.
---@param text string
---@param exact? boolean numbers stay as they are written, so that encode loses nothing
---@return any value nil if it is no JSON
---@return string? problem with its place
function json.decode(text, exact)
  if type(text) ~= "string" then
    misuse(("json.decode: `text` is a %s"):format(type(text)))
  end
  local fine, problem = core.weigh(text)
  if not fine then return nil, problem end
  return decoder(text, exact, DEPTH_MAX)
end

--- Marks a table as a list, so that an empty one is written as [].
---@param value table
---@return table # the same
function json.list(value)
  if type(value) ~= "table" then misuse("json.list: it takes a table") end
  return marks.list(value)
end

--- Tells whether a value is written as an object.
---@param value any
---@return boolean
function json.is_object(value)
  return type(value) == "table" and not marks.literal(value) and not is_list(value)
end

--- Says in which order the keys of a table are written; a Lua table has none of its own.
---@param value table
---@param keys string[]
---@return table # the same
function json.order(value, keys)
  if type(value) ~= "table" or type(keys) ~= "table" then
    misuse("json.order: it takes a table and the list of its keys")
  end
  return marks.object(value, keys)
end

return json
