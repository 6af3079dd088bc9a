--- Turns any bytes into ASCII, for JSON, which has no place for a name that is not UTF-8.

jit.off(true, true)

local octets = {}

---@param bytes string
---@return string
function octets.escape(bytes)
  return (bytes:gsub("[%%\128-\255]", function(c) return ("%%%02x"):format(c:byte()) end))
end

--- Turns the text back into bytes.
---@param text string
---@return string
function octets.unescape(text)
  return (text:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

return octets
