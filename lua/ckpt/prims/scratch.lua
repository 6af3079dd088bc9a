--- A directory for as long as some work takes: to unpack, pack or copy beside a place.

jit.off(true, true)
local finally = require "ckpt.base.finally"
local fs = require "ckpt.prims.fs"

--- Calls `work` with the path of a fresh directory, which is gone afterwards, also after an error.
---@param parent? string where; nil: the directory for temporary files
---@param prefix? string what its name begins with
---@param work fun(directory: string): any, string?, string?
---@return any # what `work` returned
---@return string? text
---@return string? name
local function scratch(parent, prefix, work)
  local directory, text, name = fs.temporary_directory(parent, prefix)
  if not directory then return nil, text, name end
  return finally(function() fs.remove_tree(directory) end, work, directory)
end

return scratch
