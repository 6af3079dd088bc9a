--- Time. All of the library that looks at time asks here, so that a test can put a clock of its own
--- in its place (`ckpt.testing`).

jit.off(true, true)
local core = require "ckpt.core"
local duration = require "ckpt.base.duration"

---@class ckpt.ClockSource
---@field now fun(): number seconds since 1970: for what people read
---@field monotonic fun(): number seconds; never goes back, goes on while the machine sleeps
---@field sleep fun(seconds: number)

---@class ckpt.clock
local clock = {}

---@type ckpt.ClockSource
local system = core.clock
local source = system

--- Returns seconds since 1970, by the wall clock, which people may set.
---@return number
function clock.now() return source.now() end

--- Returns seconds since some moment: periods, timeouts and ages are measured with this one.
---@return number
function clock.monotonic() return source.monotonic() end

--- Waits. 0 or less does not.
---@param seconds number
function clock.sleep(seconds)
  if duration.limit(seconds, "clock.sleep: `seconds`") > 0 then source.sleep(seconds) end
end

--- Puts another clock in place, nil: the system's again. For tests.
---@param other? ckpt.ClockSource
---@return ckpt.ClockSource # the one that was there before
function clock.use(other)
  local before = source
  source = other or system
  return before
end

return clock
