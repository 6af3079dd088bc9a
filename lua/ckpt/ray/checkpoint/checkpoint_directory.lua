--- The files of a checkpoint as a directory of this machine, fetched once however many ask.

jit.off(true, true)
local fs = require "ckpt.prims.fs"
local finally = require "ckpt.base.finally"
local locks = require "ckpt.ray.checkpoint.checkpoint_locks"
local place = require "ckpt.ray.checkpoint.checkpoint_place"
local readers = require "ckpt.ray.checkpoint.checkpoint_readers"
local records = require "ckpt.ray.checkpoint.checkpoint_records"
local source = require "ckpt.ray.checkpoint.checkpoint_source"

local directory = {}

local PREFIX = "checkpoint_tmp_"

--- Returns the temporary directory of an object.
---@param id string
---@return string
function directory.temporary(id) return fs.join(fs.temp(), PREFIX .. id) end

-- Makes the target with its parents. The second value: whether it was not there before.
local function make(target, mode)
  local stat = fs.stat(target)
  if stat and stat.type == "directory" then return true, false end
  local parent, text, name = fs.mkdirs(fs.parent(target))
  if not parent then return nil, text, name end
  local made, why, code = fs.mkdirs(target, mode)
  if not made then return nil, why, code end
  return true, true
end

---@class ckpt.DirectoryWish
---@field target string
---@field mode? integer of a temporary directory, which must be this user's own
---@field keeps boolean the caller may keep it: nobody else removes it
---@field joins boolean what is complete there is taken as it is, even if the source has changed

-- Fetches into the target, whose lock is held. The record goes first: it is a claim, and holds as
-- soon as the files are in place, so there is no moment in which they are there and unknown.
local function fetch(checkpoint, wish, names, known)
  local stage, text, name = place.stage(wish.target)
  if not stage then return nil, text, name end
  local done, record
  done, text, name = source.fetch(checkpoint, stage.dir)
  if done then
    record, text, name = records.of(stage.dir, known)
    done = record ~= nil
  end
  if done then done, text, name = records.write(names, record) end
  if done then done, text, name = place.put(stage) end
  place.discard(stage)
  return done, text, name
end

-- The copy has a lock of its own, nested in that of the place: who copies there by other
-- means can hold it.
local function copy(checkpoint, wish, names, known)
  local held, text, name = locks.wait(names.copy, false)
  if not held then return nil, text, name end
  return finally(function() locks.drop(held) end, fetch, checkpoint, wish, names, known)
end

-- Tells whether the record of the place says that there is nothing to do; nil and the rest: an
-- error. `nonce` is that of the record from before the caller had to wait; nil if he did not wait.
local function is_served(checkpoint, wish, record, known, nonce)
  if not record or record.source ~= known.source then return false end
  local is_fresh = nonce ~= nil and record.nonce ~= nonce
  if is_fresh and record.handed and not fs.exists(wish.target) then
    return nil, ("Checkpoint directory %s does not exist, though another process has just "
      .. "finished it. If nothing else on this machine removes such directories, this is a "
      .. "defect: please report it"):format(wish.target), "EINTERNAL"
  end
  if not records.hold(record, wish.target) then return false end
  if is_fresh or wish.joins then return true end
  known.listing = source.listing(checkpoint)
  return known.listing ~= nil and known.listing == record.listing
end

-- Serves a caller, with the lock of the place held.
local function serve(checkpoint, wish, names, nonce)
  local record = records.read(names)
  local known = {
    source = source.name(checkpoint),
    handed = wish.keeps or (record ~= nil and record.handed == true),
  }
  local served, text, name = is_served(checkpoint, wish, record, known, nonce)
  if served == nil then return nil, text, name end
  if served then
    -- The process that put the files in place may have been killed right after that.
    place.clear(wish.target)
    locks.tidy(names.copy)
    if known.handed == record.handed then return true end
    record.handed = known.handed
    return records.write(names, record)
  end
  known.listing = known.listing or source.listing(checkpoint)
  return copy(checkpoint, wish, names, known)
end

-- A directory in the checkpoint's own would be copied into itself.
local function check_apart(checkpoint, target)
  if not checkpoint.filesystem.is_local then return true end
  local from, to = fs.real(checkpoint.path), locks.resolve(target)
  if from and to and (to .. "/"):sub(1, #from + 1) == from .. "/" then
    return nil, ("%s is in the checkpoint itself, %s: give another directory")
      :format(target, checkpoint.path), "EINVAL"
  end
  return true
end

local function provide(checkpoint, wish, names)
  local before = records.read(names)
  local held, text, name = locks.try(names.target, false)
  local nonce
  if not held and name == "EHELD" then
    nonce = before and before.nonce or ""
    held, text, name = locks.wait(names.target, false)
  end
  if not held then return nil, text, name end
  return finally(function() locks.drop(held) end, serve, checkpoint, wish, names, nonce)
end

--- Makes the files of a checkpoint stand in a directory. One process fetches, the others wait.
---@param checkpoint ckpt.Checkpoint
---@param wish ckpt.DirectoryWish
---@return string? target
---@return string? text
---@return string? name
function directory.provide(checkpoint, wish)
  local apart, text, name = check_apart(checkpoint, wish.target)
  if not apart then return nil, text, name end
  local there, made, code = make(wish.target, wish.mode)
  if not there then return nil, made, code end
  local names, done = nil, true
  if wish.mode then done, text, name = place.check_own(wish.target) end
  if done then names, text, name = locks.of(wish.target) end
  done = false
  if names then done, text, name = provide(checkpoint, wish, names) end
  if done then return wish.target end
  -- The directory goes only if it is still empty: another caller may have filled it meanwhile.
  if made then os.remove(wish.target) end
  return nil, text, name
end

--- Does as `provide` for the temporary directory of a checkpoint, and sweeps those that killed
--- processes have left.
---@param checkpoint ckpt.Checkpoint
---@param keeps boolean
---@return string? target
---@return string? text
---@return string? name
function directory.provide_temporary(checkpoint, keeps)
  local target = directory.temporary(checkpoint.id)
  readers.sweep_dead(PREFIX, target)
  local function get()
    return directory.provide(checkpoint, {
      target = target, keeps = keeps, joins = not keeps, mode = tonumber("700", 8),
    })
  end
  -- A caller that does not keep it is a reader, and nobody sweeps under a reader.
  if not keeps then return get() end
  return readers.without_sweep(target, get)
end

return directory
