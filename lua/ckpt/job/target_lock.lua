--- The lock of a directory that is about to be filled: a file beside it, `<directory>.lock`, so
--- that two programs never fill one directory at once. For tasks: others run while one waits.

jit.off(true, true)
local finally = require "ckpt.base.finally"
local fs = require "ckpt.prims.fs"
local job = require "ckpt.job.job"
local lock = require "ckpt.job.lock"

local target_lock = {}

--- Returns the path of its file.
---@param dir string
---@return string
function target_lock.path(dir) return fs.normalize(dir) .. ".lock" end

--- Takes it, however long that takes. The directory above is made if it is absent.
---@param dir string
---@return ckpt.Lock? lock
---@return boolean|string waited whether another had it; else the error's text
---@return string? name
function target_lock.take(dir)
  local path = target_lock.path(dir)
  local made, problem, cause = fs.mkdirs(fs.parent(path))
  if not made then return nil, problem, cause end
  local waited = false
  while true do
    local held, text, name = lock.take(path)
    if held then return held, waited end
    if name ~= "EHELD" then return nil, text, name end
    waited = true
    job.yield()
  end
end

local function work_on(held, work)
  return finally(function() held:release() end, work)
end

--- Works on a directory under its lock, after whoever has it.
---@param dir string
---@param work fun(): any, string?, string?
---@return any # what `work` returned
---@return string? text
---@return string? name
function target_lock.hold(dir, work)
  local held, waited, name = target_lock.take(dir)
  if not held then return nil, waited --[[@as string]], name end
  return work_on(held, work)
end

--- Fills a directory under its lock. Whoever finds another at it waits until that one is done, and
--- has nothing to do then; only if no directory is there does it try, once more.
---@param dir string
---@param work fun(): any, string?, string?
---@return any # what `work` returned; true if another did it
---@return string? text
---@return string? name
function target_lock.fill(dir, work)
  for _ = 1, 2 do
    local held, waited, name = target_lock.take(dir)
    if not held then return nil, waited --[[@as string]], name end
    if not waited then return work_on(held, work) end
    held:release()
    if fs.exists(dir) then return true end
  end
  return nil, ("%s was locked by others twice, and they left nothing there"):format(dir), "EIO"
end

return target_lock
