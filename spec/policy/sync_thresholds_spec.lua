--- policies/sync_thresholds.lua against what Ray's node sync decided (its thresholds, its period,
--- when it is forced), and by hand at the edges.
package.path = "./spec/policy/?.lua;./spec/?.lua;" .. package.path
local json = require "cjson"
local library = require "library"
local support = require "support"

local recorded = json.decode(support.read(support.root .. "/spec/data/oracle/syncer_traces.json"))

local function value(v)
  if v ~= json.null then return v end
end

--- Replays one trace. What belongs to the queue and not to the policy is done here: one transfer
--- for each trial at a time; a forced one waits for the one before it.
local function replay(trace)
  local config, trials, now, decisions = trace.config, {}, 1000, 0
  local cloud = {}
  for _, id in ipairs(config.cloud) do cloud[id] = true end
  local policies = {}
  for id, on_checkpoint in pairs(config.trials) do
    trials[id] = { over = -math.huge, takes = 0 }
    policies[id] = library.shipped("sync_thresholds", {
      period = tostring(config.period),
      min_iter = tostring(config.min_iter),
      min_time = tostring(config.min_time_s),
      on_checkpoint = tostring(on_checkpoint),
    })
  end

  local function ask(id, name)
    local t = trials[id]
    local since = { seconds = t.last and now - t.last }
    return policies[id].ask("sync", { event = name, now = now, result = t.result, since = since })
  end

  local function start(id)
    local t = trials[id]
    t.last = math.max(now, t.over)
    t.over = t.last + t.takes
    return { id }
  end

  for i, event in ipairs(trace.events) do
    local id, started, expected = event.trial, {}, trace.steps[i]
    local t = trials[id]
    now = now + event.dt
    if t and event.duration then t.takes = event.duration end
    if event.ev == "result" and not cloud[id] then
      t.result = { training_iteration = value(event.iter), time_total_s = value(event.time) }
      local wanted = ask(id, "result") == "sync"
      if wanted and now >= t.over then started = start(id) end
      decisions = decisions + 1
    elseif event.ev == "checkpoint" and not event.memory and not cloud[id] then
      local forced = config.trials[id]
      local wanted = ask(id, "complete") == "sync"
      if wanted and (forced or now >= t.over) then started = start(id) end
      decisions = decisions + 1
    elseif event.ev == "complete" and not cloud[id] then
      if ask(id, "end") == "sync" then started = start(id) end
    elseif event.ev == "error" then
      t.over = -math.huge
    end
    assert.same(expected.started, started, ("%s, event %d (%s)"):format(trace.name, i, event.ev))
    now = expected.now -- a wait of the peer has moved its clock
  end
  return decisions
end

describe("policies/sync_thresholds.lua", function()
  it("decides as Ray did, trace by trace", function()
    local decisions = 0
    for _, trace in ipairs(recorded.traces) do decisions = decisions + replay(trace) end
    assert.is_true(decisions > 900, decisions)
  end)

  local function ask(result, since, event, settings)
    local M = library.shipped("sync_thresholds", settings)
    return M.ask("sync", library.event { event = event, result = result, since = since })
  end

  for _, row in ipairs {
    { "both below", { 1, 9.99 }, {}, "skip", "iteration 1 of 2, and 10.0 of 10 s of training" },
    { "the iteration reached", { 2, 0 }, {}, "sync" },
    { "the time reached", { 0, 10 }, {}, "sync" },
    { "no result at all", nil, {}, "skip", "iteration 0 of 2, and 0.0 of 10 s of training" },
    { "a result without an iteration", { nil, 0 }, {}, "sync" },
    { "a result without a time", { 0, nil }, {}, "sync" },
    { "one that is no number", { "x", 0 }, {}, "sync" },
    { "just before the period", { 9, 99 }, { seconds = 299.9 }, "skip" },
    { "exactly at the period", { 9, 99 }, { seconds = 300 }, "sync" },
  } do
    it(("says %s for %s"):format(row[4], row[1]), function()
      local result = row[2] and { training_iteration = row[2][1], time_total_s = row[2][2] }
      local answer, reason = ask(result, row[3])
      assert.equal(row[4], answer)
      if row[5] then assert.equal(row[5], reason) end
    end)
  end

  it("skips again after a rewind below both", function()
    local M = library.shipped "sync_thresholds"
    local function at(n)
      local result = { training_iteration = n, time_total_s = n }
      return (M.ask("sync", library.event { result = result }))
    end
    assert.same({ "sync", "skip" }, { at(5), at(1) })
  end)

  it("saves at the end of the job, and before it is ended", function()
    assert.equal("sync", (ask(nil, { seconds = 0 }, "end")))
    assert.equal("sync", (ask(nil, { seconds = 0 }, "preempt")))
  end)

  it("saves each checkpoint if told to, but not for each result", function()
    local set = { on_checkpoint = "true" }
    assert.equal("sync", (ask(nil, {}, "complete", set)))
    assert.equal("skip", (ask(nil, {}, "result", set)))
  end)

  it("says only when to save", function()
    local _, data = library.shipped "sync_thresholds"
    assert.same({ sync = { "sync_thresholds" } }, data.has)
    assert.is_nil(data.complete)
  end)
end)
