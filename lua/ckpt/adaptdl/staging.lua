--- The place where a save of states is put together: a directory `_checkpoint.<unique>` under the
--- checkpoint path, which no reader looks at. It begins empty, so nothing of an earlier save rides
--- along, and is held by a lock, which tells the leftover of a dead process from one that is being
--- written.
---
---   _checkpoint.<unique>/lock      held while the process lives
---                       /states/   becomes checkpoint-<N> by a rename
---                       /old/      what the commit made old is moved here, then removed

jit.off(true, true)
local fs = require "ckpt.prims.fs"
local lock = require "ckpt.job.lock"
local log = require "ckpt.base.log"

local PREFIX = "_checkpoint."
local TRIES = 16 -- other saves may be in the way of one, but not of as many

---@class ckpt.Staging
---@field root string
---@field path string
---@field states string
---@field lock any
local Staging = {}
Staging.__index = Staging

local staging = {}

local OWN = { lock = true, states = true, old = true }

-- Tells whether a directory is one of these: somebody's `_checkpoint.bak` is not.
local function is_staging(path, name)
  local found = name:sub(1, #PREFIX) == PREFIX and fs.lstat(path)
  local names = found and found.type == "directory" and fs.list(path)
  for _, each in ipairs(names or {}) do
    if not OWN[each] then return false end
  end
  return names and true or false
end

-- Removes the stagings that saves of dead processes left. One that cannot be removed is in nobody's
-- way.
local function clear(root)
  for _, name in ipairs(fs.list(root) or {}) do
    local path = fs.join(root, name)
    if is_staging(path, name) then
      local held = lock.take(fs.join(path, "lock"))
      if held then
        local done, text = fs.remove_tree(path)
        if not done then log.warn(("left-overs of a save stay: %s"):format(text)) end
        held:release()
      end
    end
  end
end

-- Makes a directory and its lock; nil and nothing more if a save that was clearing up was faster.
local function claim(root)
  local path, text, name = fs.temporary_directory(root, PREFIX)
  if not path then return nil, text, name end
  local at = fs.join(path, "lock")
  local held
  held, text, name = lock.take(at)
  if held and fs.exists(at) then return path, held end
  if held then held:release() end
  if held or name == "EHELD" or name == "ENOENT" then return nil end
  return nil, text, name
end

--- Opens an empty one; the checkpoint path is made if it is absent.
---@param root string the checkpoint path
---@return ckpt.Staging?
---@return string? text
---@return string? name
function staging.open(root)
  local made, text, name = fs.mkdirs(root)
  if not made then return nil, text, name end
  clear(root)
  for _ = 1, TRIES do
    local path, held, why = claim(root)
    if path then
      local self = setmetatable({ root = root, path = path, lock = held }, Staging)
      self.states = fs.join(path, "states")
      made, text, name = fs.mkdirs(self.states)
      if made then return self end
      self:discard()
      return nil, text, name
    end
    if held then return nil, held, why end
  end
  return nil, root .. ": other saves keep clearing up: are several jobs writing here?", "ECONFLICT"
end

--- Makes the states, flushed to the disk, the directory `target`, in one step. An older directory
--- of that name is replaced.
---@param target string
---@return true?
---@return string? text
---@return string? name
function Staging:publish(target)
  local done, text, name = fs.sync_tree(self.states)
  if not done then return nil, text, name end
  for _ = 1, TRIES do
    local there = fs.lstat(target)
    if there and there.type ~= "directory" then
      return nil, ("%s is not a directory, so the checkpoint cannot get that name; move it away")
        :format(target), "EEXISTS"
    end
    done, text, name = (there and fs.replace_tree or fs.publish)(self.states, target)
    -- Another save may have put one there, or removed it, since we looked.
    if done then return true end
    if name ~= (there and "ENOENT" or "EEXISTS") then return nil, text, name end
  end
  return nil, text, name
end

--- Removes a directory below the checkpoint path: out of sight at once, however long the rest
--- takes, so that no reader finds half of it.
---@param name string
---@return true?
---@return string? text
function Staging:remove(name)
  local old = fs.join(self.path, "old")
  local done, text = fs.mkdirs(old)
  if done then done, text = fs.rename(fs.join(self.root, name), fs.join(old, name)) end
  return done, text
end

--- Leaves it as it is: the next save finds that nobody holds it, and removes it.
function Staging:abandon() self.lock:release() end

--- Removes it with all that is in it.
function Staging:discard()
  local done, text = fs.remove_tree(self.path)
  if not done then log.warn(("left-overs of a save stay: %s"):format(text)) end
  self.lock:release()
end

return staging
