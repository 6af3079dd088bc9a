-- Every trace that was recorded of Ray 2.4.0's SyncerCallback, through ours. Beside it runs a model
-- (spec/sync_model.lua) that is checked against the recording first. With the items of
-- docs/contract.md switched on it says what we have to answer where we are better on purpose.
local ckpt = require "ckpt"
local ffi = require "ffi"
local model = require "sync_model"
local recording = require "recording"
local support = require "support"

ffi.cdef [[
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
]]

local ENVIRONMENT = {
  env_min_iter = "TUNE_NODE_SYNCING_MIN_ITER_THRESHOLD",
  env_min_time = "TUNE_NODE_SYNCING_MIN_TIME_S_THRESHOLD",
}
-- How a transfer ends: well, with an error of the transfer, with a mistake in its function.
local FAILURES = {
  ok = function(seconds) return { "ok", seconds } end,
  tune = function(seconds) return { "fail", seconds, "sync failed", "EIO" } end,
  other = function(seconds) return { "fail", seconds, "transport failed", "EINTERNAL" } end,
}

describe("the recorded traces of the node sync", function()
  local recorded = recording.read "syncer_traces"
  local traces = model.traces(recorded)
  local clock, log, restore_log, dir

  local function set_environment(config)
    for field, variable in pairs(ENVIRONMENT) do
      local value = config[field]
      if type(value) == "string" then
        ffi.C.setenv(variable, value, 1)
      else
        ffi.C.unsetenv(variable)
      end
    end
  end

  before_each(function()
    clock = ckpt.testing.clock(1000)
    log, restore_log = ckpt.testing.capture_log()
    dir = support.directory()
  end)

  after_each(function()
    clock:restore()
    restore_log()
    support.sh("rm -rf " .. dir)
    set_environment {}
  end)

  -- Ours, with transfers of a script: `step` collects what an event leads to.
  local function object_of(trace)
    local transfers, trials = ckpt.testing.transfers(clock), {}
    local run = { step = nil }
    for _, trial in ipairs(trace.config.trials) do
      trials[trial.id] = {
        id = trial.id, logdir = dir .. "/" .. trial.id, uses_cloud_checkpointing = trial.cloud,
        sync_on_checkpoint = trial.sync_on_checkpoint, source = "10.0.0.2", outcome = "ok",
        takes = 0,
      }
    end
    run.trials = trials
    run.callback = ckpt.SyncerCallback {
      enabled = trace.config.enabled,
      sync_period = trace.config.sync_period,
      source = function(trial)
        if trial.dead then return nil, model.DEAD end
        return trial.source
      end,
      transfer = function(source, target, exclude)
        local trial = trials[ckpt.fs.base(target)]
        table.insert(run.step.started, trial.id)
        table.insert(run.step.sources, source)
        assert.same(recorded.exclude, exclude)
        transfers:plan { FAILURES[trial.outcome](trial.takes) }
        return transfers:launch(trial.id)
      end,
    }
    return run
  end

  local function kind_of(text)
    if text:find("\n", 1, true) then return model.all_of(text) end
    local id, which, cause = text:match "^Trial (%w+): syncing the (%w+) checkpoint failed: (.*)$"
    if not id then
      id, cause = text:match "^Trial (%w+): cannot tell where it runs: (.*)$"
      which = "address"
    end
    return id and which .. " " .. id or "? " .. text, cause
  end

  local function exception_of(text, name)
    if not text then return nil end
    if name == "EINTERNAL" then return "other" end
    return text:find("is not here") and "missing" or kind_of(text)
  end

  local function call(run, event, trial)
    local callback = run.callback
    if event.ev == "result" then
      local function number(value) return type(value) == "number" and value or nil end
      callback:on_trial_result(trial, {
        training_iteration = number(event.iter), time_total_s = number(event.time),
      })
    elseif event.ev == "checkpoint" then
      return callback:on_checkpoint(trial, {
        path = event.exists and dir or dir .. "/nope", memory = event.memory or nil,
      })
    elseif event.ev == "wait_for_all" then
      return callback:wait_for_all()
    elseif event.ev == "experiment_end" then
      callback:on_experiment_end()
    elseif event.ev ~= "advance" then
      callback["on_trial_" .. event.ev](callback, trial)
    end
  end

  local function step_of(run, event)
    local trial = run.trials[event.trial]
    clock:advance(event.dt)
    model.apply(event, trial)
    run.step = { started = {}, sources = {}, log = {} }
    local lines = #log
    local _, text, name = call(run, event, trial)
    local step, status = run.step, run.callback:status()
    step.exception = exception_of(text, name)
    for i = lines + 1, #log do
      table.insert(step.log, model.line(log[i].level, kind_of(log[i].text)))
    end
    step.now, step.processes, step.running = clock.time, status.processes, status.running
    step.removing, step.known = status.removing, status.sources
    return step
  end

  local function round(step)
    step.now = math.floor(step.now * 1000 + 0.5)
    return step
  end

  -- Runs all traces through `make`, `each` gets every step of it and the recorded one.
  local function replay(make, each)
    for _, trace in ipairs(traces) do
      if not trace.oracle.init_error then
        local run = make(trace)
        for i, event in ipairs(trace.events) do
          each(trace, i, run(event), model.recorded(trace.oracle.steps[i]))
        end
      end
    end
  end

  local function model_of(items)
    return function(trace)
      local run = model.run(trace, items)
      return function(event) return run:event(event) end
    end
  end

  local function name_of(trace, i) return ("%s, event %d"):format(trace.name, i) end

  it("are all there, and the model answers each of them as the peer did", function()
    local steps = 0
    replay(model_of {}, function(trace, i, step, peer)
      assert.same(round(peer), round(step), name_of(trace, i))
      steps = steps + 1
    end)
    assert.same({ 69, 1139 }, { #traces, steps })
  end)

  it("[190, 191, 193, 194, 197, 198, 206, 207, 210, 213, 215] are answered by ours", function()
    local compared, differ = 0, 0
    for _, trace in ipairs(traces) do
      if not trace.oracle.init_error then
        clock.time = 1000
        set_environment(trace.config)
        local run, expected = object_of(trace), model.run(trace, model.BETTER)
        for i, event in ipairs(trace.events) do
          local step, wanted = step_of(run, event), expected:event(event)
          wanted.ops = nil -- when it waits is its own affair: what comes of it is compared
          assert.same(round(wanted), round(step), name_of(trace, i))
          compared = compared + 1
          local peer = round(model.recorded(trace.oracle.steps[i]))
          peer.ops = nil
          differ = differ + (require("luassert.util").deepcompare(peer, step) and 0 or 1)
        end
      end
    end
    assert.same({ 1139, 62 }, { compared, differ })
  end)

  it("[204 G] are answered differently where a transfer has failed, and nowhere else", function()
    local compare = require("luassert.util").deepcompare
    local failed, differ
    local function make(trace)
      failed = {}
      local run = model.run(trace, { [204] = true })
      return function(event)
        local step = run:event(event)
        for _, id in ipairs(step.started) do
          if run.trials[id].outcome ~= "ok" then failed[id] = true end
        end
        return step
      end
    end
    differ = 0
    replay(make, function(trace, i, step, peer)
      if compare(round(peer), round(step)) then return end
      differ = differ + 1
      assert.is_truthy(next(failed), name_of(trace, i))
    end)
    assert.equal(62, differ)
  end)

  -- What Python says of a threshold that is no number.
  local function refusal_of(config)
    local iter, time = config.env_min_iter, config.env_min_time
    if type(iter) == "string" and not iter:find "^%d+$" then
      return { "ValueError", ("invalid literal for int() with base 10: '%s'"):format(iter) }
    elseif type(time) == "string" and not tonumber(time) then
      return { "ValueError", ("could not convert string to float: '%s'"):format(time) }
    end
  end

  it("[189] are refused where the peer refused its environment", function()
    local refused = 0
    for _, trace in ipairs(traces) do
      set_environment(trace.config)
      local made, why = pcall(object_of, trace)
      assert.same(refusal_of(trace.config), trace.oracle.init_error, trace.name)
      assert.equal(trace.oracle.init_error == nil, made, trace.name)
      assert(made or why:find("TUNE_NODE_SYNCING_MIN_", 1, true), why)
      refused = refused + (made and 0 or 1)
    end
    assert.equal(3, refused)
  end)
end)
