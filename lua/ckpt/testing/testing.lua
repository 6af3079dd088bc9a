--- Tests of scripts and syncers in no time: a clock that moves only when told (or waited on), and
--- transfers that end as a plan says.
---
---     local clock = ckpt.testing.clock(1000)
---     local transfers = ckpt.testing.transfers(clock, { { "ok", 10 }, { "fail", 3, "no route" } })
---     local job = transfers:launch("first")
---     job:wait()              -- at once; clock.time is 1010 now
---     clock:restore()
---
--- A transfer of `ckpt.store` takes the time it takes, whatever clock is in place.

jit.off(true, true)
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local source = require "ckpt.base.clock"
local facts = require "ckpt.testing.testing_facts"
local policy = require "ckpt.testing.testing_policy"
local transfers = require "ckpt.testing.testing_transfers"

---@class ckpt.testing
local testing = {}

---@class ckpt.testing.Clock
---@field time number what `ckpt.clock` tells, seconds; may be set
---@field slept number[] each sleep of the code under test, seconds
local Clock = {}
Clock.__index = Clock

--- Moves time on.
---@param seconds number 0 or more
function Clock:advance(seconds)
  if type(seconds) ~= "number" or seconds < 0 then
    misuse("clock:advance: time goes forward: give a number of seconds, not "
      .. tostring(seconds))
  end
  self.time = self.time + seconds
end

--- Puts the clock back that was in place before. A second call does nothing.
function Clock:restore()
  if not self._mine then return end
  self._mine = nil
  source.use(self._before)
end

--- Puts a virtual clock in place of the machine's. It is the time of day and the monotonic time;
--- whoever sleeps moves it on.
---@param start? number seconds; 1000
---@return ckpt.testing.Clock
function testing.clock(start)
  local clock = setmetatable({ time = start or 1000, slept = {}, _mine = true }, Clock)
  local function now() return clock.time end
  clock._before = source.use {
    now = now,
    monotonic = now,
    sleep = function(seconds)
      clock.slept[#clock.slept + 1] = seconds
      clock:advance(seconds)
    end,
  }
  return clock
end

--- Makes transfers that do nothing but end as planned.
---@param clock ckpt.testing.Clock
---@param plan? ckpt.testing.Outcome[] what the next transfers do; none left: ok, at once
---@return ckpt.testing.Transfers
function testing.transfers(clock, plan)
  if getmetatable(clock) ~= Clock then
    misuse("testing.transfers: the first argument is the clock that ckpt.testing.clock() gave")
  end
  return transfers.new(clock, plan)
end

testing.event, testing.checkpoints = facts.event, facts.checkpoints
testing.policy = policy.new
testing.runner = require "ckpt.testing.testing_runner"
testing.simulate = require "ckpt.testing.testing_history"

--- Takes the library's log lines, until told to stop.
---@return { level: string, text: string }[] # grows with each message
---@return fun() # puts the sink back that was in place before
function testing.capture_log()
  local list = {}
  local before = log.use(function(level, text) list[#list + 1] = { level = level, text = text } end)
  return list, function()
    if list then log.use(before) end
    list = nil
  end
end

return testing
