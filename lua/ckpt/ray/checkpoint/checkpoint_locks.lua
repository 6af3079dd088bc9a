--- The locks of downloads: in a directory of this user alone, named by the places that they stand
--- for, so that all spellings of one place share one lock.
---
--- Each place has three: `target` for who fetches it, `copy` for the copy itself, nested in it, and
--- `readers`, which those who read it share and who removes it has alone.

jit.off(true, true)
local digest = require "ckpt.prims.digest"
local fs = require "ckpt.prims.fs"
local lock = require "ckpt.job.lock"
local process = require "ckpt.prims.process"

local locks = {}

local OWN_ONLY = tonumber("700", 8)

-- Somebody else's directory of this name would let him hold our locks.
local function check_private(path)
  local stat, text, name = fs.lstat(path)
  if not stat then return nil, text, name end
  if stat.type ~= "directory" or stat.owner ~= process.user() or stat.mode % 64 ~= 0 then
    return nil, ("%s has to be a directory that only this user may enter, and is not: remove it, "
      .. "or set TMPDIR to another place"):format(path), "EACCESS"
  end
  return path
end

--- Returns the directory of the locks; made if it is not there.
---@return string? path
---@return string? text
---@return string? name
function locks.directory()
  local private = fs.join(fs.temp(), ("ckpt-%d"):format(process.user()))
  local there, text, name = fs.mkdirs(private, OWN_ONLY)
  if there then there, text, name = check_private(private) end
  if not there then return nil, text, name end
  local dir = fs.join(private, "_ckpt_lockfiles")
  local made, why, code = fs.mkdirs(dir, OWN_ONLY)
  if not made then return nil, why, code end
  return dir
end

--- Returns the one spelling of a place that need not be there yet.
---@param path string
---@return string? path
---@return string? text
---@return string? name
function locks.resolve(path)
  local rest, at = "", path
  while true do
    local real, text, name = fs.real(at)
    if real then return rest == "" and real or fs.normalize(fs.join(real, rest)) end
    local parent = fs.parent(at)
    if name ~= "ENOENT" or parent == at then return nil, text, name end
    rest = rest == "" and fs.base(at) or fs.join(fs.base(at), rest)
    at = parent
  end
end

---@class ckpt.LockNames
---@field target string lock file
---@field copy string lock file
---@field readers string lock file
---@field record string what stands at the place, see checkpoint_records.lua

--- Returns the files that belong to a place.
---@param path string
---@return ckpt.LockNames?
---@return string? text
---@return string? name
function locks.of(path)
  local dir, text, name = locks.directory()
  if not dir then return nil, text, name end
  local resolved, why, code = locks.resolve(path)
  if not resolved then return nil, why, code end
  local function file(suffix, kind)
    return fs.join(dir, digest.sha256(resolved .. suffix) .. kind)
  end
  return {
    target = file("", ".lock"), copy = file(".lock", ".lock"), readers = file("", ".readers.lock"),
    record = file("", ".json"),
  }
end

--- Takes a lock in one attempt.
---@return ckpt.Lock? lock
---@return string? text
---@return string? name "EHELD"
function locks.try(path, shared) return lock.take(path, { shared = shared }) end

--- Takes a lock, however long that lasts. The holder may be a task of this very program, which gets
--- its turn meanwhile.
---@return ckpt.Lock? lock
---@return string? text
---@return string? name
function locks.wait(path, shared)
  return lock.take(path, { shared = shared, timeout = math.huge })
end

--- Ends a lock that is not shared, and removes its file: nobody else has it, and a process that
--- opened it meanwhile finds out.
---@param held ckpt.Lock
function locks.drop(held)
  fs.remove(held:path())
  held:release()
end

--- Removes the file of a lock that nobody holds: a killed process has left it.
---@param path string
function locks.tidy(path)
  local left = fs.lstat(path) and locks.try(path, false)
  if left then locks.drop(left) end
end

return locks
