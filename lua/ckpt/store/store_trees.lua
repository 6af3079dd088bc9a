--- Trees in stores that are written in Lua, as tasks. They promise the same as the engine's
--- transfers (ckpt.store). One object is held in memory at a time, unless the store can move files
--- itself: `put_file(key, path)` and `get_file(key, path)`.

jit.off(true, true)
local download = require "ckpt.store.store_download"
local fs = require "ckpt.prims.fs"
local forget_above = require "ckpt.store.store_above"
local job = require "ckpt.job.job"
local listing = require "ckpt.store.store_listing"
local record = require "ckpt.store.store_record"
local scratch = require "ckpt.prims.scratch"
local upload = require "ckpt.store.store_upload"

local trees = {}

-- Tells whether a link's text leads out of the tree.
local function leads_out(path, target)
  if target:sub(1, 1) == "/" then return true end
  local _, depth = path:gsub("/", "")
  for part in target:gmatch("[^/]+") do
    depth = depth + (part == ".." and -1 or part == "." and 0 or 1)
    if depth < 0 then return true end
  end
  return false
end

local function has_link_out(options)
  for _, entry in ipairs(fs.walk(fs.real(options.dir) or options.dir) or {}) do
    if entry.type == "link" and leads_out(entry.path, entry.target)
      and not fs.excluded(options.exclude or {}, entry.path) then
      return true
    end
  end
  return false
end

-- Only the engine can tell which links may be followed: its copy has the files that they lead to.
local function upload_followed(place, options)
  if not has_link_out(options) then return upload(place, options) end
  return scratch(nil, "ckpt-upload-", function(at)
    local to = fs.join(at, "tree")
    local done, text, name = require("ckpt.store.store").copy {
      from = options.dir, to = to, exclude = options.exclude }:wait()
    if not done then return nil, text, name end
    return upload(place, { dir = to, exclude = options.exclude })
  end)
end

---@param place ckpt.Store
---@param options ckpt.TreeOptions
---@return ckpt.Job
function trees.upload(place, options) return job.task(upload_followed, place, options) end

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
    done, text, name = forget_above(options.uri, require("ckpt.store.store").open)
    if not done then return nil, text, name end
    -- The record goes first, so that a place that is half gone never looks whole.
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
