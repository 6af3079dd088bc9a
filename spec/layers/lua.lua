-- What spec/check_layers.lua sees of a Lua file: the modules that it requires or names.

local lua = { files = "-name '*.lua'", verb = "require", foreign = '"%s"' }

-- Behind a comment or a long string that begins at `at`; nil: none does.
local function behind_long(text, at)
  local level = text:match("^%[(=*)%[", at)
  return level and (select(2, text:find("]" .. level .. "]", at, true)) or #text) + 1
end

-- Calls `fn(at, from, upto)` for each quoted string: where its quote stands, and its content.
local function each_string(text, fn)
  local at = 1
  while true do
    at = text:find("[\"'%[%-]", at)
    if not at then return end
    local one = text:sub(at, at)
    if text:sub(at, at + 1) == "--" then
      at = behind_long(text, at + 2) or text:find("\n", at, true) or #text + 1
    elseif one == "[" then
      at = behind_long(text, at) or at + 1
    elseif one == "-" then
      at = at + 1
    else
      local upto = at + 1
      while upto <= #text and text:sub(upto, upto) ~= one do
        upto = upto + (text:sub(upto, upto) == "\\" and 2 or 1)
      end
      fn(at, at + 1, upto - 1)
      at = upto + 1
    end
  end
end

-- Calls `uses(line, module, whose)` for each string after require, whose: "any", and for each other
-- one with a dot, which is a module's name in a table of what is required later: "if ours".
function lua.read(text, uses)
  local line, counted = 1, 1
  each_string(text, function(at, from, upto)
    line = line + select(2, text:sub(counted, at - 1):gsub("\n", ""))
    counted = at
    local before = text:sub(math.max(1, at - 40), at - 1)
    local required = before:find("%f[%w_]require%s*[(,]?%s*$")
    local name = text:sub(from, upto)
    if required or name:find("%.") then uses(line, name, required and "any" or "if ours") end
  end)
end

-- The file that a module is; nil: none of ours.
function lua.find(module, _, exists)
  if not module:find("^[%w_.]+$") then return nil end
  local path = module:gsub("%.", "/")
  local whole = path .. "/init.lua"
  return exists[path .. ".lua"] and path .. ".lua" or exists[whole] and whole or nil
end

return lua
