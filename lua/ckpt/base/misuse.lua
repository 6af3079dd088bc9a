--- Raises at the line of the user, however deep in the library the mistake is seen.

jit.off(true, true)

local HOME = debug.getinfo(1, "S").source:match("^(.*/)base/") -- "@/usr/share/lua/5.1/ckpt/"

--- Raises `text` at the first caller that is no file of the library.
---@param text string what is wrong, and what to do
local function misuse(text)
  local level = 2
  local info = debug.getinfo(level, "S")
  while info and (info.what == "C" or info.source:sub(1, #HOME) == HOME) do
    level = level + 1
    info = debug.getinfo(level, "S")
  end
  error(text, info and level or 2)
end

return misuse
