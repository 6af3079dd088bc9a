--- Scripted jobs: they last as long as their plan says, on a virtual clock, and move nothing.

jit.off(true, true)
local job = require "ckpt.job.job"
local misuse = require "ckpt.base.misuse"

---@class ckpt.testing.Outcome a list: outcome, seconds, text, name; or the same by name
---@field outcome? "ok"|"fail"
---@field seconds? number how long it lasts; math.huge: for ever
---@field text? string of a failure: why; of a success: its result
---@field name? string of a failure, "EIO"

---@class ckpt.testing.Launched
---@field label any what launch() was given
---@field time number when
---@field job ckpt.testing.Job

---@class ckpt.testing.Job
---@field outcome "ok"|"fail"
---@field ends number when it is over
---@field cancelled boolean
local Job = {}
Job.__index = Job

--- Tells whether it still has to go on.
---@return boolean
function Job:running() return not self.cancelled and self._clock.time < self.ends end

-- Lets others go on meanwhile, in a task; the one that waits for them moves the clock. A task that
-- is cancelled cancels the job that it waits for.
function Job:_give_way(seconds)
  local limit = self._clock.time + (seconds or math.huge)
  while self:running() and self._clock.time < limit do
    local left = math.min(self.ends, limit) - self._clock.time
    if not pcall(job.yield, left) then self:cancel() end
  end
end

--- Waits: the clock moves on to the job's end, or by `seconds` if that is sooner.
---@param seconds? number the most to wait
---@return any # true, or the plan's result
---@return string? text
---@return string? name "ETIMEOUT": it goes on
function Job:wait(seconds)
  if self:running() and job.inside() then self:_give_way(seconds) end
  if self:running() and not job.inside() then
    local limit = self._clock.time + (seconds or math.huge)
    if limit < self.ends then
      self._clock.time = limit
      return nil, ("not over after %g s"):format(seconds), "ETIMEOUT"
    end
    if self.ends == math.huge then
      misuse("a scripted transfer that never ends is waited for without a limit")
    end
    self._clock.time = self.ends
  end
  if self:running() then return nil, ("not over after %g s"):format(seconds), "ETIMEOUT" end
  if self.cancelled then return nil, "cancelled", "ECANCELED" end
  if self.outcome == "fail" then
    return nil, self._text or "scripted to fail", self._name or "EIO"
  end
  return self._text or true
end

--- Stops it, if it still runs.
function Job:cancel()
  if self:running() then self.cancelled = true end
end

--- 0 of 1 until it is over.
---@return integer done
---@return integer total
function Job:progress() return self:running() and 0 or 1, 1 end

---@class ckpt.testing.Transfers
---@field launched ckpt.testing.Launched[] every transfer so far
local Transfers = {}
Transfers.__index = Transfers

local function outcome_of(entry, number)
  local outcome, seconds = entry.outcome or entry[1], entry.seconds or entry[2] or 0
  if outcome ~= "ok" and outcome ~= "fail" or type(seconds) ~= "number" then
    misuse(('outcome %d of the plan is not { "ok" or "fail", seconds }'):format(number))
  end
  return {
    outcome = outcome, seconds = seconds,
    text = entry.text or entry[3], name = entry.name or entry[4],
  }
end

local function plan_of(plan)
  local ahead = {}
  for i, entry in ipairs(plan or {}) do ahead[i] = outcome_of(entry, i) end
  return ahead
end

--- Sets the outcomes of the next transfers; the rest of the plan before is dropped.
---@param plan? ckpt.testing.Outcome[]
function Transfers:plan(plan) self._ahead = plan_of(plan) end

--- Begins the next transfer.
---@param label? any kept in `launched`
---@return ckpt.testing.Job
function Transfers:launch(label)
  local next_one = table.remove(self._ahead, 1) or { outcome = "ok", seconds = 0 }
  local now = self._clock.time
  local made = setmetatable({
    outcome = next_one.outcome, ends = now + next_one.seconds, cancelled = false,
    _clock = self._clock, _text = next_one.text, _name = next_one.name,
  }, Job)
  self.launched[#self.launched + 1] = { label = label, time = now, job = made }
  return made
end

local transfers = {}

---@param clock ckpt.testing.Clock
---@param plan? ckpt.testing.Outcome[]
---@return ckpt.testing.Transfers
function transfers.new(clock, plan)
  return setmetatable({ launched = {}, _clock = clock, _ahead = plan_of(plan) }, Transfers)
end

return transfers
