--- An upload to a store that is written in Lua. It gives way after each file.

jit.off(true, true)
local digest = require "ckpt.prims.digest"
local fs = require "ckpt.prims.fs"
local job = require "ckpt.job.job"
local listing = require "ckpt.store.store_listing"
local record = require "ckpt.store.store_record"
local scratch = require "ckpt.prims.scratch"

-- A file that is rewritten while it is read, or that vanishes, is read so often.
local TRIES = 3
-- The record of the sent bytes is written after so many.
local BATCH = 2 ^ 30
-- The limit of one object, without put_file.
local OBJECT_MAX = 2 ^ 30

local function put_file(place, key, path)
  if place.inner.put_file then return place.inner:put_file(key, path) end
  local data, text, name = fs.read(path, OBJECT_MAX)
  if not data then return nil, text, name end
  return place:put(key, data)
end

-- Sends a file that nobody writes to; ERETIRED if somebody did.
local function send_still(place, path, key)
  local before, data, text, name
  before, text, name = fs.lstat(path)
  if before then data, text, name = digest.file(path) end
  if data then
    local done
    done, text, name = put_file(place, key, path)
    if not done then return nil, text, name end
  end
  local after = fs.lstat(path)
  if not before or not data or not after or after.size ~= before.size
    or after.mtime ~= before.mtime or after.inode ~= before.inode then
    if name and name ~= "ENOENT" then return nil, text, name end
    return nil, path .. " changed while it was read", "ERETIRED"
  end
  return { type = "file", mode = before.mode, mtime = before.mtime, size = before.size,
    digest = data }
end

-- Sends a file. To one that grows, as a log does, nobody writes once it is copied.
local function send(place, path, key)
  local sent, text, name = send_still(place, path, key)
  if sent or name ~= "ERETIRED" then return sent, text, name end
  return scratch(nil, "ckpt-upload-", function(at)
    local copy = fs.join(at, "copy")
    local done, why, code = fs.copy_file(path, copy, { live = true })
    if not done then return nil, why, code end
    return send_still(place, copy, key)
  end)
end

local function is_there(entry, old, object)
  return old and old.type == "file" and old.size == entry.size
    and listing.same_time(old.mtime, entry.mtime) and object and object.size == entry.size
end

-- Keeps the entries of files that are there, and are not here any more.
local function keep_old(entries, old, objects)
  for path, entry in pairs(old) do
    local blocked = entries[path] ~= nil or (entry.type == "file" and not objects[path])
    if not blocked and not listing.is_blocked(entries, path) then entries[path] = entry end
  end
end

local function is_taken(options, entry)
  return not fs.excluded(options.exclude or {}, entry.path)
end

-- `sent` has the entries of the files that an earlier try sent: those stay as they were sent.
local function send_all(place, options, objects, old, sent, moved)
  local dir = fs.real(options.dir)
  local stat = dir and fs.stat(dir)
  if not stat then return nil, "there is no directory " .. options.dir, "ENOENT" end
  local list, text, name = fs.walk(dir, function(entry)
    return not is_taken(options, entry) and "skip" or nil
  end)
  if not list then return nil, text, name end
  local entries, batch, retired = {}, 0, nil
  for _, entry in ipairs(list) do
    if is_taken(options, entry) and entry.path ~= record.KEY and entry.path ~= record.PART then
      local new = { type = entry.type, mode = entry.mode, mtime = entry.mtime,
        target = entry.target }
      if entry.type == "other" then
        return nil, fs.join(dir, entry.path) .. " is a socket, pipe or device: exclude it", "EINVAL"
      elseif entry.type == "file" and sent[entry.path] then
        new = sent[entry.path]
      elseif entry.type == "file" and is_there(entry, old[entry.path], objects[entry.path]) then
        new = old[entry.path]
      elseif entry.type == "file" then
        new, text, name = send(place, fs.join(dir, entry.path), entry.path)
        if not new and name ~= "ERETIRED" then return nil, text, name end
        retired = retired or not new and text or nil
        if new then
          sent[entry.path], old[entry.path] = new, new
          objects[entry.path] = { key = entry.path, size = new.size }
          batch = batch + new.size
          moved.files, moved.bytes = moved.files + 1, moved.bytes + new.size
        end
        if batch >= BATCH then
          batch = 0
          local written, why, code = record.write(place, old, record.PART)
          if not written then return nil, why, code end
        end
        job.yield()
      end
      entries[entry.path] = new
    end
  end
  if retired then return nil, retired, "ERETIRED" end
  keep_old(entries, old, objects)
  return entries
end

--- Makes the task's function: it does as ckpt.store.upload.
---@param place ckpt.Store
---@param options ckpt.TreeOptions
---@return { files: integer, bytes: number }?
---@return string? text
---@return string? name
local function upload(place, options)
  if not fs.stat(options.dir) then
    return nil, "there is no directory " .. options.dir, "ENOENT"
  end
  local objects, text, name = listing.of(place)
  if not objects then return nil, text, name end
  local old, done
  old, text, name = record.read(place)
  if old == false then old, text, name = record.read(place, record.PART) end
  if old == nil and name ~= "EFORMAT" then return nil, text, name end
  old = old or {}
  done, text, name = record.write(place, old, record.PART)
  if done then done, text, name = place:delete(record.KEY) end
  if not done then return nil, text, name end
  local entries
  local sent, moved = {}, { files = 0, bytes = 0 }
  for _ = 1, TRIES do
    entries, text, name = send_all(place, options, objects, old, sent, moved)
    if entries or name ~= "ERETIRED" then break end
  end
  if not entries then return nil, text, name end
  done, text, name = record.write(place, entries)
  if done then done, text, name = place:delete(record.PART) end
  if not done then return nil, text, name end
  return moved
end

return upload
