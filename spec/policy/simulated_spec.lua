-- `policy simulate` with ray_tune decides what Ray's node sync was recorded to decide
-- (spec/data/oracle), but that a save which is wanted while another is at work runs next (item 174
-- of docs/contract.md): the saves of a run queue. Each trial is compared until its first failed
-- transfer, which a run tries again by itself, or until its end; it is told by its directory alone,
-- as there.
local cjson = require "cjson"
local model = require "sync_model"
local place = require "place"
local recording = require "recording"
local support = require "support"

local WORDS = {
  start = "start", result = "result", checkpoint = "checkpoint", complete = "complete",
}

local function text(value, default) return type(value) == "string" and value or default end
local function number(value) return type(value) == "number" and value or nil end

-- An address that nobody knows is no policy's matter.
local function is_alone(trace, trial)
  for _, event in ipairs(trace.events) do
    if event.trial == trial.id and (event.dead or event.ip == "" or event.ip == recording.null) then
      return false
    end
  end
  return trace.config.enabled and not trial.cloud
end

local function has(list, id)
  for _, other in ipairs(list) do
    if other == id then return true end
  end
  return false
end

-- The events of a trial as lines, what the model decides at each, and how often that is not as
-- recorded.
local function told(trace, trial)
  local run = model.run(trace, model.QUEUES)
  local lines, decisions, decided, differ = {}, {}, nil, 0
  function run.wants(self, id, forced)
    decided = forced or self:is_due(id)
    return decided
  end
  for i, event in ipairs(trace.events) do
    local t = run.now + event.dt - 1000
    decided = nil
    local is_ours = event.trial == trial.id and WORDS[event.ev]
    local is_failing = event.outcome and event.outcome ~= "ok"
    if event.trial == trial.id and (event.ev == "error" or is_failing) then break end
    run:event(event)
    if is_ours then
      lines[#lines + 1] = cjson.encode {
        t = t, event = WORDS[event.ev], trial = event.trial,
        training_iteration = event.ev == "result" and number(event.iter) or nil,
        time_total_s = event.ev == "result" and number(event.time) or nil,
        checkpoint = event.memory and { kind = "memory" } or nil,
        transfer = event.duration and { seconds = event.duration, outcome = "ok" } or nil,
      }
      decisions[#lines] = decided and "sync" or "skip"
      local started = has(model.recorded(trace.oracle.steps[i]).started, trial.id)
      if (decided or false) ~= started then
        assert(decided or differ > 0, "the first one that differs is one that waits")
        differ = differ + 1
      end
      if event.ev == "complete" then break end
    end
  end
  return lines, decisions, differ
end

local function can_be_set(trace)
  return not trace.oracle.init_error and trace.config.env_min_time ~= "inf"
end

describe("policy simulate -p ray_tune", function()
  local dir
  place.with_directory(function(made) dir = made end)

  -- Simulates one trial; returns how many decisions were as the model's, and how many of them are
  -- not as recorded.
  local function compare(trace, trial)
    local lines, decisions, differ = told(trace, trial)
    if #lines == 0 then return 0, 0 end
    support.write(dir .. "/e.jsonl", table.concat(lines, "\n") .. "\n")
    local config = trace.config
    local out = place.objects((place.ends(0, ("policy simulate e.jsonl --json -p ray_tune "
      .. "-o period=%.17g -o min_iter=%s -o min_time=%s -o on_checkpoint=%s"):format(
      config.sync_period, text(config.env_min_iter, "2"), text(config.env_min_time, "10"),
      tostring(trial.sync_on_checkpoint)))))
    assert.equal(#lines + 1, #out)
    for i, expected in ipairs(decisions) do
      assert.equal(expected, out[i].decision,
        ("%s, trial %s, %s: %s"):format(trace.name, trial.id, lines[i], out[i].reason))
    end
    return #lines, differ
  end

  it("decides as the recorded node sync did, but for the queue", function()
    local trials, events, queued = 0, 0, 0
    for _, trace in ipairs(model.traces(recording.read "syncer_traces")) do
      for _, trial in ipairs(can_be_set(trace) and trace.config.trials or {}) do
        if is_alone(trace, trial) then
          local count, differ = compare(trace, trial)
          trials, events, queued = trials + 1, events + count, queued + differ
        end
      end
    end
    assert.same({ 89, 658, 43 }, { trials, events, queued })
  end)
end)
