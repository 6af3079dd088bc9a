--- The file of a checkpoint that is a table. It is JSON, which has texts for keys and one kind of
--- number; so a table that needs more is written as an object with one of these names alone:
---
---     { "%pairs": [[100, 0.5], ["x", 1]] }   has keys that are numbers, and is no list
---     { "%int64": "-5" }, { "%uint64": "5" } an integer of 64 bits
---
--- A table that needs nothing of it is written as it always was; which it is, the metadata says.

jit.off(true, true)
local json = require "ckpt.base.json"

local PAIRS, INT64, UINT64 = "%pairs", "%int64", "%uint64"

-- Deeper than this is a table that contains itself.
local DEPTH_MAX = 900

-- Of an integer of 64 bits, with a sign.
local DIGITS_MAX = 20

local table_checkpoint = {}

local function refuse(text) error({ refused = text }, 0) end

-- Tells how a table is written: "list", "object", "pairs".
local function shape_of(value)
  local count, numbers, highest = 0, 0, 0
  for key in pairs(value) do
    local kind = type(key)
    if kind ~= "string" and kind ~= "number" then
      refuse(("a %s cannot be a key of a saved table: use a text or a number"):format(kind))
    end
    count = count + 1
    if kind == "number" then
      local is_index = key >= 1 and key == math.floor(key)
      numbers, highest = numbers + 1, is_index and math.max(highest, key) or math.huge
    end
  end
  local taken = rawget(value, PAIRS) or rawget(value, INT64) or rawget(value, UINT64)
  if numbers == 0 then return taken and "pairs" or "object" end
  return numbers == count and highest == count and "list" or "pairs"
end

local to_json

-- In the order of the keys, numbers first: the same table makes the same file.
local function to_pairs(value, depth)
  local keys, list = {}, {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) == "number" end
    return a < b
  end)
  for i, key in ipairs(keys) do list[i] = { key, (to_json(value[key], depth)) } end
  return { [PAIRS] = json.list(list) }
end

local function wide(value)
  local digits, sign = tostring(value):match("^(%-?%d+)(U?)LL$")
  if not digits then refuse("a cdata cannot be saved in a table, but for integers of 64 bits") end
  return { [sign == "U" and UINT64 or INT64] = digits }
end

-- Returns what JSON writes for a value, and whether that is not the value itself.
function to_json(value, depth)
  if type(value) == "cdata" then return wide(value), true end
  if type(value) ~= "table" or value == json.null then return value, false end
  if depth > DEPTH_MAX then refuse("a table that contains itself cannot be saved") end
  local shape = shape_of(value)
  if shape == "pairs" then return to_pairs(value, depth + 1), true end
  local copy, changed = {}, false
  for key, inner in pairs(value) do
    local different
    copy[key], different = to_json(inner, depth + 1)
    changed = changed or different
  end
  return changed and copy or value, changed
end

-- The text was checked to be digits, but others may have written it: of ours the integer is spelt
-- so again.
local function integer(digits, suffix)
  local read = #digits <= DIGITS_MAX and loadstring("return " .. digits .. suffix)
  local value = read and read()
  if not value or tostring(value) ~= digits .. suffix then
    refuse("an integer in it does not fit into 64 bits, or is not spelt as one")
  end
  return value
end

local from_json

local function from_pairs(list, depth)
  local value = {}
  for _, pair in ipairs(list) do
    local key = type(pair) == "table" and pair[1]
    local may_be_one = type(key) == "string" or (type(key) == "number" and key == key)
    if not may_be_one then
      refuse("its " .. PAIRS .. " are no pairs of a key and a value")
    end
    value[key] = from_json(pair[2], depth)
  end
  return value
end

function from_json(value, depth)
  if type(value) ~= "table" or value == json.null then return value end
  if depth > DEPTH_MAX then refuse("it is nested too deeply") end
  if type(value[PAIRS]) == "table" then return from_pairs(value[PAIRS], depth + 1) end
  local signed, unsigned = value[INT64], value[UINT64]
  if type(signed) == "string" and signed:find "^%-?%d+$" then return integer(signed, "LL") end
  if type(unsigned) == "string" and unsigned:find "^%d+$" then return integer(unsigned, "ULL") end
  for key, inner in pairs(value) do
    -- Only the value of a key that is there changes, so the loop may go on.
    value[key] = from_json(inner, depth + 1)
  end
  return value
end

local function guarded(fn, value)
  local fine, answer, more = pcall(fn, value, 1)
  if fine then return answer, more end
  if type(answer) == "table" and answer.refused then return nil, answer.refused end
  error(answer, 0)
end

--- Returns the text of the file.
---@param checkpoint table
---@return string? text nil if something in it cannot be saved
---@return boolean|string # whether the metadata has to say so; else what is wrong
function table_checkpoint.encode(checkpoint)
  local value, typed = guarded(to_json, checkpoint)
  if value == nil then return nil, typed end
  local text, problem = json.encode(value)
  if not text then return nil, problem --[[@as string]] end
  return text, typed
end

--- Returns the table, with the keys and numbers that it had.
---@param value table as JSON has it
---@return table?
---@return string? problem
function table_checkpoint.restore(value) return guarded(from_json, value) end

return table_checkpoint
