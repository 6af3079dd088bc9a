--- Takes a place that is removed out of the records of the places above, in stores that are written
--- in Lua: so the rest there is whole without it.

jit.off(true, true)
local job = require "ckpt.job.job"
local record = require "ckpt.store.store_record"

local function forget(place, removed)
  local entries, text, name = record.read(place)
  -- A record that cannot be read is not held against any download.
  if not entries then return (entries == false or name == "EFORMAT") or nil, text, name end
  local kept, changed = {}, false
  for path, entry in pairs(entries) do
    if path == removed or path:sub(1, #removed + 1) == removed .. "/" then
      changed = true
    else
      kept[path] = entry
    end
  end
  if not changed then return true end
  return record.write(place, kept)
end

--- Takes a place out of all records above it.
---@param uri string of the place
---@param open fun(uri: string): ckpt.Store?, string?, string?
---@return true?
---@return string? text
---@return string? name
return function(uri, open)
  local above, removed = uri:match("^(.-://.+)/([^/]+)/*$")
  while above do
    -- A place that cannot be opened was never uploaded to.
    local place = open(above)
    if place then
      local done, text, name = forget(place, removed)
      place:close()
      if not done then return nil, text, name end
      job.yield()
    end
    local base
    above, base = above:match("^(.-://.+)/([^/]+)$")
    removed = base and base .. "/" .. removed
  end
  return true
end
