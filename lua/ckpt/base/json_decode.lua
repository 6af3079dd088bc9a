--- Reads JSON. A fault is told with its line and column, as people look for it.

jit.off(true, true)
local marks = require "ckpt.base.json_marks"

local WORDS = {
  ["true"] = true, ["false"] = false, null = marks.null,
  NaN = 0 / 0, Infinity = math.huge, ["-Infinity"] = -math.huge,
}

local UNESCAPES = {
  ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t",
}

local function place(text, at)
  local line, start = 1, 1
  for after in text:sub(1, at - 1):gmatch("\n()") do line, start = line + 1, after end
  return ("line %d column %d (char %d)"):format(line, at - start + 1, at - 1)
end

local function stop(state, what, at)
  error({ problem = ("%s: %s"):format(what, place(state.text, at)) }, 0)
end

local function skip(state, at) return state.text:find("[^ \t\r\n]", at) or #state.text + 1 end

local function utf8(code)
  if code < 0x80 then return string.char(code) end
  local bytes, least = {}, 0x40
  repeat
    table.insert(bytes, 1, string.char(0x80 + code % 64))
    code, least = math.floor(code / 64), least / 2
  until code < least
  local head = #bytes == 1 and 0xc0 or #bytes == 2 and 0xe0 or 0xf0
  return string.char(head + code) .. table.concat(bytes)
end

-- Reads the character of \uXXXX at `at` (its backslash) and returns the position after it.
local function unicode(state, at)
  local text = state.text
  local digits = text:match("^\\u(%x%x%x%x)", at)
  if not digits then stop(state, "Invalid \\uXXXX escape", at) end
  local code = tonumber(digits, 16)
  if code >= 0xd800 and code < 0xdc00 then
    local low = tonumber(text:match("^\\u(%x%x%x%x)", at + 6) or "0", 16)
    if low >= 0xdc00 and low < 0xe000 then
      return utf8(0x10000 + (code - 0xd800) * 0x400 + low - 0xdc00), at + 12
    end
  end
  return utf8(code), at + 6
end

-- Reads a text whose opening quote is at `at`.
local function read_text(state, at)
  local text, parts, begin = state.text, {}, at
  at = at + 1
  while true do
    local stretch = text:match('^[^%c"\\]+', at)
    if stretch then
      parts[#parts + 1] = stretch
      at = at + #stretch
    end
    local c = text:sub(at, at)
    if c == '"' then return table.concat(parts), at + 1 end
    if c == "" then stop(state, "Unterminated string starting at", begin) end
    if c == "\127" then
      parts[#parts + 1], at = c, at + 1
    elseif c ~= "\\" then
      stop(state, "Invalid control character at", at)
    elseif text:sub(at + 1, at + 1) == "u" then
      parts[#parts + 1], at = unicode(state, at)
    else
      local plain = UNESCAPES[text:sub(at + 1, at + 1)]
      if not plain then stop(state, "Invalid \\escape", at) end
      parts[#parts + 1], at = plain, at + 2
    end
  end
end

local read_value

local function read_list(state, at, depth)
  local list = marks.list({})
  at = skip(state, at + 1)
  if state.text:sub(at, at) == "]" then return list, at + 1 end
  while true do
    list[#list + 1], at = read_value(state, at, depth)
    at = skip(state, at)
    local c = state.text:sub(at, at)
    if c == "]" then return list, at + 1 end
    if c ~= "," then stop(state, "Expecting ',' delimiter", at) end
    at = skip(state, at + 1)
  end
end

local function read_object(state, at, depth)
  local object, keys, text = {}, {}, state.text
  at = skip(state, at + 1)
  if text:sub(at, at) == "}" then return marks.object(object, keys), at + 1 end
  while true do
    if text:sub(at, at) ~= '"' then
      stop(state, "Expecting property name enclosed in double quotes", at)
    end
    local key
    key, at = read_text(state, at)
    at = skip(state, at)
    if text:sub(at, at) ~= ":" then stop(state, "Expecting ':' delimiter", at) end
    if object[key] == nil then keys[#keys + 1] = key end
    object[key], at = read_value(state, skip(state, at + 1), depth)
    at = skip(state, at)
    local c = text:sub(at, at)
    if c == "}" then return marks.object(object, keys), at + 1 end
    if c ~= "," then stop(state, "Expecting ',' delimiter", at) end
    at = skip(state, at + 1)
  end
end

local function read_number(state, at)
  local text = state.text
  local whole = text:match("^%-?0", at) or text:match("^%-?[1-9]%d*", at)
  if not whole then return nil end
  local after = at + #whole
  for _, part in ipairs { "^%.%d+", "^[eE][+-]?%d+" } do
    after = after + #(text:match(part, after) or "")
  end
  local digits = text:sub(at, after - 1)
  return state.exact and marks.written(digits) or tonumber(digits), after
end

function read_value(state, at, depth)
  if depth > state.depth_max then stop(state, "Nested too deeply", at) end
  local text = state.text
  local c = text:sub(at, at)
  if c == '"' then return read_text(state, at) end
  if c == "{" then return read_object(state, at, depth + 1) end
  if c == "[" then return read_list(state, at, depth + 1) end
  local word = text:match("^%-?%a+", at)
  if word and WORDS[word] ~= nil then return WORDS[word], at + #word end
  local number, after = read_number(state, at)
  if number == nil then stop(state, "Expecting value", at) end
  return number, after
end

--- Returns the value, or nil and the fault.
return function(text, exact, depth_max)
  local state = { text = text, exact = exact, depth_max = depth_max }
  local ok, value = pcall(function()
    local found, after = read_value(state, skip(state, 1), 1)
    after = skip(state, after)
    if after <= #text then stop(state, "Extra data", after) end
    return found
  end)
  if ok then return value end
  if type(value) == "table" and value.problem then return nil, value.problem end
  error(value, 0)
end
