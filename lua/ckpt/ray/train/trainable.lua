--- ckpt.Trainable: the life of a thing that is trained step by step, and saved and restored on the
--- way. Extend it and give it `setup`, `step`, `save_checkpoint`, `load_checkpoint`:
---
---     local Mine = ckpt.Trainable:extend "Mine"
---     function Mine:setup(config) self.x = config.x end
---     function Mine:step() self.x = self.x + 1; return { x = self.x } end
---     function Mine:save_checkpoint() return { x = self.x } end
---     function Mine:load_checkpoint(saved) self.x = saved.x end
---
--- What fails in operation returns nil, a text and a name; what an own method raises goes on to the
--- caller.

jit.off(true, true)
local TrainableUtil = require "ckpt.ray.train.trainable_util"
local class = require "ckpt.base.class"
local clock = require "ckpt.base.clock"
local fs = require "ckpt.prims.fs"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"
local scratch = require "ckpt.prims.scratch"

---@class ckpt.TrainableOptions
---@field logdir? string directory of the trial, made if need be; nil: a fresh one in the temp dir
---@field trial_id? string "default"
---@field trial_name? string "default"

---@class ckpt.Trainable: ckpt.Class
---@field config table
---@field logdir string absolute, ends with a slash
---@field trial_id string
---@field trial_name string
---@field iteration integer steps that were trained, over all restores
---@field training_iteration integer the same, by its name in the results
---@field time_total number seconds of training, over all restores
---@field timesteps_total? integer if the steps tell `timesteps_this_iter`
---@field episodes_total? integer if the steps tell `episodes_this_iter`
local Trainable = class "Trainable"

--- The names of its options. A class that takes more has a table of its own.
Trainable.OPTIONS = { logdir = true, trial_id = true, trial_name = true }

local function text_or(value, name, default)
  if value == nil then return default end
  if type(value) ~= "string" then
    misuse(("Trainable: `%s` is a %s, not a text"):format(name, type(value)))
  end
  return value
end

local function set_iteration(self, iteration)
  self.iteration, self.training_iteration = iteration, iteration
end

-- Begins the counts since the last restore anew; the totals go on.
local function count_anew(self)
  self._iterations, self._time, self._timesteps = 0, 0, 0
end

--- Makes the trial's directory, then calls `setup(config)`.
---@param config? table what the user set; handed to `setup`
---@param options? ckpt.TrainableOptions
function Trainable:init(config, options)
  options = options_of.check(class.of(self).name, options, self.OPTIONS)
  local logdir = text_or(options.logdir, "logdir", nil)
  local text
  if logdir then
    logdir = fs.absolute(fs.expand(logdir))
    local made
    made, text = fs.mkdirs(logdir)
    logdir = made and logdir
  else
    logdir, text = fs.temporary_directory(nil, "ckpt_trial_")
  end
  if not logdir then misuse("Trainable: no directory for the trial: " .. text) end
  self.logdir = logdir:gsub("/*$", "/")
  self.trial_id = text_or(options.trial_id, "trial_id", "default")
  self.trial_name = text_or(options.trial_name, "trial_name", "default")
  self.config = config or {}
  set_iteration(self, 0)
  self.time_total = 0
  count_anew(self)
  self:setup(self.config)
end

--- To be overridden: prepares what is trained. Called once, when the object is made.
---@param config table
function Trainable:setup(config) end -- luacheck: ignore 212

--- To be overridden: trains one step.
---@return table? result names and values; nil, text, name if it failed
function Trainable:step() -- luacheck: ignore 212
  misuse("not implemented: give your class a method step()")
end

--- To be overridden: saves what is trained.
---@param directory string a checkpoint directory, it is there
---@return string|table checkpoint a path in `directory`, or a table of texts, numbers,
---  booleans and such tables; its keys are texts or numbers, and stay so
function Trainable:save_checkpoint(directory) -- luacheck: ignore 212
  misuse("not implemented: give your class a method save_checkpoint(directory)")
end

--- To be overridden: takes up what `save_checkpoint` has saved.
---@param checkpoint string|table as it was returned there
function Trainable:load_checkpoint(checkpoint) -- luacheck: ignore 212
  misuse("not implemented: give your class a method load_checkpoint(checkpoint)")
end

--- To be overridden: gives back what `setup` took. Called by `stop`.
function Trainable:cleanup() end -- luacheck: ignore 212

--- To be overridden: sees each result of `train`.
---@param result table
function Trainable:log_result(result) end -- luacheck: ignore 212

local function add(total, more) return more and (total or 0) + more or total end

--- Trains one step by `step`, and completes its result: `training_iteration`, `timesteps_total`,
--- `episodes_total`, `done` (false) where the step did not tell them, `time_this_iter_s`,
--- `time_total_s`, `time_since_restore`, `iterations_since_restore`, `timesteps_since_restore` (all
--- in seconds and steps), `timestamp` (seconds since 1970), `config`. A result that is marked
--- `__duplicate__` counts as no step and stays as it is.
---@return table? result
---@return string? text
---@return string? name
function Trainable:train()
  local begun = clock.monotonic()
  local stepped, text, name = self:step()
  if stepped == nil and text then return nil, text, name end
  if type(stepped) ~= "table" then
    misuse(("%s:step() returned a %s: return a table of names and values")
      :format(class.of(self).name, type(stepped)))
  end
  if stepped.__duplicate__ then return stepped end
  local result = {}
  for key, value in pairs(stepped) do result[key] = value end
  local seconds = result.time_this_iter_s or clock.monotonic() - begun
  set_iteration(self, self.iteration + 1)
  self._iterations = self._iterations + 1
  self.time_total, self._time = self.time_total + seconds, self._time + seconds
  self.timesteps_total = add(self.timesteps_total, result.timesteps_this_iter)
  self._timesteps = add(self._timesteps, result.timesteps_this_iter)
  self.episodes_total = add(self.episodes_total, result.episodes_this_iter)
  for key, value in pairs {
    done = false,
    training_iteration = self.iteration,
    timesteps_total = self.timesteps_total,
    episodes_total = self.episodes_total,
  } do
    if result[key] == nil then result[key] = value end
  end
  result.time_this_iter_s, result.time_total_s = seconds, self.time_total
  result.time_since_restore, result.iterations_since_restore = self._time, self._iterations
  result.timesteps_since_restore = self._timesteps
  result.timestamp, result.config = clock.now(), self.config
  self:log_result(result)
  return result
end

--- Returns the state that is saved beside each checkpoint.
---@return table # iteration, time_total (seconds), timesteps_total, episodes_total
function Trainable:get_state()
  return {
    iteration = self.iteration,
    time_total = self.time_total,
    timesteps_total = self.timesteps_total,
    episodes_total = self.episodes_total,
  }
end

--- Saves by `save_checkpoint` into `checkpoint_<iteration>` of a directory.
---@param directory? string nil: the trial's
---@return string? path of the checkpoint, for `restore`
---@return string? text
---@return string? name
function Trainable:save(directory)
  local parent, text, name =
    TrainableUtil.make_checkpoint_dir(directory or self.logdir, self.iteration)
  if not parent then return nil, text, name end
  local checkpoint
  checkpoint, text, name = self:save_checkpoint(parent)
  if checkpoint == nil and text then return nil, text, name end
  return TrainableUtil.process_checkpoint(checkpoint, parent, self:get_state())
end

--- Takes up a checkpoint: the counters from its metadata, all else by `load_checkpoint`. To that, a
--- table comes with `tune_checkpoint_path`, the file that it was in.
---@param path string as `save` returned it
---@return true?
---@return string? text
---@return string? name "ENOENT": there is none; "EFORMAT": not one of this library
function Trainable:restore(path)
  if type(path) ~= "string" then
    misuse("restore: `path` is a " .. type(path) .. ", not a path")
  end
  local metadata, checkpoint, name = TrainableUtil.read_checkpoint(path)
  if not metadata then return nil, checkpoint --[[@as string]], name end
  set_iteration(self, metadata.iteration or 0)
  self.time_total = metadata.time_total or 0
  self.timesteps_total = metadata.timesteps_total
  self.episodes_total = metadata.episodes_total
  if type(checkpoint) == "table" then checkpoint.tune_checkpoint_path = path end
  local loaded, text
  loaded, text, name = self:load_checkpoint(checkpoint)
  if loaded == nil and text then return nil, text, name end
  count_anew(self)
  log.debug(("Restored from %s, iteration %d."):format(path, self.iteration))
  return true
end

--- Deletes the checkpoint directory that a path is in. If it is gone already, that is no failure.
---@param path string
---@return true?
---@return string? text
---@return string? name
function Trainable:delete_checkpoint(path) -- luacheck: ignore 212
  local directory, text, name = TrainableUtil.find_checkpoint_dir(path)
  if not directory and name == "ENOENT" then
    log.debug(("Nothing to delete: %s"):format(text))
    return true
  elseif not directory then
    return nil, text, name
  end
  return fs.remove_tree(directory)
end

-- How an object is saved and restored: a durable one leaves its store alone then.
function Trainable:_save_here(directory) return self:save(directory) end
function Trainable:_restore_here(path) return self:restore(path) end

--- Saves into an object instead of a directory.
---@return ckpt.CheckpointObject?
---@return string? text
---@return string? name
function Trainable:save_to_object()
  return scratch(self.logdir, "save_to_object", function(directory)
    local path, text, name = self:_save_here(directory)
    if not path then return nil, text, name end
    return TrainableUtil.checkpoint_to_object(path)
  end)
end

--- Takes up an object of `save_to_object`. Its files are gone when this returns.
---@param object ckpt.CheckpointObject
---@return true?
---@return string? text
---@return string? name
function Trainable:restore_from_object(object)
  return scratch(self.logdir, "restore_from_object", function(directory)
    local path, text, name = TrainableUtil.create_from_object(object, directory)
    if not path then return nil, text, name end
    return self:_restore_here(path)
  end)
end

--- Ends it: calls `cleanup`.
function Trainable:stop() return self:cleanup() end

return Trainable
