--- The transfer by which a `ckpt.SyncerCallback` brings a trial's directory here, if it was not
--- told another way.
---
--- A URI is another node, or what it put into a store: what differs is downloaded over what is
--- here; files that are gone there stay. A directory is on this machine: it becomes the new content
--- of the target, in one step. The same directory is nothing to copy.

jit.off(true, true)
local DefaultSyncer = require "ckpt.ray.sync.default_syncer"
local fs = require "ckpt.prims.fs"
local job = require "ckpt.job.job"
local scratch = require "ckpt.prims.scratch"
local store = require "ckpt.store.store"
local target_lock = require "ckpt.job.target_lock"

-- Returns a path with all links resolved and a slash at its end; nil if nothing is there.
local function place(path)
  local real = fs.real(path)
  return real and (real:gsub("/*$", "/"))
end

local function is_in(path, directory) return path:sub(1, #directory) == directory end

-- Copies beside the target, then changes places with it.
local function replace(from, to, exclude)
  return scratch(fs.parent(to), ".ckpt-copy-", function(beside)
    local copy = fs.join(beside, "copy")
    local copying, text, name = store.copy { from = from, to = copy, exclude = exclude }
    if not copying then return nil, text, name end
    local done, why, code = copying:wait()
    if not done then return nil, why, code end
    return fs.replace_tree(copy, to)
  end)
end

--- Starts bringing `from` to the directory `to`.
---@param from string a store's URI, or a directory of this machine
---@param to string
---@param exclude string[]
---@return ckpt.Job|true|nil # true: they are the same
---@return string? text
---@return string? name
local function trial_transfer(from, to, exclude)
  local is_uri = from:find("^%a[%w+.-]*://") ~= nil
  local filesystem, path, name = store.resolve(from)
  if not filesystem then return nil, path, name end
  local source, target = filesystem.is_local and place(path), place(to)
  if source and source == target then return true end
  if is_uri then return DefaultSyncer:sync_down_command(from, to, exclude) end
  if source and target and (is_in(source, target) or is_in(target, source)) then
    return nil, ("%s and %s lie in one another"):format(from, to), "EINVAL"
  end
  local dir = fs.normalize(to)
  return job.task(target_lock.fill, dir, function() return replace(path, dir, exclude) end)
end

return trial_transfer
