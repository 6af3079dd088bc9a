--- ckpt.SyncerCallback: brings the directories of trials from where they run to here, while they
--- run. Whoever drives the trials tells it what happens to them; it decides when to fetch.
---
---     local callback = ckpt.SyncerCallback { sync_period = 60 }
---     local trial = { id = "a", logdir = "/results/a", uri = "s3://bucket/results/a" }
---     callback:on_trial_result(trial, { training_iteration = 3, time_total_s = 20 })
---     callback:on_checkpoint(trial, { path = "/results/a/checkpoint_000003" })
---     callback:on_trial_complete(trial)
---     callback:on_experiment_end()
---
--- One transfer at a time for each trial; trials do not wait for one another.

jit.off(true, true)
local BackgroundProcess = require "ckpt.ray.sync.background_process"
local class = require "ckpt.base.class"
local clock = require "ckpt.base.clock"
local defaults = require "ckpt.ray.sync.sync_defaults"
local duration = require "ckpt.base.duration"
local fs = require "ckpt.prims.fs"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"

---@class ckpt.Trial
---@field id string
---@field logdir string its directory here
---@field uri? string where it is now: a store's URI, or a directory of this machine
---@field uses_cloud_checkpointing? boolean it saves to a store by itself: nothing is fetched
---@field sync_on_checkpoint? boolean nil: true

---@class ckpt.SyncerCallbackOptions
---@field enabled? boolean nil: true
---@field sync_period? number seconds between two fetches of a trial; 300
---@field source? fun(trial: ckpt.Trial): string?, string? where the trial's directory is now; nil:
---nowhere (it has ended); nil and a text: why it cannot be told. Without this: `trial.uri`
---@field transfer? fun(from: string, to: string, exclude: string[]): ckpt.Job brings `from` to the
---directory `to`. Without this: ckpt.trial_transfer

---@class ckpt.SyncerCallback: ckpt.Class
---@field enabled boolean
---@field sync_period number
---@field min_iter integer
---@field min_time number seconds
---@overload fun(options?: ckpt.SyncerCallbackOptions): ckpt.SyncerCallback
local SyncerCallback = class "SyncerCallback"

--- These are never fetched, in this order.
SyncerCallback.EXCLUDE = {
  "./checkpoint_-00001",
  "./checkpoint_tmp*",
  "./save_to_object*",
  "./rank_*",
  "./.lazy_checkpoint_marker",
}

--- The first fetch of a trial comes after so many iterations, or so many seconds of training.
SyncerCallback.MIN_ITER, SyncerCallback.MIN_TIME = 2, 10

local OPTIONS = {
  enabled = "boolean", sync_period = "number", source = "function", transfer = "function",
}

local function check_options(options)
  options_of.check("SyncerCallback", options, OPTIONS)
  for name, value in pairs(options) do
    if type(value) ~= OPTIONS[name] then
      misuse(("SyncerCallback: `%s` is a %s, not a %s"):format(name, type(value), OPTIONS[name]))
    end
  end
  if options.sync_period then
    duration.option(options.sync_period, "SyncerCallback: `sync_period`")
  end
end

--- Reads the thresholds from TUNE_NODE_SYNCING_MIN_ITER_THRESHOLD (a whole number) and
--- TUNE_NODE_SYNCING_MIN_TIME_S_THRESHOLD (a number), once; raises if one of them is none, or is
--- empty.
---@param options? ckpt.SyncerCallbackOptions
function SyncerCallback:init(options)
  options = options or {}
  check_options(options)
  self.enabled = options.enabled ~= false
  self.sync_period = options.sync_period or defaults.sync_period
  self.min_iter = defaults.setting("TUNE_NODE_SYNCING_MIN_ITER_THRESHOLD", "[+-]?%d+",
    "a whole number", SyncerCallback.MIN_ITER)
  self.min_time = defaults.setting("TUNE_NODE_SYNCING_MIN_TIME_S_THRESHOLD", "%S+",
    "a number of seconds", SyncerCallback.MIN_TIME)
  self._source = options.source or function(trial) return trial.uri end
  self._transfer = options.transfer or require "ckpt.ray.sync.trial_transfer"
  self:_forget_all()
end

function SyncerCallback:_forget_all()
  self._processes = {} -- trial id -> ckpt.BackgroundProcess, from the first look on
  self._made, self._count = {}, 0 -- trial id -> which process that was: the first, the second ...
  self._removing = {} -- trial id -> true: its process goes when it is over
  self._synced = {} -- trial id -> when the last fetch that did not fail was begun
  self._synced_before = {} -- the same before the fetch that is under way
  self._reached = {} -- trial id -> { iteration, seconds }
  self._sources = {} -- trial id -> where it is
end

local function check(trial, method)
  if type(trial) == "table" and type(trial.id) == "string" and type(trial.logdir) == "string" then
    return
  end
  misuse(("%s: a trial is a table with the texts `id` and `logdir`"):format(method))
end

local function process_of(self, id)
  local process = self._processes[id]
  if not process then
    process = BackgroundProcess(self._transfer, "the transfer of trial " .. id)
    self._count = self._count + 1
    self._processes[id], self._made[id] = process, self._count
  end
  return process
end

-- A transfer that failed does not count for the period.
local function discount(self, id, process)
  if process:has_failed() then self._synced[id] = self._synced_before[id] end
end

-- Waits for a trial's transfer.
local function finish(self, id, process)
  if not process:exists() then return true end
  local value, text, name = process:wait()
  if value ~= nil or text == nil then return true end
  self._synced[id] = self._synced_before[id]
  return nil, text, name
end

local function log_failure(id, which, text)
  log.error(("Trial %s: syncing the %s checkpoint failed: %s"):format(id, which, text))
end

local function finish_previous(self, id, process)
  local _, text = finish(self, id, process)
  if text then log_failure(id, "previous", text) end
end

local function is_due(self, id)
  local reached = self._reached[id] or { 0, 0 }
  if reached[1] < self.min_iter and reached[2] < self.min_time then return false end
  local last = self._synced[id] or -math.huge
  return clock.monotonic() - last >= self.sync_period
end

-- What was raised may be any value, also one whose __tostring raises.
local function said(raised)
  local fine, text = pcall(tostring, raised)
  return fine and text or "an error that has no text"
end

-- Tells where the trial is; asked once, until it starts anew. No address, an empty one and a
-- function that raises, as that of a node that is gone: it is nowhere.
local function source_of(self, trial)
  local source = self._sources[trial.id]
  if source then return source end
  local fine, found, text = pcall(self._source, trial)
  if not fine then found, text = nil, said(found) end
  if not found and text then
    log.error(("Trial %s: cannot tell where it runs: %s"):format(trial.id, text))
  end
  source = found ~= "" and found or nil
  self._sources[trial.id] = source
  return source
end

-- Returns whether a transfer was started, and how it failed if it was waited for.
local function sync(self, trial, force, wait)
  if not self.enabled or trial.uses_cloud_checkpointing then return false end
  local id = trial.id
  local process = process_of(self, id)
  -- Its failure is still to be told, by the task that waits for it.
  discount(self, id, process)
  if not force and (process:is_running() or not is_due(self, id)) then return false end
  local source = source_of(self, trial)
  if not source then return false end
  -- While a task waits others run: one may start a transfer of this trial, or end the trial.
  repeat finish_previous(self, id, process) until not process:is_running()
  if self._processes[id] ~= process then return false end
  self._synced_before[id], self._synced[id] = self._synced[id], clock.monotonic()
  process:start(source, trial.logdir, SyncerCallback.EXCLUDE)
  if not wait then return true end
  local _, text, name = finish(self, id, process)
  -- An error of a transfer function is a mistake in it, and the caller's to see.
  if text and name ~= "EINTERNAL" then log_failure(id, "current", text) end
  return true, text, name
end

-- Drops the processes that are flagged and over. If the last transfer of a trial failed, that is
-- told here or nowhere.
local function clean_up(self)
  for id in pairs(self._removing) do
    local process = self._processes[id]
    if not process or not process:is_running() then
      if process then finish_previous(self, id, process) end
      self._removing[id], self._processes[id] = nil, nil
    end
  end
end

-- Forgets a trial that has ended; one that starts under its id later begins anew.
local function end_trial(self, id)
  self._reached[id], self._sources[id] = nil, nil
  self._synced[id], self._synced_before[id] = nil, nil
  clean_up(self)
end

--- The trial starts, perhaps somewhere else than before.
---@param trial ckpt.Trial
function SyncerCallback:on_trial_start(trial)
  check(trial, "on_trial_start")
  self._sources[trial.id] = nil
end

--- The trial has reported. Fetches its directory, in the background, if a threshold is reached, the
--- period is over and no transfer of it is under way.
---@param trial ckpt.Trial
---@param result table `training_iteration`, `time_total_s`; one that is missing counts as reached
---@return boolean # whether a transfer was started
function SyncerCallback:on_trial_result(trial, result)
  check(trial, "on_trial_result")
  if type(result) ~= "table" then
    misuse("on_trial_result: the result is a " .. type(result) .. ", not a table")
  end
  self._reached[trial.id] = {
    tonumber(result.training_iteration) or self.min_iter,
    tonumber(result.time_total_s) or self.min_time,
  }
  return (sync(self, trial, false, false))
end

--- The trial has ended well: fetches its directory once more, in the background.
---@param trial ckpt.Trial
---@return boolean # whether a transfer was started
function SyncerCallback:on_trial_complete(trial)
  check(trial, "on_trial_complete")
  local started = sync(self, trial, true, false)
  self._removing[trial.id] = true
  end_trial(self, trial.id)
  return started
end

--- The trial has failed: nothing is fetched, a transfer that is under way is stopped.
---@param trial ckpt.Trial
function SyncerCallback:on_trial_error(trial)
  check(trial, "on_trial_error")
  local process = self._processes[trial.id]
  self._processes[trial.id] = nil -- first: whoever waits for it starts no other one
  if process and process:is_running() then
    process:stop()
  elseif process then
    finish_previous(self, trial.id, process)
  end
  end_trial(self, trial.id)
end

--- The trial has saved a checkpoint: fetches its directory at once, and waits. Afterwards the
--- checkpoint must be here. With `sync_on_checkpoint = false` the rules of `on_trial_result` decide
--- whether to fetch. A checkpoint that is only in memory is nothing to fetch.
---@param trial ckpt.Trial
---@param checkpoint { path: string, memory?: boolean } a `ckpt.Checkpoint` is one too
---@return boolean? # whether it was fetched
---@return string? text
---@return string? name "ENOENT": it is not here although the transfer went well; else the
---transfer's own. A transfer that failed while the checkpoint is here is only logged
function SyncerCallback:on_checkpoint(trial, checkpoint)
  check(trial, "on_checkpoint")
  if type(checkpoint) ~= "table" then
    misuse("on_checkpoint: the checkpoint is a " .. type(checkpoint) .. ", not a table")
  end
  -- A Checkpoint raises for names that it does not have.
  if rawget(checkpoint, "memory") then return false end
  local path = checkpoint.path
  if type(path) ~= "string" then misuse("on_checkpoint: the checkpoint has no `path`") end
  local started, text, name = sync(self, trial, trial.sync_on_checkpoint ~= false, true)
  if name == "EINTERNAL" then return nil, text, name end
  if not started or fs.exists(path) then return started end
  if text then
    return nil, ("Trial %s: checkpoint %s is not here, and the sync of the trial failed: %s")
      :format(trial.id, path, text), name
  end
  return nil, ("Trial %s: checkpoint %s is not here, though the sync of the trial succeeded")
    :format(trial.id, path), "ENOENT"
end

local function sorted(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

--- Waits for all transfers.
---@return true?
---@return string? text a line for each trial whose transfer failed, in the order in which they were
---  first looked at
---@return string? name of the first of these failures
function SyncerCallback:wait_for_all()
  clean_up(self)
  local lines, first = {}, nil
  local ids, made = sorted(self._processes), self._made
  table.sort(ids, function(a, b) return made[a] < made[b] end)
  for _, id in ipairs(ids) do
    local process = self._processes[id]
    local done, text, name = true, nil, nil
    if process then done, text, name = finish(self, id, process) end
    if not done then
      lines[#lines + 1] = ("  %s: %s"):format(id, text)
      first = first or name
    end
    self._removing[id] = true
  end
  clean_up(self)
  if #lines == 0 then return true end
  return nil, "The directories of these trials could not be synced:\n" .. table.concat(lines, "\n"),
    first
end

--- All trials are over: waits for all transfers; failures are logged.
function SyncerCallback:on_experiment_end()
  local done, text = self:wait_for_all()
  if not done then log.error(text) end
end

---@class ckpt.SyncerCallbackStatus
---@field processes string[] ids of the trials that were looked at, sorted
---@field running string[] ... whose transfer is under way
---@field removing string[] ... that are forgotten when their transfer is over
---@field sources table<string, string> where the trials are, as far as it was asked

--- Tells its present state.
---@return ckpt.SyncerCallbackStatus
function SyncerCallback:status()
  local running, sources = {}, {}
  for id, process in pairs(self._processes) do
    if process:is_running() then running[id] = true end
  end
  for id, source in pairs(self._sources) do sources[id] = source end
  return {
    processes = sorted(self._processes),
    running = sorted(running),
    removing = sorted(self._removing),
    sources = sources,
  }
end

--- Returns the state that can be kept over an end of the program: settings and the trials' numbers,
--- not transfers, their times, or where trials are.
---@return table # numbers, texts and tables only
function SyncerCallback:state()
  local reached = {}
  for id, pair in pairs(self._reached) do reached[id] = { pair[1], pair[2] } end
  return {
    enabled = self.enabled,
    sync_period = self.sync_period,
    min_iter = self.min_iter,
    min_time = self.min_time,
    reached = reached,
  }
end

--- Takes up the result of `state`. No trial counts as synced; transfers under way are stopped.
---@param state table
function SyncerCallback:restore(state)
  if type(state) ~= "table" or type(state.reached) ~= "table" then
    misuse("restore: not a table of SyncerCallback:state()")
  end
  for _, process in pairs(self._processes) do process:stop() end
  self:_forget_all()
  self.enabled, self.sync_period = state.enabled, state.sync_period
  self.min_iter, self.min_time = state.min_iter, state.min_time
  for id, pair in pairs(state.reached) do self._reached[id] = { pair[1], pair[2] } end
end

return SyncerCallback
