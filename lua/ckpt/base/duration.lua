--- Times that somebody gives in seconds. NaN compares with nothing: a wait until then would never
--- end, or not begin.

jit.off(true, true)
local misuse = require "ckpt.base.misuse"

---@class ckpt.duration
local duration = {}

--- Checks how long to wait. A time below 0 is over already: the rest of a time may be.
---@param value number math.huge: without limit
---@param what string its name, for the message
---@return number value
function duration.limit(value, what)
  if type(value) ~= "number" then
    misuse(("%s is a %s, not a number of seconds"):format(what, type(value)))
  end
  if value ~= value then
    misuse(("%s is nan: give it in seconds, math.huge for one without end"):format(what))
  end
  return value
end

--- Checks an option: 0 or more.
---@param value number
---@param what string
---@return number value
function duration.option(value, what)
  if type(value) ~= "number" or value ~= value or value < 0 then
    misuse(("%s is a number of seconds, 0 or more (math.huge: without end), not %s"):format(what,
      tostring(value)))
  end
  return value
end

return duration
