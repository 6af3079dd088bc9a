--- The paths that fit a shell pattern. Part of `ckpt.fs`.

jit.off(true, true)
local core = require "ckpt.core"

--- Returns the names in `dir` that fit one component.
local function matches(fs, dir, part)
  local found = {}
  for _, name in ipairs(fs.list(dir == "" and "." or dir) or {}) do
    local hidden = name:sub(1, 1) == "." and part:sub(1, 1) ~= "."
    if not hidden and core.fs.match(part, name) then found[#found + 1] = name end
  end
  return found
end

---@param fs table `ckpt.fs`
---@param pattern string
---@return string[]
return function(fs, pattern)
  local found = { pattern:match("^/*") ~= "" and "/" or "" }
  for part in pattern:gmatch("[^/]+") do
    local deeper = {}
    for _, dir in ipairs(found) do
      local names = part:find("[*?[]") and matches(fs, dir, part) or { part }
      for _, name in ipairs(names) do
        local path = fs.join(dir, name)
        if fs.lstat(path) then deeper[#deeper + 1] = path end
      end
    end
    found = deeper
  end
  table.sort(found)
  return found
end
