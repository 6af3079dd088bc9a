--- Trees in stores that are written in Lua, as tasks. What they promise is what the engine's
--- transfers do (ckpt.store). One object is held in memory at a time, unless the store can move
--- files itself: `put_file(key, path)` and `get_file(key, path)`.

local download = require "ckpt.store_download"
local forget_above = require "ckpt.store_above"
local job = require "ckpt.job"
local listing = require "ckpt.store_listing"
local record = require "ckpt.store_record"
local upload = require "ckpt.store_upload"

local trees = {}

---@param place ckpt.Store
---@param options ckpt.TreeOptions
---@return ckpt.Job
function trees.upload(place, options) return job.task(upload, place, options) end

---@param place ckpt.Store
---@param options ckpt.TreeOptions
---@return ckpt.Job
function trees.download(place, options)
  local dir = options.dir:gsub("(.)/+$", "%1")
  return job.task(download, place,
    { dir = dir, exclude = options.exclude, merge = options.merge,
      unfinished = options.unfinished })
end

---@param place ckpt.Store
---@param options { uri: string }
---@return ckpt.Job
function trees.delete(place, options)
  return job.task(function()
    local objects, text, name = listing.of(place)
    if not objects then return nil, text, name end
    local done
    done, text, name = forget_above(options.uri, require("ckpt.store").open)
    if not done then return nil, text, name end
    -- The record first, so that what is half gone never looks whole.
    done, text, name = place:delete(record.KEY)
    local moved = { files = 0, bytes = 0 }
    for key in pairs(objects) do
      if not done then return nil, text, name end
      done, text, name = place:delete(key)
      job.yield()
    end
    if not done then return nil, text, name end
    return moved
  end)
end

return trees
