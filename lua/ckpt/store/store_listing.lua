--- Lists stores that are written in Lua, for the transfers to and from them.

jit.off(true, true)

local listing = {}

--- Compares times, which go through texts and through calls that round.
---@param a number
---@param b number
---@return boolean
function listing.same_time(a, b) return math.abs(a - b) < 1e-6 end

--- Tells whether a path that comes from a store stays in the directory that it is written to.
---@param path string
---@return boolean
function listing.is_safe(path)
  if path == "" or path:find("%z") then return false end
  for part in (path .. "/"):gmatch("(.-)/") do
    if part == "" or part == "." or part == ".." then return false end
  end
  return true
end

--- Returns the objects of a store by their keys; none where there is nothing yet.
---@param place ckpt.Store
---@return table<string, ckpt.Object>?
---@return string? text
---@return string? name
function listing.of(place)
  local list, text, name = place:list()
  if not list then
    if name == "ENOENT" or name == "ENOSTORE" then return {} end
    return nil, text, name
  end
  local objects = {}
  for _, object in ipairs(list) do
    if type(object.key) ~= "string" or not listing.is_safe(object.key) then
      return nil, ("%s lists an object %q, which is no key"):format(place.uri,
        tostring(object.key)), "EFORMAT"
    end
    objects[object.key] = object
  end
  return objects
end

--- Tells whether a path lies below a name that the record has, and not as a directory.
---@param entries ckpt.Record
---@param path string
---@return boolean
function listing.is_blocked(entries, path)
  for up in path:gmatch("()/") do
    local above = entries[path:sub(1, up - 1)]
    if above and above.type ~= "directory" then return true end
  end
  return false
end

return listing
