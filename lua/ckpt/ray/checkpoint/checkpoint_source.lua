--- The source of a checkpoint's files: a directory of this machine, or a store.

jit.off(true, true)
local fs = require "ckpt.prims.fs"
local log = require "ckpt.base.log"
local octets = require "ckpt.base.octets"
local records = require "ckpt.ray.checkpoint.checkpoint_records"
local store = require "ckpt.store.store"

local source = {}

-- The record of an uploaded tree, and the partial one that stands for it until the upload is
-- complete.
local WHOLE, PART = ".ckpt-manifest.json", ".ckpt-manifest.part.json"
-- The record in a store that is written in Lua, and the user's notes, which no record has.
local RECORD, METADATA = ".ckpt-tree.json", ".metadata.json"

--- Makes one text for a checkpoint's place, the same for every object of it.
---@param checkpoint ckpt.Checkpoint
---@return string
function source.name(checkpoint)
  local filesystem = checkpoint.filesystem
  if not filesystem.is_local then
    return octets.escape(filesystem.type_name .. ":" .. filesystem:uri(checkpoint.path))
  end
  local path = fs.real(checkpoint.path) or fs.absolute(checkpoint.path) or checkpoint.path
  return octets.escape("local:" .. path)
end

-- Tells what is at a place whose listing has no times: its record has a digest of each file. Nil:
-- nobody can.
local function contents(opened)
  local record = opened:get(RECORD)
  local metadata, _, name = opened:get(METADATA)
  if not record or not metadata and name ~= "ENOENT" then return nil end
  return record .. (metadata or "")
end

--- Returns a digest of the present files, nil if it cannot be told: then nothing is known to be the
--- same.
---@param checkpoint ckpt.Checkpoint
---@return string?
function source.listing(checkpoint)
  local lines = {}
  local filesystem = checkpoint.filesystem
  if filesystem.is_local then
    for _, entry in ipairs(fs.walk(checkpoint.path) or {}) do
      -- Size and time of directories are their file system's business.
      local is_dir = entry.type == "directory"
      lines[#lines + 1] = ("%s %s %.0f %.9f %s"):format(entry.path, entry.type,
        is_dir and 0 or entry.size, is_dir and 0 or entry.mtime, entry.target or "")
    end
  else
    local opened = store.open(filesystem:uri(checkpoint.path))
    local found = opened and opened:list() or {}
    local timeless = false
    for _, object in ipairs(found) do
      timeless = timeless or not (object.size and object.mtime)
      lines[#lines + 1] = ("%s %.0f %.9f"):format(object.key, object.size or 0,
        object.mtime or 0)
    end
    local told = timeless and contents(opened)
    if opened then opened:close() end
    if timeless and not told then return nil end
    if told then lines[#lines + 1] = told end
  end
  return #lines > 0 and records.digest(lines) or nil
end

-- Reports links that lead nowhere, in one warning: somebody will miss the file that one stood for.
local function report_dangling(dir)
  local first, count = nil, 0
  for _, entry in ipairs(fs.walk(dir) or {}) do
    if entry.type == "link" and not fs.exists(fs.join(dir, entry.path)) then
      first, count = first or entry, count + 1
    end
  end
  if not first then return end
  log.warn(("%s: the link %s leads nowhere (to %s)%s"):format(dir, first.path, first.target or "?",
    count > 1 and (", and so do %d more"):format(count - 1) or ""))
end

local function check_directory(path)
  local stat, text, name = fs.stat(path)
  if not stat then return nil, text, name end
  if stat.type == "directory" then return true end
  return nil, path .. " is a file, and a checkpoint is a directory: name the one that it is in",
    "EINVAL"
end

-- Tells whether an upload made the directory: "whole", or "part" if it was cut off or still goes
-- on.
local function uploaded(path)
  if fs.exists(fs.join(path, WHOLE)) then return "whole" end
  return fs.exists(fs.join(path, PART)) and "part" or nil
end

--- Tells whether a directory of this machine may be read as a checkpoint. One that an upload has
--- not finished looks like one, but files are missing.
---@param path string
---@return true?
---@return string? text
---@return string? name "ECONFLICT"
function source.check(path)
  if uploaded(path) ~= "part" then return true end
  return nil, ("an upload to %s goes on, or was cut off: upload it again"):format(path), "ECONFLICT"
end

-- Starts the job that brings the files. An uploaded directory is held against its record, which
-- also knows the links, modes and times.
local function start(checkpoint, to)
  local filesystem, path = checkpoint.filesystem, checkpoint.path
  if not filesystem.is_local then
    return store.download { uri = filesystem:uri(path), dir = to }
  end
  local good, text, name = check_directory(path)
  if not good then return nil, text, name end
  good, text, name = source.check(path)
  if not good then return nil, text, name end
  local from = fs.real(path) or path
  if uploaded(path) then return store.download { uri = fs.absolute(from), dir = to } end
  return store.copy { from = from, to = to }
end

--- Fetches all files into `to`, which is not there yet. Files that a store has digests of are
--- checked.
---@param checkpoint ckpt.Checkpoint
---@param to string
---@return true?
---@return string? text
---@return string? name
function source.fetch(checkpoint, to)
  local transfer, text, name = start(checkpoint, to)
  if not transfer then return nil, text, name end
  local done, why, code = transfer:wait()
  if not done then return nil, why, code end
  -- The copy of a plain directory has told of its links; those of an upload stand in its record.
  local is_plain = checkpoint.filesystem.is_local and not uploaded(checkpoint.path)
  if not is_plain then report_dangling(to) end
  return true
end

return source
