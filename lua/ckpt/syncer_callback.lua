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

local BackgroundProcess = require "ckpt.background_process"
local class = require "ckpt.class"
local clock = require "ckpt.clock"
local defaults = require "ckpt.sync_defaults"
local duration = require "ckpt.duration"
local fs = require "ckpt.fs"
local log = require "ckpt.log"
local misuse = require "ckpt.misuse"

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

--- What is never fetched, in this order (item 139).
SyncerCallback.EXCLUDE = {
  "./checkpoint_-00001",
  "./checkpoint_tmp*",
  "./save_to_object*",
  "./rank_*",
  "./.lazy_checkpoint_marker",
}

--- The first fetch of a trial comes after so many iterations, or so many seconds of training
--- (item 138).
SyncerCallback.MIN_ITER, SyncerCallback.MIN_TIME = 2, 10

-- A number out of the environment, spelled as people write it: no hexadecimal.
local function setting(variable, pattern, what, default)
  local text = os.getenv(variable)
  if not text then return default end
  local number = text:match("^%s*(" .. pattern .. ")%s*$")
  number = number and not number:find("[xX]") and tonumber(number)
  if number then return number end
  error(("%s is %q: set it to %s, or unset it"):format(variable, text, what), 4)
end

local OPTIONS = {
  enabled = "boolean", sync_period = "number", source = "function", transfer = "function",
}

local function check_options(options)
  if type(options) ~= "table" then
    misuse("SyncerCallback: its options are a " .. type(options) .. ", not a table")
  end
  for name, value in pairs(options) do
    if not OPTIONS[name] then
      error(("SyncerCallback: there is no option `%s`"):format(tostring(name)), 4)
    elseif type(value) ~= OPTIONS[name] then
      error(("SyncerCallback: `%s` is a %s, not a %s"):format(name, type(value), OPTIONS[name]), 4)
    end
  end
  if options.sync_period then
    duration.option(options.sync_period, "SyncerCallback: `sync_period`")
  end
end

--- Reads the thresholds from TUNE_NODE_SYNCING_MIN_ITER_THRESHOLD (a whole number) and
--- TUNE_NODE_SYNCING_MIN_TIME_S_THRESHOLD (a number), once; raises if one of them is none, or is
--- empty. (Item 189.)
---@param options? ckpt.SyncerCallbackOptions
function SyncerCallback:init(options)
  options = options or {}
  check_options(options)
  self.enabled = options.enabled ~= false
  self.sync_period = options.sync_period or defaults.sync_period
  self.min_iter = setting("TUNE_NODE_SYNCING_MIN_ITER_THRESHOLD", "[+-]?%d+", "a whole number",
    SyncerCallback.MIN_ITER)
  self.min_time = setting("TUNE_NODE_SYNCING_MIN_TIME_S_THRESHOLD", "%S+", "a number of seconds",
    SyncerCallback.MIN_TIME)
  self._source = options.source or function(trial) return trial.uri end
  self._transfer = options.transfer or require "ckpt.trial_transfer"
  self:_forget_all()
end

function SyncerCallback:_forget_all()
  self._processes = {} -- trial id -> ckpt.BackgroundProcess, from the first look on
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
  error(("%s: a trial is a table with the texts `id` and `logdir`"):format(method), 3)
end

local function process_of(self, id)
  local process = self._processes[id]
  if not process then
    process = BackgroundProcess(self._transfer, "the transfer of trial " .. id)
    self._processes[id] = process
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

-- Where the trial is; asked once, until it starts anew.
local function source_of(self, trial)
  local source = self._sources[trial.id]
  if source then return source end
  local text
  source, text = self._source(trial)
  if not source and text then
    log.error(("Trial %s: cannot tell where it runs: %s"):format(trial.id, text))
  end
  self._sources[trial.id] = source or nil
  return source
end

-- Returns whether a transfer was started, and how it failed if it was waited for.
local function sync(self, trial, force, wait)
  if not self.enabled or trial.uses_cloud_checkpointing then return false end
  local id = trial.id
  local process = process_of(self, id)
  -- Its failure is still to be told, by who waits for it.
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
  -- What a transfer raises is a mistake in it, and the caller's to see.
  if text and name ~= "EINTERNAL" then log_failure(id, "current", text) end
  return true, text, name
end

-- Drops the processes that are flagged and over. That the last transfer of a trial failed is told
-- here or nowhere.
local function clean_up(self)
  for id in pairs(self._removing) do
    local process = self._processes[id]
    if not process or not process:is_running() then
      if process then finish_previous(self, id, process) end
      self._removing[id], self._processes[id] = nil, nil
    end
  end
end

-- Nothing of a trial that has ended is kept; one that starts under its id later begins anew.
local function end_trial(self, id)
  self._reached[id], self._sources[id] = nil, nil
  self._synced[id], self._synced_before[id] = nil, nil
  clean_up(self)
end

--- The trial starts, perhaps somewhere else than before. (Item 200.)
---@param trial ckpt.Trial
function SyncerCallback:on_trial_start(trial)
  check(trial, "on_trial_start")
  self._sources[trial.id] = nil
end

--- The trial has reported. Fetches its directory, in the background, if a threshold is reached, the
--- period is over and no transfer of it is under way. (Items 190-197, 206.)
---@param trial ckpt.Trial
---@param result table `training_iteration`, `time_total_s`; one that is missing counts as reached
---@return boolean # whether a transfer was started
function SyncerCallback:on_trial_result(trial, result)
  check(trial, "on_trial_result")
  if type(result) ~= "table" then
    error("on_trial_result: the result is a " .. type(result) .. ", not a table", 2)
  end
  self._reached[trial.id] = {
    tonumber(result.training_iteration) or self.min_iter,
    tonumber(result.time_total_s) or self.min_time,
  }
  return (sync(self, trial, false, false))
end

--- The trial has ended well: fetches its directory once more, in the background. (Item 207.)
---@param trial ckpt.Trial
---@return boolean # whether a transfer was started
function SyncerCallback:on_trial_complete(trial)
  check(trial, "on_trial_complete")
  local started = sync(self, trial, true, false)
  self._removing[trial.id] = true
  end_trial(self, trial.id)
  return started
end

--- The trial has failed: nothing is fetched, a transfer that is under way is stopped. (Item 208.)
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
--- whether to fetch. A checkpoint that is only in memory is nothing to fetch. (Items 205, 209-212.)
---@param trial ckpt.Trial
---@param checkpoint { path: string, memory?: boolean } a `ckpt.Checkpoint` is one too
---@return boolean? # whether it was fetched
---@return string? text
---@return string? name "ENOENT": it is not here although the transfer went well; else the
---transfer's own. A transfer that failed while the checkpoint is here is only logged
function SyncerCallback:on_checkpoint(trial, checkpoint)
  check(trial, "on_checkpoint")
  if type(checkpoint) ~= "table" then
    error("on_checkpoint: the checkpoint is a " .. type(checkpoint) .. ", not a table", 2)
  end
  -- A Checkpoint raises for names that it does not have.
  if rawget(checkpoint, "memory") then return false end
  local path = checkpoint.path
  if type(path) ~= "string" then error("on_checkpoint: the checkpoint has no `path`", 2) end
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

--- Waits for all transfers. (Item 215.)
---@return true?
---@return string? text a line for each trial whose transfer failed
---@return string? name of the first of these failures
function SyncerCallback:wait_for_all()
  clean_up(self)
  local lines, first = {}, nil
  for _, id in ipairs(sorted(self._processes)) do
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

--- All trials are over: waits for all transfers; what failed is logged. (Item 216.)
function SyncerCallback:on_experiment_end()
  local done, text = self:wait_for_all()
  if not done then log.error(text) end
end

---@class ckpt.SyncerCallbackStatus
---@field processes string[] ids of the trials that were looked at, sorted
---@field running string[] ... whose transfer is under way
---@field removing string[] ... that are forgotten when their transfer is over
---@field sources table<string, string> where the trials are, as far as it was asked

--- What it is about.
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

--- What can be kept over an end of the program: settings and the trials' numbers, not transfers,
--- their times, or where trials are. (Item 217.)
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

--- Takes up what `state` gave. No trial counts as synced; transfers under way are stopped.
---@param state table
function SyncerCallback:restore(state)
  if type(state) ~= "table" or type(state.reached) ~= "table" then
    error("restore: not a table of SyncerCallback:state()", 2)
  end
  for _, process in pairs(self._processes) do process:stop() end
  self:_forget_all()
  self.enabled, self.sync_period = state.enabled, state.sync_period
  self.min_iter, self.min_time = state.min_iter, state.min_time
  for id, pair in pairs(state.reached) do self._reached[id] = { pair[1], pair[2] } end
end

return SyncerCallback
