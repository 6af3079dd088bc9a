--- Brings a download to its place: it is put together out of sight, and becomes the directory by
--- one rename. A directory that has files already gets them one by one, each whole, because its
--- other files stay.
---
--- A staging directory has a lock of its own in it, held for as long as it is used: callers whose
--- TMPDIR differs keep their other locks apart, and still must not clear each other's work away.

jit.off(true, true)
local fs = require "ckpt.prims.fs"
local locks = require "ckpt.ray.checkpoint.checkpoint_locks"
local process = require "ckpt.prims.process"

local place = {}

local TRIES = 100

local function beside(target, what)
  return fs.join(fs.parent(target), "." .. fs.base(target) .. what)
end

-- These return the staging directory beside a place, and the one inside of it.
local function outer(target) return beside(target, ".ckpt_part") end
local function inner(target) return fs.join(target, ".ckpt_part") end

-- Returns where a directory is moved to be removed.
local function gone(target) return beside(target, ".ckpt_gone") end

--- Returns the name of the place that such a directory, in the same parent, belongs to; nil if it
--- is none.
---@param name string
---@return string?
function place.of(name)
  return name:match("^%.(.+)%.ckpt_part$") or name:match("^%.(.+)%.ckpt_gone$")
end

local function lock_of(root) return fs.join(root, "lock") end

-- Removes a staging directory, if nobody holds it.
local function clear_stage(root)
  local held = fs.lstat(root) and locks.try(lock_of(root), false)
  if not held then return end
  fs.remove_tree(root)
  held:release()
end

--- Removes leftovers of unfinished downloads and removals. The lock of the place is held.
---@param target string
function place.clear(target)
  clear_stage(outer(target))
  clear_stage(inner(target))
  fs.remove_tree(gone(target))
end

--- Removes a directory: it is out of sight at once, so that nobody finds half of it.
---@param target string
function place.remove(target)
  if fs.rename(target, gone(target)) then fs.remove_tree(gone(target)) end
end

--- Tells whether a directory is this user's own. Where all may write, somebody else may have made
--- one of the name that we are about to use.
---@param path string
---@return true?
---@return string? text
---@return string? name "EACCESS"
function place.check_own(path)
  local stat, text, name = fs.lstat(path)
  if not stat then return nil, text, name end
  if stat.type == "directory" and stat.owner == process.user() then return true end
  return nil, path .. " is somebody else's: remove it, or set TMPDIR to another place", "EACCESS"
end

-- Tells whether a directory can be swapped for another one: not if it is somebody's working
-- directory, or a file system is mounted there.
local function can_be_swapped(target)
  local names = fs.list(target)
  if not names then return not fs.lstat(target) end
  local own, around = fs.stat(target), fs.stat(fs.parent(fs.real(target) or target))
  local link, here = fs.lstat(target), fs.cwd()
  return #names == 0 and link.type == "directory" and around ~= nil
    and own.device == around.device and fs.real(target) ~= here
end

-- Makes a staging directory and holds it. Another caller may remove it as soon as it is made, or
-- while we wait for him.
local function claim(root)
  local text, name
  for _ = 1, TRIES do
    local made, held
    made, text, name = fs.mkdirs(root, tonumber("700", 8))
    if made then made, text, name = place.check_own(root) end
    if not made and name ~= "ENOENT" then return nil, text, name end
    held, text, name = locks.wait(lock_of(root), false)
    if held then return held end
    if name ~= "ENOENT" then return nil, text, name end
  end
  return nil, text, name
end

-- Removes the files that a dead holder has left in it.
local function empty(root)
  for _, name in ipairs(fs.list(root) or {}) do
    if name ~= "lock" then fs.remove_tree(fs.join(root, name)) end
  end
end

---@class ckpt.Stage
---@field lock ckpt.Lock
---@field root string removed at the end, with all that a download leaves in it
---@field dir string not there yet: the download makes it
---@field swaps boolean it becomes the target itself
---@field target string

--- Makes the place where a download for `target` is put together.
---@param target string
---@return ckpt.Stage?
---@return string? text
---@return string? name
function place.stage(target)
  place.clear(target)
  local swaps = can_be_swapped(target)
  local root = swaps and outer(target) or inner(target)
  local held, text, name = claim(root)
  if not held and swaps then
    -- A directory of ours in a parent that is not.
    swaps, root = false, inner(target)
    held, text, name = claim(root)
  end
  if not held then return nil, text, name end
  empty(root)
  return { lock = held, root = root, dir = fs.join(root, "data"), swaps = swaps, target = target }
end

-- Finds entries that cannot be put there before anything is changed.
local function check_room(entries, target)
  for _, entry in ipairs(entries) do
    local there = fs.lstat(fs.join(target, entry.path))
    local follows = there and there.type == "link" and fs.stat(fs.join(target, entry.path)) or there
    local has_dir = (follows and follows.type == "directory") or false
    if there and has_dir ~= (entry.type == "directory") then
      return nil, ("%s is %s, and in the checkpoint it is %s: move it away"):format(
        fs.join(target, entry.path), has_dir and "a directory" or "no directory",
        entry.type == "directory" and "one" or "none"), "EEXISTS"
    end
  end
  return true
end

local function merge(stage)
  local entries, text, name = fs.walk(stage.dir)
  if not entries then return nil, text, name end
  local done
  done, text, name = check_room(entries, stage.target)
  for _, entry in ipairs(entries) do
    if not done then return nil, text, name end
    local to = fs.join(stage.target, entry.path)
    if entry.type ~= "directory" then
      done, text, name = fs.rename(fs.join(stage.dir, entry.path), to)
    elseif not fs.exists(to) then
      done, text, name = fs.mkdirs(to, entry.mode)
    end
  end
  return done, text, name
end

--- Puts the fetched files to their place.
---@param stage ckpt.Stage
---@return true?
---@return string? text
---@return string? name
function place.put(stage)
  if stage.swaps then
    local there = fs.stat(stage.target)
    if there then fs.chmod(stage.dir, there.mode) end
    local done = fs.rename(stage.dir, stage.target)
    if done then return true end
    -- Somebody put a file there meanwhile, or something is mounted on it.
    local made, text, name = fs.mkdirs(stage.target)
    if not made then return nil, text, name end
  end
  return merge(stage)
end

--- Removes the staging directory.
---@param stage ckpt.Stage
function place.discard(stage)
  fs.remove_tree(stage.root)
  stage.lock:release()
end

return place
