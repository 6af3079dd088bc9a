--- ckpt.FunctionRunner: a Trainable whose steps are the reports of one function. A class of it for
--- a function of yours is made by `ckpt.wrap_function`.
---
--- The function runs as a coroutine: from the first step up to its first report, from the next step
--- up to the next report, and so on. It stands still in between, so nothing of it runs while the
--- caller saves, syncs or decides. What its reports hand over are the results of the steps.

jit.off(true, true)
local FuncCheckpointUtil = require "ckpt.ray.train.func_checkpoint_util"
local FunctionWorker = require "ckpt.ray.train.function_worker"
local StatusReporter = require "ckpt.ray.train.status_reporter"
local Trainable = require "ckpt.ray.train.trainable"
local TrainableUtil = require "ckpt.ray.train.trainable_util"
local class = require "ckpt.base.class"
local fs = require "ckpt.prims.fs"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"
local session = require "ckpt.ray.train.session"

---@class ckpt.FunctionRunnerOptions: ckpt.TrainableOptions
---@field checkpoint_freq? integer refused unless 0: a function saves when it wants to
---@field checkpoint_at_end? boolean refused if true

---@class ckpt.FunctionRunner: ckpt.Trainable
---@field temp_checkpoint_dir? string where the last object was unpacked that was restored
local FunctionRunner = Trainable:extend "func"

FunctionRunner.OPTIONS = {
  logdir = true, trial_id = true, trial_name = true, checkpoint_freq = true,
  checkpoint_at_end = true,
}

--- Seconds: between two looks for a result; that one who has failed, or was told to
--- stop, has to say so and end; that are waited for the text of an error.
FunctionRunner.RESULT_FETCH_TIMEOUT = 0.2
FunctionRunner.ERROR_REPORT_TIMEOUT = 10
FunctionRunner.ERROR_FETCH_TIMEOUT = 1

---@param config? table
---@param options? ckpt.FunctionRunnerOptions
function FunctionRunner:init(config, options)
  options = options_of.check(class.of(self).name, options, self.OPTIONS)
  if (options.checkpoint_freq or 0) ~= 0 or options.checkpoint_at_end then
    misuse(("%s: `checkpoint_freq` and `checkpoint_at_end` are not for training functions: they "
      .. "set their checkpoints themselves, with the reporter"):format(class.of(self).name))
  end
  Trainable.init(self, config, options)
end

function FunctionRunner:setup(config) -- luacheck: ignore 212
  self._status_reporter = StatusReporter(function(values) return self._worker:deliver(values) end,
    { trial_name = self.trial_name, trial_id = self.trial_id, logdir = self.logdir })
  self._last_result = {}
  self._temporary = {}
  session.init(self._status_reporter)
end

--- Trains; a subclass has to give it.
---@param config table
---@param reporter ckpt.StatusReporter
---@param checkpoint? string|table to begin from
---@return any # nil, text, name: it failed
function FunctionRunner:_trainable_func(config, reporter, checkpoint) -- luacheck: ignore 212
  error("not implemented: give your class a method _trainable_func(config, reporter, checkpoint), "
    .. "or use ckpt.wrap_function", 0)
end

function FunctionRunner:_limits()
  return {
    poll = self.RESULT_FETCH_TIMEOUT,
    stop = self.ERROR_REPORT_TIMEOUT,
    error = self.ERROR_FETCH_TIMEOUT,
  }
end

--- Makes the worker that runs the function. It takes the last checkpoint.
---@return table? worker
---@return string? text
---@return string? name
function FunctionRunner:_new_worker()
  local reporter = self._status_reporter
  local checkpoint = reporter:get_checkpoint()
  return FunctionWorker(reporter, function()
    return self:_trainable_func(self.config, reporter, checkpoint)
  end, self:_limits())
end

-- Keeps a failure. A function that was started once is never started again: its error is told
-- again.
local function fail(self, text, name)
  self._failure = { text = text, name = name }
  return nil, text, name
end

local function trial_error(failure)
  return "the trial's function failed: " .. failure.text, failure.name
end

local function fetch(worker)
  local result
  repeat result = worker:result(true) until result or not worker:alive()
  -- A result may have come between the last look and the end.
  return result or worker:result(false)
end

--- Runs the function up to its next report.
---@return table? result `should_checkpoint` is true in it if a new checkpoint was set
---@return string? text
---@return string? name what the function failed with: "EINTERNAL" if it raised. Further steps fail
---  with the same
function FunctionRunner:step()
  if self._stopped then misuse("this runner was stopped: make a new one and restore it") end
  if self._failure then return nil, self._failure.text, self._failure.name end
  if self._worker and self._worker:alive() then
    self._worker:release()
  else
    self._status_reporter:_start()
    local text, name
    self._worker, text, name = self:_new_worker()
    if not self._worker then return fail(self, text, name) end
  end
  local result = fetch(self._worker)
  if not result then
    local failure = self._worker:take_error()
    if failure then return fail(self, trial_error(failure)) end
    return fail(self, "the training function came to its end without results and without an error",
      "EINTERNAL")
  end
  if self._worker:has_error() then
    log.warn("The training function has failed. The results before that come first.")
  end
  if result.__duplicate__ then
    local whole = {}
    for key, value in pairs(self._last_result) do whole[key] = value end
    for key, value in pairs(result) do whole[key] = value end
    result = whole
  end
  self._last_result = result
  if self._status_reporter:has_new_checkpoint() then result.should_checkpoint = true end
  return result
end

--- Calls a function with this runner.
---@param fn fun(runner: ckpt.FunctionRunner): ...
---@return ... what it returns
function FunctionRunner:execute(fn) return fn(self) end

-- Returns the path of something in one directory, in another directory.
local function moved(path, from, to)
  local inside = fs.normalize(fs.absolute(path)):sub(#fs.normalize(fs.absolute(from)) + 2)
  return inside == "" and to or fs.join(to, inside)
end

-- Returns the checkpoint that a save of a path saves: a temporary one becomes the permanent one of
-- this iteration.
local function permanent(self, checkpoint)
  local parent, text, name = TrainableUtil.find_checkpoint_dir(checkpoint)
  if not parent then return nil, text, name end
  if not FuncCheckpointUtil.is_temp_checkpoint_dir(parent) then return checkpoint, parent end
  local copy
  copy, text, name =
    FuncCheckpointUtil.create_perm_checkpoint(parent, fs.absolute(self.logdir), self.iteration)
  if not copy then return nil, text, name end
  checkpoint = moved(checkpoint, parent, copy)
  -- The temporary one goes in clean-up, so a later save must not name it.
  self._status_reporter:set_checkpoint(checkpoint, false)
  return checkpoint, copy
end

--- Saves the checkpoint that the function has set last; it is no new one any more. A path stays
--- where it is, a table becomes `checkpoint` in `checkpoint_<iteration>`. If there is none, a null
--- checkpoint is made, whose iteration is 0.
---@param checkpoint_path nil the function decides where
---@return string? path for `restore`; a directory's ends with a slash
---@return string? text
---@return string? name
function FunctionRunner:save(checkpoint_path)
  if checkpoint_path ~= nil and checkpoint_path ~= "" then
    misuse("save: a training function decides itself where its checkpoint is: leave out the path")
  end
  local checkpoint, state = self._status_reporter:get_checkpoint(), self:get_state()
  local kind, parent, name = type(checkpoint), nil, nil
  if checkpoint == nil or checkpoint == "" or kind == "table" and next(checkpoint) == nil then
    state.iteration, state.timesteps_total, state.episodes_total = 0, 0, 0
    checkpoint, parent, name = FuncCheckpointUtil.mk_null_checkpoint_dir(self.logdir)
    if checkpoint then parent = checkpoint end
  elseif kind == "table" then
    local text
    parent, text, name = TrainableUtil.make_checkpoint_dir(self.logdir, self.iteration)
    if not parent then return nil, text, name end
  elseif kind == "string" then
    checkpoint, parent, name = permanent(self, checkpoint)
  else
    misuse(("save: the function has set a %s as its checkpoint: a path or a table was expected")
      :format(kind))
  end
  if not checkpoint then return nil, parent, name end
  return TrainableUtil.process_checkpoint(checkpoint, parent, state)
end

--- Saves, and hands out the checkpoint's directory as texts.
---@return ckpt.CheckpointObject?
---@return string? text
---@return string? name
function FunctionRunner:save_to_object()
  local path, text, name = self:_save_here()
  if not path then return nil, text, name end
  return TrainableUtil.checkpoint_to_object(path)
end

--- Takes up a checkpoint for the function, which gets it when it starts. From a null checkpoint
--- nothing is taken up.
---@param checkpoint string|table
function FunctionRunner:load_checkpoint(checkpoint)
  if type(checkpoint) == "table" then
    local own = {}
    for key, value in pairs(checkpoint) do own[key] = value end
    own.tune_checkpoint_path = nil
    checkpoint = own
  elseif FuncCheckpointUtil.is_null_checkpoint(checkpoint) then
    return
  end
  self._status_reporter:set_checkpoint(checkpoint, false)
end

--- Takes up an object of `save_to_object`: unpacks it into a temporary checkpoint, which stays
--- until clean-up, because the function may load it at any time.
---@param object ckpt.CheckpointObject
---@return true?
---@return string? text
---@return string? name
function FunctionRunner:restore_from_object(object)
  local directory, text, name = FuncCheckpointUtil.mk_temp_checkpoint_dir(self.logdir)
  if not directory then return nil, text, name end
  self.temp_checkpoint_dir = directory
  table.insert(self._temporary, directory)
  local path
  path, text, name = TrainableUtil.create_from_object(object, directory)
  if not path then return nil, text, name end
  return self:_restore_here(path)
end

local function remove_temporary(self)
  local failed, why
  for _, directory in ipairs(self._temporary) do
    if fs.lstat(directory) then
      log.debug("Removing the temporary checkpoint " .. directory)
      local done, text, name = fs.remove_tree(directory)
      if not done then failed, why = text, name end
    end
  end
  self._temporary = {}
  if failed then return nil, failed, why end
  return true
end

--- Tells the function to stop, ends the session, removes temporary files. Called by `stop`.
---@return true?
---@return string? text the function's error, if no step has told it yet
---@return string? name
function FunctionRunner:cleanup()
  local worker, failure = self._worker, nil
  if worker then
    if worker:stop() > 0 then
      log.warn("Some results came after the trial was told to stop. They are not logged.")
    end
    failure = worker:take_error()
  end
  self._stopped = true
  session.shutdown(self._status_reporter)
  local done, text, name = remove_temporary(self)
  if failure then return nil, trial_error(failure) end
  return done, text, name
end

return FunctionRunner
