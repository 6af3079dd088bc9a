--- Options by their names. A misspelt one would do nothing, and nobody would see that.

jit.off(true, true)
local misuse = require "ckpt.base.misuse"

---@class ckpt.options
local options = {}

-- Counts the letters to add, leave out, change or swap with the next one.
local function distance(a, b)
  local rows = {}
  for i = 0, #a do rows[i] = { [0] = i } end
  for k = 0, #b do rows[0][k] = k end
  for i = 1, #a do
    for k = 1, #b do
      local same = a:byte(i) == b:byte(k)
      local least = math.min(rows[i - 1][k] + 1, rows[i][k - 1] + 1,
        rows[i - 1][k - 1] + (same and 0 or 1))
      if i > 1 and k > 1 and a:byte(i) == b:byte(k - 1) and a:byte(i - 1) == b:byte(k) then
        least = math.min(least, rows[i - 2][k - 2] + 1)
      end
      rows[i][k] = least
    end
  end
  return rows[#a][#b]
end

local function bare(name) return (name:lower():gsub("[_-]", "")) end

--- Returns the known name that a misspelt one is close to.
---@param name any
---@param known table<string, any>
---@return string?
function options.meant(name, known)
  if type(name) ~= "string" then return nil end
  local best, least
  for candidate in pairs(known) do
    local off = bare(name) == bare(candidate) and 0 or distance(bare(name), bare(candidate))
    local near = off <= math.min(2, math.floor(#candidate / 3))
    if near and (not least or off < least or off == least and candidate < best) then
      best, least = candidate, off
    end
  end
  return best
end

--- Returns " (did you mean `sync_period`?)" for a name that is close to a known one, else "".
---@param name any
---@param known table<string, any>
---@return string
function options.hint(name, known)
  local meant = options.meant(name, known)
  return meant and (" (did you mean `%s`?)"):format(meant) or ""
end

--- Raises for options that are no table, and for one of a name that is not known.
---@param what string whose options they are, for the message
---@param given any nil: none
---@param known table<string, any>
---@return table # the options
function options.check(what, given, known)
  if given == nil then return {} end
  if type(given) ~= "table" then
    misuse(("%s: its options are a %s, not a table"):format(what, type(given)))
  end
  for name in pairs(given) do
    if known[name] == nil then
      misuse(("%s: there is no option `%s`%s"):format(what, tostring(name),
        options.hint(name, known)))
    end
  end
  return given
end

return options
