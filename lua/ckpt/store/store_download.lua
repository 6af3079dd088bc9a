--- A download from a store that is written in Lua. It gives way after each file.

jit.off(true, true)
local bit = require "bit"
local digest = require "ckpt.prims.digest"
local fs = require "ckpt.prims.fs"
local job = require "ckpt.job.job"
local listing = require "ckpt.store.store_listing"
local record = require "ckpt.store.store_record"

local function fetch(place, key, path, entry, size)
  local done, data, text, name
  done, text, name = fs.mkdirs(fs.parent(path))
  if not done then return nil, text, name end
  if place.inner.get_file then
    done, text, name = place.inner:get_file(key, path)
  else
    data, text, name = place:get(key)
    if data then done, text, name = fs.write(path, data) else done = nil end
  end
  if not done then
    if name == "ENOENT" and entry then name = "ECORRUPT" end
    return nil, text, name
  end
  -- Without a record only the listing is known. The metadata may change at any time.
  if not entry then
    local here = fs.lstat(path)
    if not size or key == ".metadata.json" or (here and here.size == size) then return true end
    return nil, ("%s of %s has %d bytes, and %s are listed: it changed, or was cut off"):format(key,
      place.uri, here and here.size or 0, tostring(size)), "ERETIRED"
  end
  local found
  found, text, name = digest.file(path)
  if not found then return nil, text, name end
  if found ~= entry.digest then
    return nil, ("%s of %s is not what was uploaded"):format(key, place.uri), "ECORRUPT"
  end
  return true
end

-- Goes deepest first: a file that is made in a directory moves its time.
local function finish(stage, entries)
  local paths = {}
  for path in pairs(entries) do paths[#paths + 1] = path end
  table.sort(paths, function(a, b) return a > b end)
  for _, path in ipairs(paths) do
    local entry, full = entries[path], fs.join(stage, path)
    local done, text, name = true, nil, nil
    if entry.type == "link" then
      done, text, name = fs.symlink(entry.target, full)
    elseif fs.lstat(full) then -- a file that was here already is not among them
      local owner = entry.type == "directory" and 448 or 0 -- 0700, or it could not be moved
      done, text, name = fs.chmod(full, bit.bor(bit.band(entry.mode, 511), owner))
      if done then done, text, name = fs.utime(full, entry.mtime) end
    end
    if not done then return nil, text, name end
  end
  return fs.sync_tree(stage)
end

local function is_here(options, path, size, mtime)
  local here = options.merge and fs.lstat(fs.join(options.dir, path))
  return here and here.type == "file" and here.size == size and listing.same_time(here.mtime, mtime)
end

local function fetch_all(place, options, stage, objects, entries)
  local moved = { files = 0, bytes = 0 }
  local wanted = {}
  for path, entry in pairs(entries) do
    if entry.type == "file" and not objects[path] then
      return nil, ("%s is missing at %s: its record has it"):format(path, place.uri), "ECORRUPT"
    end
    if entry.type == "directory" then
      local done, text, name = fs.mkdirs(fs.join(stage, path))
      if not done then return nil, text, name end
    end
    wanted[path] = entry.type == "file" and entry or nil
  end
  for key, object in pairs(objects) do
    if not entries[key] then wanted[key] = { size = object.size } end
  end
  for key, entry in pairs(wanted) do
    if not (entry.digest and is_here(options, key, entry.size, entry.mtime)) then
      local path = fs.join(stage, key)
      local done, text, name = fetch(place, key, path, entry.digest and entry, entry.size)
      if not done then return nil, text, name end
      local stat = fs.lstat(path)
      moved.files, moved.bytes = moved.files + 1, moved.bytes + (stat and stat.size or 0)
      job.yield()
    end
  end
  return moved
end

-- Drops entries that are excluded, or lie below a name that the record has as no directory.
local function drop(list, options, entries)
  for path in pairs(list) do
    if fs.excluded(options.exclude or {}, path) or listing.is_blocked(entries, path) then
      list[path] = nil
    end
  end
end

local function merge(stage, dir)
  local list, text, name = fs.walk(stage)
  for _, entry in ipairs(list or {}) do
    local from, to = fs.join(stage, entry.path), fs.join(dir, entry.path)
    local there, done = fs.lstat(to), true
    if entry.type ~= "directory" then
      done, text, name = fs.rename(from, to)
    elseif not there then
      done, text, name = fs.mkdirs(to, entry.mode)
    elseif there.type ~= "directory" then
      return nil, to .. " is here, and no directory", "EEXISTS"
    end
    if not done then return nil, text, name end
  end
  return list and true, text, name
end

local function show(stage, options)
  if not fs.lstat(options.dir) then
    local done, text, name = fs.publish(stage, options.dir)
    if done or name ~= "EEXISTS" or not options.merge then return done, text, name end
  end
  if not options.merge then return nil, options.dir .. " is there already", "EEXISTS" end
  return merge(stage, options.dir)
end

local function download_into(place, options, stage, objects, entries)
  local moved, done, text, name
  moved, text, name = fetch_all(place, options, stage, objects, entries)
  if not moved then return nil, text, name end
  done, text, name = finish(stage, entries)
  if done then done, text, name = show(stage, options) end
  if not done then return nil, text, name end
  return moved
end

--- Makes the task's function: it does as ckpt.store.download.
---@param place ckpt.Store
---@param options ckpt.TreeOptions
---@return { files: integer, bytes: number }?
---@return string? text
---@return string? name
local function download(place, options)
  if not options.merge and fs.lstat(options.dir) then
    return nil, options.dir .. " is there already", "EEXISTS"
  end
  local objects, entries, text, name
  objects, text, name = listing.of(place)
  if not objects then return nil, text, name end
  entries, text, name = record.read(place)
  if entries == nil then return nil, text, name end
  if not entries and objects[record.PART] and not options.unfinished then
    return nil, ("an upload to %s goes on, or was cut off: upload it again, or ask for what there "
      .. "is of it (`unfinished`)"):format(place.uri), "ECONFLICT"
  end
  objects[record.KEY], objects[record.PART] = nil, nil
  if not entries and not next(objects) then
    return nil, "nothing is at " .. place.uri, "ENOENT"
  end
  entries = entries or {}
  drop(objects, options, entries)
  drop(entries, options, entries)
  local parent, absent = fs.parent(options.dir), {}
  local above = parent
  while not fs.lstat(above) do
    absent[#absent + 1] = above
    above = fs.parent(above)
  end
  local done, outer
  done, text, name = fs.mkdirs(parent)
  if done then
    outer, text, name = fs.temporary_directory(parent, "." .. fs.base(options.dir) .. ".ckpt-")
  end
  if not outer then return nil, text, name end
  local stage = fs.join(outer, "tree")
  fs.mkdirs(stage)
  local moved
  -- A cancelled task is thrown out of its yield.
  done, moved, text, name = pcall(download_into, place, options, stage, objects, entries)
  fs.remove_tree(outer)
  if not (done and moved) then
    for _, made in ipairs(absent) do os.remove(made) end -- those that are empty
  end
  if not done then error(moved, 0) end
  return moved, text, name
end

return download
