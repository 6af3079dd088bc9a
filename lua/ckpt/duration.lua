--- Times that somebody gives in seconds. NaN compares with nothing: a wait until then would never
--- end, or not begin.

local misuse = require "ckpt.misuse"

---@class ckpt.duration
local duration = {}

--- How long to wait for something. Less than 0 is over already: what is left of a time may be.
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

--- An option: 0 or more.
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
