--- Readers of a temporary directory, which goes with the last of them.
---
--- A reader takes the readers' lock, shared with others, before it looks at anything, and drops it
--- at the end; whoever removes the directory has that lock alone. So nobody can begin to read while
--- it is removed, and nothing is removed under a reader, whether he is another process, another
--- thread or a nested call. The lock of a killed process is free.
---
--- The mark `<dir>.del_lock_<pid>` says the same to other programs, one for each reader. It holds
--- what proves its owner dead.

jit.off(true, true)
local finally = require "ckpt.base.finally"
local fs = require "ckpt.prims.fs"
local locks = require "ckpt.ray.checkpoint.checkpoint_locks"
local log = require "ckpt.base.log"
local place = require "ckpt.ray.checkpoint.checkpoint_place"
local plain_json = require "ckpt.base.plain_json"
local process = require "ckpt.prims.process"
local records = require "ckpt.ray.checkpoint.checkpoint_records"

local readers = {}

local MARK = ".del_lock_"

---@class ckpt.Reader
---@field dir string
---@field mark string
---@field lock ckpt.Lock

--- The path of a mark: beside the directory, not in it.
---@param dir string
---@param suffix? string default: the pid
---@return string
function readers.mark_path(dir, suffix)
  return (dir:gsub("/+$", "")) .. MARK .. (suffix or ("%d"):format(process.pid()))
end

--- Returns the marks of a directory. Whatever its name has in it, it is taken as it is.
---@param dir string
---@return string[] paths
function readers.marks(dir)
  local begin, marks = fs.base(readers.mark_path(dir, "")), {}
  for _, name in ipairs(fs.list(fs.parent(dir)) or {}) do
    if name:sub(1, #begin) == begin then marks[#marks + 1] = fs.join(fs.parent(dir), name) end
  end
  return marks
end

-- Writes a mark, one for each reader: the second in a process gets a number.
local function write_mark(dir)
  local identity = process.identity()
  local content = identity and plain_json.encode(identity) or ""
  local count = 0
  while true do
    local suffix = ("%d"):format(process.pid()) .. (count > 0 and "_" .. count or "")
    local mark = readers.mark_path(dir, suffix)
    local done, text, name = fs.write_new(mark, content, tonumber("600", 8))
    if done then return mark end
    if name ~= "EEXISTS" then return nil, text, name end
    count = count + 1
  end
end

--- Becomes a reader of a directory that need not be there yet.
---@param dir string
---@return ckpt.Reader?
---@return string? text
---@return string? name
function readers.enter(dir)
  local names, text, name = locks.of(dir)
  if not names then return nil, text, name end
  local held, why, code = locks.wait(names.readers, true)
  if not held then return nil, why, code end
  local mark
  mark, text, name = write_mark(dir)
  if mark then return { dir = dir, mark = mark, lock = held } end
  held:release()
  return nil, text, name
end

--- Calls a function while nobody may sweep a directory: while one is made, nobody knows that it is
--- somebody's.
---@param dir string
---@param work fun(): any, string?, string?
---@return any # what `work` returned
---@return string? text
---@return string? name
function readers.without_sweep(dir, work)
  local names, text, name = locks.of(dir)
  if not names then return nil, text, name end
  local held, why, code = locks.wait(names.readers, true)
  if not held then return nil, why, code end
  return finally(function()
    held:release()
    locks.tidy(names.readers)
  end, work)
end

-- Tells whether a mark's owner is dead. An empty mark, as other programs write it, proves nothing
-- about its owner. A mark that was never finished is of a dead process: one that writes a mark
-- shares the lock that we have alone.
local function is_dead(mark)
  if mark:find("%.tmp$") then return true end
  local identity = plain_json.decode(fs.read(mark) or "")
  return identity ~= nil and process.is_dead(identity)
end

-- Removes marks of the dead; returns the number of those that stay.
local function clear_marks(dir)
  local left = 0
  for _, mark in ipairs(readers.marks(dir)) do
    if not (is_dead(mark) and fs.remove(mark)) then left = left + 1 end
  end
  return left
end

-- Tells whether the directory was only given to readers: then it goes with them. So does one that
-- nothing was put into yet, unless it is a checkpoint without files.
local function is_ours(dir, names)
  local record = records.read(names)
  if record and not record.handed then return true end
  return #(fs.list(dir) or {}) == 0 and not (record and #record.entries == 0)
end

-- Removes the directory, while nobody reads or fetches.
local function remove(dir, names)
  place.clear(dir)
  if not is_ours(dir, names) then return end
  place.remove(dir)
  records.remove(names)
  locks.tidy(names.copy)
end

--- Removes a temporary directory that nobody reads any more, and its other files. A process that
--- reads it, or is about to, will do that itself.
---@param dir string
function readers.sweep(dir)
  local names = locks.of(dir)
  local alone = names and locks.try(names.readers, false)
  if not alone then return end
  if clear_marks(dir) == 0 then
    local held = locks.try(names.target, false)
    if held then
      remove(dir, names)
      locks.drop(held)
    end
  end
  locks.drop(alone)
end

--- Ends being a reader; the last one removes the directory.
---@param reader ckpt.Reader
function readers.leave(reader)
  local done, text = fs.remove(reader.mark)
  if not done then log.warn(("Could not remove the mark %s: %s"):format(reader.mark, text)) end
  reader.lock:release()
  readers.sweep(reader.dir)
end

-- Returns the directory that an entry of the directory for temporary files belongs to: itself, or
-- the one that it is a mark or an unfinished download of.
local function belongs_to(name, begin)
  local dir = place.of(name) or name:match("^(.*)%.del_lock_") or name
  local id = dir:sub(1, #begin) == begin and dir:sub(#begin + 1) or ""
  return id:find("^[0-9a-f]+$") and dir or nil
end

--- Sweeps leftovers of killed processes in the directory for temporary files: directories
--- `begin`... that nobody reads, fetches, or was given.
---@param begin string what their names begin with
---@param own string the one that the caller is at work on
function readers.sweep_dead(begin, own)
  local temp, seen = fs.temp(), {}
  for _, name in ipairs(fs.list(temp) or {}) do
    local dir = belongs_to(name, begin)
    local stat = dir and fs.lstat(fs.join(temp, name))
    if stat and stat.owner == process.user() then seen[fs.join(temp, dir)] = true end
  end
  seen[own] = nil
  for dir in pairs(seen) do readers.sweep(dir) end
end

return readers
