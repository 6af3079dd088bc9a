--- Ray 2.4.0's node sync, written down once more, without jobs and files: events in, decisions out.
--- It answers as the recorded traces do, and, with items of docs/contract.md switched on, as the
--- library has to. So a spec can tell which item makes a difference.

local recording = require "recording"

local model = {}

--- The items in which the library decides otherwise.
model.BETTER = { [202] = true, [204] = true, [214] = true }

--- Those of a run, whose saves queue: one that is wanted while another is at work runs next. The
--- object that decides as the peer does asks whether one is at work, and lets it be then.
model.QUEUES = { [174] = true, [202] = true, [204] = true, [214] = true }

local function plain(value) return value ~= recording.null and value or nil end

local Run = {}
Run.__index = Run

local function sorted(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- Each trial: where it is, what its next transfers do.
local function trials_of(config)
  local trials = {}
  for _, trial in ipairs(config.trials) do
    trials[trial.id] = {
      id = trial.id, cloud = trial.cloud, forces = trial.sync_on_checkpoint,
      source = "10.0.0.2", outcome = "ok", takes = 0,
    }
  end
  return trials
end

--- All traces of the recording.
---@param recorded table syncer_traces of spec/data/oracle
function model.traces(recorded)
  local traces = {}
  for _, list in ipairs { recorded.named, recorded.traces } do
    for _, trace in ipairs(list) do
      trace.name = trace.name or "trace " .. trace.id
      traces[#traces + 1] = trace
    end
  end
  return traces
end

--- What an event of a trace sets before it happens: the time, and what is true of its trial.
function model.apply(event, trial)
  if not trial then return end
  if event.duration then trial.takes, trial.outcome = event.duration, event.outcome end
  if event.ip ~= nil then trial.source = plain(event.ip) end
  if event.dead ~= nil then trial.dead = event.dead end
end

---@param trace table
---@param better? table<integer, boolean> items that are better
function model.run(trace, better)
  local config = trace.config
  return setmetatable({
    better = better or {}, now = 1000, trials = trials_of(config),
    enabled = config.enabled, period = config.sync_period,
    min_iter = tonumber(plain(config.env_min_iter) or 2),
    min_time = tonumber(plain(config.env_min_time) or 10),
    count = 0, processes = {}, removing = {}, synced = {}, before = {}, reached = {}, sources = {},
    waiting = {},
  }, Run)
end

-- A line of the log: all of the peer's are errors. `cause`: what the transfer said.
function Run:log(kind, id, cause)
  table.insert(self.step.log, model.line("error", id and kind .. " " .. id or kind, cause))
end

--- What who asks where a dead trial runs is told.
model.DEAD = "The actor died unexpectedly before finishing this task."

local CAUSES = { tune = "sync failed", other = "transport failed" }

function Run:running(id)
  local job = self.processes[id] and self.processes[id].job
  return job ~= nil and job.ends > self.now
end

-- The outcome of a trial's transfer, once.
function Run:wait(id)
  local job = self.processes[id].job
  if not job then return "ok" end
  table.insert(self.step.ops, { "waited", id })
  self.processes[id].job = nil
  self.now = math.max(self.now, job.ends)
  if job.outcome ~= "ok" and self.better[204] then self.synced[id] = self.before[id] end
  return job.outcome
end

function Run:wait_for_previous(id)
  local outcome = self:wait(id)
  if outcome == "tune" or outcome == "other" and self.better[202] then
    self:log("previous", id, CAUSES[outcome])
  elseif outcome == "other" then
    self.step.exception = "other"
  end
end

function Run:is_due(id)
  local reached = self.reached[id] or { 0, 0 }
  if reached[1] < self.min_iter and reached[2] < self.min_time then return false end
  return self.now - (self.synced[id] or -math.huge) >= self.period
end

-- What a policy decides in a run. `forced`: the peer does not ask.
function Run:wants(id, forced) return forced or self:is_due(id) end

function Run:source_of(trial)
  if self.sources[trial.id] then return self.sources[trial.id] end
  if trial.dead then
    self:log("address", trial.id, model.DEAD)
  elseif trial.source ~= "" then -- an empty address is none
    self.sources[trial.id] = trial.source
  end
  return self.sources[trial.id]
end

function Run:sync(trial, force, wait)
  local id = trial.id
  if not self.enabled or trial.cloud then return false end
  if not self.processes[id] then
    self.count = self.count + 1
    self.processes[id] = { number = self.count }
  end
  local job = self.processes[id].job
  local has_failed = job ~= nil and job.ends <= self.now and job.outcome ~= "ok"
  if self.better[204] and has_failed then self.synced[id] = self.before[id] end
  if not self:wants(id, force) then return false end
  if not force and self:running(id) then
    self.waiting[id] = self.better[174]
    return false
  end
  local source = self:source_of(trial)
  if not source then return false end
  self.waiting[id] = nil -- this one is newer
  self:wait_for_previous(id)
  if self.step.exception then return false end
  self.processes[id].job = { ends = self.now + trial.takes, outcome = trial.outcome }
  self.before[id], self.synced[id] = self.synced[id], self.now
  table.insert(self.step.ops, { "start", id })
  table.insert(self.step.started, id)
  table.insert(self.step.sources, source)
  if not wait then return true end
  local outcome = self:wait(id)
  if outcome == "tune" then self:log("current", id, CAUSES[outcome]) end
  if outcome == "other" then self.step.exception = "other" end
  return true
end

-- Starts what was remembered while another was at work, when that was over.
function Run:go_on()
  for _, id in ipairs(sorted(self.waiting)) do
    local process, trial = self.processes[id], self.trials[id]
    local job = process and process.job
    if not job then
      self.waiting[id] = nil
    elseif job.ends <= self.now then
      self.waiting[id] = nil
      if job.outcome ~= "ok" and self.better[204] then self.synced[id] = self.before[id] end
      self.before[id], self.synced[id] = self.synced[id], job.ends
      process.job = { ends = job.ends + trial.takes, outcome = trial.outcome }
    end
  end
end

function Run:clean_up()
  for id in pairs(self.removing) do
    if not self:running(id) then
      if self.better[202] and self.processes[id] then self:wait_for_previous(id) end
      self.removing[id], self.processes[id] = nil, nil
    end
  end
end

function Run:forget(id)
  self.sources[id] = nil
  if self.better[214] then
    self.synced[id], self.before[id], self.reached[id] = nil, nil, nil
  end
  self:clean_up()
end

local on = {}

function on.start(self, trial) self.sources[trial.id] = nil end

function on.result(self, trial, event)
  self.reached[trial.id] = {
    plain(event.iter) or self.min_iter, plain(event.time) or self.min_time,
  }
  self:sync(trial, false, false)
end

function on.complete(self, trial)
  self:sync(trial, true, false)
  if self.step.exception then return end
  self.removing[trial.id] = true
  self:forget(trial.id)
end

function on.error(self, trial)
  local id = trial.id
  if self.better[202] and self.processes[id] and not self:running(id) then
    self:wait_for_previous(id)
  end
  self.processes[trial.id] = nil
  self:forget(trial.id)
end

function on.checkpoint(self, trial, event)
  if event.memory then return end
  if self:sync(trial, trial.forces, true) and not self.step.exception and not event.exists then
    self.step.exception = "missing"
  end
end

function on.wait_for_all(self)
  self:clean_up()
  local failed = {}
  local ids = sorted(self.processes)
  table.sort(ids, function(a, b) return self.processes[a].number < self.processes[b].number end)
  for _, id in ipairs(ids) do
    local outcome = self:wait(id)
    if outcome ~= "ok" then failed[#failed + 1] = id .. ": " .. CAUSES[outcome] end
    self.removing[id] = true
  end
  self:clean_up()
  if #failed > 0 then self.step.exception = "all " .. table.concat(failed, ", ") end
end

function on.experiment_end(self)
  on.wait_for_all(self)
  if self.step.exception then self:log(self.step.exception) end
  self.step.exception = nil
end

function on.advance() end

--- One event. Returns what it has led to, in the words of `model.recorded`.
function Run:event(event)
  local trial = self.trials[event.trial]
  self.now = self.now + event.dt
  self:go_on()
  model.apply(event, trial)
  self.step = { started = {}, sources = {}, ops = {}, log = {} }
  on[event.ev](self, trial, event)
  local step, running = self.step, {}
  for id in pairs(self.processes) do running[id] = self:running(id) or nil end
  step.now = self.now
  step.processes, step.running = sorted(self.processes), sorted(running)
  step.removing = sorted(self.removing)
  step.known = {}
  for id, source in pairs(self.sources) do step.known[id] = source end
  return step
end

--- A line of a log: its level, what it is about, and what the transfer said.
function model.line(level, kind, cause)
  return ("%s: %s%s"):format(level:lower(), kind, cause and ": " .. cause or "")
end

--- What is about all trials: those that failed, each with its cause. nil: it is about one.
---@param text string
---@return string?
function model.all_of(text)
  local failed = {}
  for id, cause in text:gmatch("\n  (%w+): ([^\n]*)") do
    failed[#failed + 1] = id .. ": " .. cause
  end
  return #failed > 0 and "all " .. table.concat(failed, ", ") or nil
end

-- The messages of the peer: what they are about, and why.
local ALL = "At least one trial failed to sync down when waiting for all trials to sync: \n"
local ONE = "^Trial (%w+): An error occurred during the checkpoint syncing of the (%w+) "
  .. "checkpoint: (.*)$"

local ADDRESS = "^Trial (%w+): An error occurred when trying to get the node ip where this trial "
  .. "is running: (.*)$"

local function kind_of(text)
  if text:sub(1, #ALL) == ALL then return model.all_of(text) end
  local id, which, cause = text:match(ONE)
  if not id then
    id, cause = text:match(ADDRESS)
    which = "address"
  end
  return id and which .. " " .. id or "? " .. text, cause
end

local GONE = "^Trial (%w+): Checkpoint path %$CKPT/nope not found after successful sync down%.$"

-- An error that the peer raised.
local function exception_of(kind, text)
  if kind == "RuntimeError" and text == "transport failed" then return "other" end
  if kind ~= "TuneError" then return "? " .. kind end
  local id = text:match(GONE)
  return id and "missing" or kind_of(text)
end

--- A recorded step in the same words.
function model.recorded(step)
  local log, exception = {}, plain(step.exception)
  for i, line in ipairs(step.log) do
    log[i] = #line == 2 and model.line(line[1], kind_of(line[2])) or "? a line of other parts"
  end
  if exception then
    exception = #exception == 2 and exception_of(exception[1], exception[2]) or "? other parts"
  end
  table.sort(step.processes)
  table.sort(step.running)
  table.sort(step.to_remove)
  return {
    started = step.started, sources = step.source_ips, ops = step.ops, log = log,
    exception = exception,
    now = step.now, processes = step.processes, running = step.running,
    removing = step.to_remove, known = step.known_ips,
  }
end

return model
