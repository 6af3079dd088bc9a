--- ckpt.FuncCheckpointUtil: the special checkpoints of training functions.
---
--- A null checkpoint says that there was nothing to save: a function that is restored from it
--- begins without a checkpoint. It is told by an empty file `.null_marker`. A temporary one holds
--- what was restored from an object until the trial ends; it is told by `.temp_marker`.
--- Both are left out of what is synced, by their names: `checkpoint_-00001`, `checkpoint_tmp...`.

jit.off(true, true)
local TrainableUtil = require "ckpt.ray.train.trainable_util"
local fs = require "ckpt.prims.fs"
local misuse = require "ckpt.base.misuse"
local nonce = require "ckpt.base.nonce"

---@class ckpt.FuncCheckpointUtil
local FuncCheckpointUtil = {
  NULL_MARKER = ".null_marker",
  TEMP_MARKER = ".temp_marker",
}

local function check_path(value, fn, name)
  if type(value) ~= "string" then
    misuse(("%s: `%s` is a %s, not a path"):format(fn, name, type(value)))
  end
end

local function make_marked(logdir, index, marker)
  local path, text, name = TrainableUtil.make_checkpoint_dir(logdir, index, true)
  if not path then return nil, text, name end
  local written
  written, text, name = fs.write(fs.join(path, marker), "")
  if not written then return nil, text, name end
  return path
end

-- Returns six hex digits that no directory has yet.
local function temporary_index(logdir)
  local index
  repeat index = "tmp" .. nonce():sub(1, 6)
  until not fs.lstat((TrainableUtil.checkpoint_paths(logdir, index)))
  return index
end

--- Makes the null checkpoint of a trial, always afresh.
---@param logdir string
---@return string? path `checkpoint_-00001` in it
---@return string? text
---@return string? name
function FuncCheckpointUtil.mk_null_checkpoint_dir(logdir)
  check_path(logdir, "mk_null_checkpoint_dir", "logdir")
  return make_marked(logdir, -1, FuncCheckpointUtil.NULL_MARKER)
end

--- Makes a directory for a checkpoint that is there for a restore only.
---@param logdir string
---@return string? path `checkpoint_tmp` and six hex digits
---@return string? text
---@return string? name
function FuncCheckpointUtil.mk_temp_checkpoint_dir(logdir)
  check_path(logdir, "mk_temp_checkpoint_dir", "logdir")
  return make_marked(logdir, temporary_index(logdir), FuncCheckpointUtil.TEMP_MARKER)
end

--- Tells whether a directory has the temporary marker; false if it is not there.
---@param checkpoint_dir string
---@return boolean
function FuncCheckpointUtil.is_temp_checkpoint_dir(checkpoint_dir)
  check_path(checkpoint_dir, "is_temp_checkpoint_dir", "checkpoint_dir")
  return fs.exists(fs.join(checkpoint_dir, FuncCheckpointUtil.TEMP_MARKER))
end

--- Tells whether a directory has the null marker; false if it is not there.
---@param checkpoint_dir string
---@return boolean
function FuncCheckpointUtil.is_null_checkpoint(checkpoint_dir)
  check_path(checkpoint_dir, "is_null_checkpoint", "checkpoint_dir")
  return fs.exists(fs.join(checkpoint_dir, FuncCheckpointUtil.NULL_MARKER))
end

-- Gives the staging its name. Another program may have made the short name; one step has one
-- directory.
local function publish(staging, path, short)
  local done, text, name = fs.replace_tree(staging, path)
  if done and short ~= path and fs.lstat(short) then
    done, text, name = fs.remove_tree(short)
  end
  return done, text, name
end

-- Copies without the marks, which are made when the copy is complete: half of one is no checkpoint
-- at all.
local function copy_unmarked(from, to)
  return fs.copy_tree(from, to, {
    exclude = { FuncCheckpointUtil.TEMP_MARKER, TrainableUtil.MARKER }, follow = true, flush = true,
  })
end

--- Copies a temporary checkpoint to the permanent one of a step. The copy is made under a temporary
--- name, follows links, keeps modes and times, and takes its place in one step when it is complete;
--- one that was there goes in that moment. Only then the marker of the temporary one is removed:
--- the directory itself stays, because the function may still have to load it.
---@param checkpoint_dir string raises if it is no temporary checkpoint
---@param logdir string
---@param step integer
---@return string? path of the permanent checkpoint
---@return string? text
---@return string? name
function FuncCheckpointUtil.create_perm_checkpoint(checkpoint_dir, logdir, step)
  check_path(checkpoint_dir, "create_perm_checkpoint", "checkpoint_dir")
  check_path(logdir, "create_perm_checkpoint", "logdir")
  if type(step) ~= "number" then
    misuse(("create_perm_checkpoint: `step` is a %s, not a number"):format(type(step)))
  end
  local from = fs.absolute(checkpoint_dir)
  local marker = fs.join(from, FuncCheckpointUtil.TEMP_MARKER)
  if not fs.exists(marker) then
    misuse(("create_perm_checkpoint: %s is no temporary checkpoint, it has no %s: it should not be "
      .. "called for a permanent one"):format(from, FuncCheckpointUtil.TEMP_MARKER))
  end
  local staging = TrainableUtil.checkpoint_paths(logdir, temporary_index(logdir))
  local done, text, name = fs.mkdirs(logdir)
  if done then done, text, name = copy_unmarked(from, staging) end
  if done then done, text, name = TrainableUtil.mark_checkpoint_dir(staging) end
  local path, short = TrainableUtil.checkpoint_paths(logdir, step)
  if done then done, text, name = publish(staging, path, short) end
  if done then done, text, name = fs.remove(marker) end
  if done then return path end
  fs.remove_tree(staging)
  return nil, text, name
end

return FuncCheckpointUtil
