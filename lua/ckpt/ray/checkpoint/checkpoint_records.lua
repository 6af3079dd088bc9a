--- Records of directories that a checkpoint was fetched to: from where, which files, and whether
--- somebody was told that he may keep it. They are kept with the locks, not in the directory, which
--- has the checkpoint's files and nothing else.
---
--- A record is a claim. Whether it holds, the files say: each must be there with its size and time.

jit.off(true, true)
local digest = require "ckpt.prims.digest"
local fs = require "ckpt.prims.fs"
local json = require "ckpt.base.json"
local nonce = require "ckpt.base.nonce"
local octets = require "ckpt.base.octets"
local plain_json = require "ckpt.base.plain_json"
local process = require "ckpt.prims.process"

local records = {}

local PART = ".part" -- of one that is being written

---@class ckpt.DirectoryRecord
---@field source string from where, escaped
---@field listing? string digest of what the source had
---@field boot? string the boot it was written in: what was not flushed may be lost after another
---@field nonce string another one each time
---@field handed boolean to_directory gave it away, so it is not ours to remove
---@field entries table[] of each: path (escaped), type, size, mtime

-- Returns the expected entries of a directory: the time of a directory changes with its content.
local function entries_of(found)
  local entries = {}
  for i, entry in ipairs(found) do
    local is_file = entry.type == "file"
    local size, mtime = is_file and entry.size or 0, is_file and entry.mtime or 0
    entries[i] = { octets.escape(entry.path), entry.type, size, mtime }
  end
  return entries
end

--- Makes the record of a complete directory, not yet written.
---@param dir string where its files are now
---@param known { source: string, listing?: string, handed: boolean }
---@return ckpt.DirectoryRecord?
---@return string? text
---@return string? name
function records.of(dir, known)
  local found, text, name = fs.walk(dir)
  if not found then return nil, text, name end
  return {
    source = known.source, listing = known.listing, handed = known.handed, boot = process.boot(),
    nonce = nonce(), entries = json.list(entries_of(found)),
  }
end

--- Reads the record at a place; nil if there is none that can be read.
---@param names ckpt.LockNames
---@return ckpt.DirectoryRecord?
function records.read(names)
  local text = fs.read(names.record)
  local record = text and plain_json.decode(text, plain_json.ENTRIES_MAX)
  if type(record) ~= "table" or type(record.entries) ~= "table" then return nil end
  return record
end

--- Writes it, in one step. It need not survive a crash of the machine: it does not count after one.
--- The lock of the place is held, so the name beside it is nobody else's.
---@param names ckpt.LockNames
---@param record ckpt.DirectoryRecord
---@return true?
---@return string? text
---@return string? name
function records.write(names, record)
  local part = names.record .. PART
  local file, text = io.open(part, "wb")
  if not file then return nil, text, "EIO" end
  local done = file:write(assert(json.encode(record)))
  done = file:close() and done
  if not done then return nil, "cannot write " .. part .. ": is the disk full?", "EIO" end
  return fs.rename(part, names.record)
end

--- Removes it.
---@param names ckpt.LockNames
function records.remove(names)
  fs.remove(names.record)
  fs.remove(names.record .. PART)
end

--- Tells whether all entries of a record are at the place as they were.
---@param record ckpt.DirectoryRecord
---@param dir string
---@return boolean
function records.hold(record, dir)
  if record.boot ~= process.boot() then return false end
  local root = fs.stat(dir)
  if not root or root.type ~= "directory" then return false end
  for _, entry in ipairs(record.entries) do
    local stat = fs.lstat(fs.join(dir, octets.unescape(entry[1])))
    if not stat or stat.type ~= entry[2] then return false end
    local is_same = stat.size == entry[3] and stat.mtime == entry[4]
    if stat.type == "file" and not is_same then return false end
  end
  return true
end

--- Makes one short text for a listing, whatever it lists.
---@param lines string[]
---@return string
function records.digest(lines)
  table.sort(lines)
  return digest.sha256(table.concat(lines, "\n"))
end

return records
