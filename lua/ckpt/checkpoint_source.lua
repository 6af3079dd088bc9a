--- Where a checkpoint's files come from: a directory of this machine, or a store.

local fs = require "ckpt.fs"
local log = require "ckpt.log"
local octets = require "ckpt.octets"
local records = require "ckpt.checkpoint_records"
local store = require "ckpt.store"

local source = {}

-- The record of an uploaded tree, and what stands for it until the upload is complete.
local WHOLE, PART = ".ckpt-manifest.json", ".ckpt-manifest.part.json"

--- One text for a checkpoint's place, the same for every object of it.
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

--- A digest of what is there now, nil if it cannot be told: then nothing is known to be the same.
---@param checkpoint ckpt.Checkpoint
---@return string?
function source.listing(checkpoint)
  local lines = {}
  local filesystem = checkpoint.filesystem
  if filesystem.is_local then
    for _, entry in ipairs(fs.walk(checkpoint.path) or {}) do
      -- Those of a directory are its file system's business.
      local is_dir = entry.type == "directory"
      lines[#lines + 1] = ("%s %s %.0f %.9f %s"):format(entry.path, entry.type,
        is_dir and 0 or entry.size, is_dir and 0 or entry.mtime, entry.target or "")
    end
  else
    local opened = store.open(filesystem:uri(checkpoint.path))
    local found = opened and opened:list()
    if opened then opened:close() end
    for _, object in ipairs(found or {}) do
      lines[#lines + 1] = ("%s %.0f %.9f"):format(object.key, object.size or 0,
        object.mtime or 0)
    end
  end
  return #lines > 0 and records.digest(lines) or nil
end

-- A link stays one; one that leads nowhere is told, because somebody will miss what it stood for.
local function report_dangling(dir, origin)
  for _, entry in ipairs(fs.walk(dir) or {}) do
    if entry.type == "link" and not fs.exists(fs.join(origin or dir, entry.path)) then
      log.warn(("%s: the link %s leads nowhere (to %s)"):format(origin or dir, entry.path,
        entry.target or "?"))
    end
  end
end

local function check_directory(path)
  local stat, text, name = fs.stat(path)
  if not stat then return nil, text, name end
  if stat.type == "directory" then return true end
  return nil, path .. " is a file, and a checkpoint is a directory: name the one that it is in",
    "EINVAL"
end

-- Whether an upload made the directory: "whole", or "part" if it was cut off or still goes on.
local function uploaded(path)
  if fs.exists(fs.join(path, WHOLE)) then return "whole" end
  return fs.exists(fs.join(path, PART)) and "part" or nil
end

--- Whether a directory of this machine may be read as a checkpoint. One that an upload has not
--- finished looks like one, but files are missing.
---@param path string
---@return true?
---@return string? text
---@return string? name "ECONFLICT"
function source.check(path)
  if uploaded(path) ~= "part" then return true end
  return nil, ("an upload to %s goes on, or was cut off: upload it again"):format(path), "ECONFLICT"
end

-- The job that brings the files. What was uploaded to a directory is held against its record, which
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

--- Fetches all files into `to`, which is not there yet. What a store has digests of is checked.
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
  -- A link of a plain directory is seen from there; an upload's stands in the record alone.
  local is_plain = checkpoint.filesystem.is_local and not uploaded(checkpoint.path)
  report_dangling(to, is_plain and checkpoint.path or nil)
  return true
end

return source
