-- `policy simulate` with ray_tune decides what Ray's node sync was recorded to decide
-- (spec/data/oracle), but that a save which is wanted while another is at work runs next (item 174
-- of docs/contract.md): the saves of a run queue. Each difference to the record is held to be that
-- one: without a queue it is none. A trial is told by its directory alone, as there, and compared
-- until its address is not known, or until its end; of 1,046 events 13 are left out: the address
-- is lost, the directory is no node's, the sync is off, or its options are none of the policy's.
-- A run tries a failed save again by itself; here, as there, it is given up.
local cjson = require "cjson"
local model = require "sync_model"
local place = require "place"
local recording = require "recording"
local support = require "support"

local WORDS = {
  start = "start", result = "result", checkpoint = "checkpoint", complete = "complete",
  error = "error",
}

local function text(value, default) return type(value) == "string" and value or default end
local function number(value) return type(value) == "number" and value or nil end

-- An address that nobody knows is no policy's matter.
local function is_lost(event)
  return event.dead or event.ip == "" or event.ip == recording.null
end

local function has(list, id)
  for _, other in ipairs(list) do
    if other == id then return true end
  end
  return false
end

-- What the model decides about a trial at each of its events, with a queue or without: their places
-- in the trace, their times, and whether it is to be saved.
local function decided(trace, trial, queues)
  local run, steps, wanted = model.run(trace, { [174] = queues or nil }), {}, nil
  function run.wants(self, id, forced)
    wanted = forced or self:is_due(id)
    return wanted
  end
  for i, event in ipairs(trace.events) do
    local t = run.now + event.dt - 1000
    local is_ours = event.trial == trial.id
    if is_ours and is_lost(event) then break end
    wanted = nil
    local started = has(run:event(event).started, trial.id)
    if is_ours and WORDS[event.ev] then
      -- Without a queue what is wanted and does not begin is refused.
      local is_saved = wanted or false
      if not queues then is_saved = started end
      steps[#steps + 1] = { i = i, t = t, event = event, wanted = is_saved }
      if event.ev == "complete" then break end
    end
  end
  return steps
end

local function line_of(step)
  local event = step.event
  return cjson.encode {
    t = step.t, event = WORDS[event.ev], trial = event.trial,
    training_iteration = event.ev == "result" and number(event.iter) or nil,
    time_total_s = event.ev == "result" and number(event.time) or nil,
    checkpoint = event.memory and { kind = "memory" } or nil,
    transfer = event.duration
      and { seconds = event.duration, outcome = event.outcome == "ok" and "ok" or "fail" } or nil,
  }
end

-- How many decisions are not as recorded; each is as recorded where there is no queue.
local function count_differences(trace, trial, steps)
  local plain, differ = decided(trace, trial, false), 0
  for at, step in ipairs(steps) do
    local recorded = has(model.recorded(trace.oracle.steps[step.i]).started, trial.id)
    if step.wanted ~= recorded then
      differ = differ + 1
      assert(plain[at].wanted == recorded,
        ("%s, trial %s, %s: it is not the queue"):format(trace.name, trial.id, step.t))
    end
  end
  return differ
end

local function can_be_set(trace)
  return trace.config.enabled and not trace.oracle.init_error
    and trace.config.env_min_time ~= "inf"
end

describe("policy simulate -p ray_tune", function()
  local dir
  place.with_directory(function(made)
    dir = made
    support.write(dir .. "/once.lua",
      "return { api = 1, on_error = function() return 'skip' end }")
  end)

  local function simulate(trace, trial, lines)
    support.write(dir .. "/e.jsonl", table.concat(lines, "\n") .. "\n")
    local config = trace.config
    local out = place.objects((place.ends(0, ("policy simulate e.jsonl --json -p ./once.lua "
      .. "-p ray_tune -o period=%.17g -o min_iter=%s -o min_time=%s -o on_checkpoint=%s"):format(
      config.sync_period, text(config.env_min_iter, "2"), text(config.env_min_time, "10"),
      tostring(trial.sync_on_checkpoint)))))
    assert.equal(#lines + 1, #out)
    return out
  end

  it("decides as the recorded node sync did, but for the queue", function()
    local trials, events, queued = 0, 0, 0
    for _, trace in ipairs(model.traces(recording.read "syncer_traces")) do
      for _, trial in ipairs(can_be_set(trace) and trace.config.trials or {}) do
        local steps = trial.cloud and {} or decided(trace, trial, true)
        local lines = {}
        for i, step in ipairs(steps) do lines[i] = line_of(step) end
        local out = #lines > 0 and simulate(trace, trial, lines) or {}
        for i, step in ipairs(steps) do
          assert.equal(step.wanted and "sync" or "skip", out[i].decision,
            ("%s, trial %s, %s: %s"):format(trace.name, trial.id, lines[i], out[i].reason))
        end
        trials, events = trials + (#lines > 0 and 1 or 0), events + #lines
        queued = queued + count_differences(trace, trial, steps)
      end
    end
    assert.same({ 89, 1033, 88 }, { trials, events, queued })
  end)
end)
