--- Replays the recorded traces of Ray's node sync through a policy: it decides, the rest of a run
--- (one transfer at a time for each trial, a forced one waits) is the model's.
local library = require "policy.rules"
local model = require "sync_model"
local recording = require "recording"

local node_sync = {}

-- What a run calls the events that make it ask.
local EVENTS = { result = "result", checkpoint = "complete", complete = "end" }

local function number(value) return type(value) == "number" and value or nil end

local function text(value, default) return type(value) == "string" and value or default end

-- A policy for each trial: whether each checkpoint is forced is the trial's own.
local function policies_of(policy, config)
  local policies = {}
  for _, trial in ipairs(config.trials) do
    policies[trial.id] = library.shipped(policy, {
      period = tostring(config.sync_period),
      min_iter = text(config.env_min_iter, "2"),
      min_time = text(config.env_min_time, "10"),
      on_checkpoint = tostring(trial.sync_on_checkpoint),
    })
  end
  return policies
end

-- A threshold that no policy can be set to: none is set to for ever.
local function can_be_set(trace)
  return not trace.oracle.init_error and trace.config.env_min_time ~= "inf"
end

--- Calls `each(trace, i, started, peer)` for each event: the trials of which the policy had a
--- transfer started, and the step as it was recorded.
---@param policy string
---@param better table<integer, boolean> items of docs/contract.md that hold
---@param each fun(trace: table, i: integer, started: string[], peer: table)
---@return table[] # traces that were left out
function node_sync.replay(policy, better, each)
  local left_out = {}
  for _, trace in ipairs(model.traces(recording.read "syncer_traces")) do
    if can_be_set(trace) then
      local run, policies = model.run(trace, better), policies_of(policy, trace.config)
      local results, at = {}, nil
      function run.wants(self, id)
        local last = self.synced[id]
        return policies[id].ask("sync", {
          event = EVENTS[at], now = self.now, result = results[id],
          since = { seconds = last and self.now - last },
        }) == "sync"
      end
      for i, event in ipairs(trace.events) do
        at = event.ev
        if at == "result" then
          results[event.trial] =
            { training_iteration = number(event.iter), time_total_s = number(event.time) }
        end
        each(trace, i, run:event(event).started, model.recorded(trace.oracle.steps[i]))
      end
    else
      left_out[#left_out + 1] = trace
    end
  end
  return left_out
end

return node_sync
