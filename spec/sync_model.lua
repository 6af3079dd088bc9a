--- Ray 2.4.0's node sync, written down once more, without jobs and files: events in, decisions out.
--- It answers as the recorded traces do, and, with items of docs/contract.md switched on, as the
--- library has to. So a spec can tell which item makes a difference.

local json = require "cjson"

local model = {}

--- The items in which the library decides otherwise.
model.BETTER = { [202] = true, [204] = true, [214] = true }

local function plain(value) return value ~= json.null and value or nil end

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
---@param path string
function model.traces(path)
  local file = assert(io.open(path, "rb"))
  local recorded = json.decode(file:read("*a"))
  file:close()
  local traces = {}
  for _, list in ipairs { recorded.named, recorded.traces } do
    for _, trace in ipairs(list) do
      trace.name = trace.name or "trace " .. trace.id
      traces[#traces + 1] = trace
    end
  end
  return traces, recorded
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
    processes = {}, removing = {}, synced = {}, before = {}, reached = {}, sources = {},
  }, Run)
end

function Run:log(kind, id) table.insert(self.step.log, id and kind .. " " .. id or kind) end

function Run:running(id)
  local job = self.processes[id] and self.processes[id].job
  return job ~= nil and job.ends > self.now
end

-- The outcome of a trial's transfer, once.
function Run:wait(id)
  local job = self.processes[id].job
  if not job then return "ok" end
  self.processes[id].job = nil
  self.now = math.max(self.now, job.ends)
  if job.outcome ~= "ok" and self.better[204] then self.synced[id] = self.before[id] end
  return job.outcome
end

function Run:wait_for_previous(id)
  local outcome = self:wait(id)
  if outcome == "tune" or outcome == "other" and self.better[202] then
    self:log("previous", id)
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
    self:log("address", trial.id)
  else
    self.sources[trial.id] = trial.source
  end
  return self.sources[trial.id]
end

function Run:sync(trial, force, wait)
  local id = trial.id
  if not self.enabled or trial.cloud then return false end
  self.processes[id] = self.processes[id] or {}
  local job = self.processes[id].job
  local has_failed = job ~= nil and job.ends <= self.now and job.outcome ~= "ok"
  if self.better[204] and has_failed then self.synced[id] = self.before[id] end
  if not self:wants(id, force) or not force and self:running(id) then return false end
  local source = self:source_of(trial)
  if not source then return false end
  self:wait_for_previous(id)
  if self.step.exception then return false end
  self.processes[id].job = { ends = self.now + trial.takes, outcome = trial.outcome }
  self.before[id], self.synced[id] = self.synced[id], self.now
  table.insert(self.step.started, id)
  table.insert(self.step.sources, source)
  if not wait then return true end
  local outcome = self:wait(id)
  if outcome == "tune" then self:log("current", id) end
  if outcome == "other" then self.step.exception = "other" end
  return true
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
  for _, id in ipairs(sorted(self.processes)) do
    if self:wait(id) ~= "ok" then failed[#failed + 1] = id end
    self.removing[id] = true
  end
  self:clean_up()
  if #failed > 0 then self.step.exception = "all " .. table.concat(failed, " ") end
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
  model.apply(event, trial)
  self.step = { started = {}, sources = {}, log = {} }
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

-- The messages of the peer, by what they are about.
local function kind_of(text)
  local failed = {}
  for id in text:gmatch("\n  (%w+): ") do failed[#failed + 1] = id end
  if #failed > 0 then return "all " .. table.concat(failed, " ") end
  local id = text:match("^Trial (%w+)")
  return (text:find("previous checkpoint") and "previous " or text:find("current checkpoint")
    and "current " or text:find("node ip") and "address " or "? ") .. tostring(id)
end

--- A recorded step in the same words.
function model.recorded(step)
  local log, exception = {}, plain(step.exception)
  for i, line in ipairs(step.log) do log[i] = kind_of(line[2]) end
  if exception then
    local text = exception[2]
    exception = exception[1] == "RuntimeError" and "other"
      or text:find("not found after") and "missing" or kind_of(text)
  end
  table.sort(step.processes)
  table.sort(step.running)
  table.sort(step.to_remove)
  return {
    started = step.started, sources = step.source_ips, log = log, exception = exception,
    now = step.now, processes = step.processes, running = step.running,
    removing = step.to_remove, known = step.known_ips,
  }
end

return model
