--- Numbers that the configuration and the syncers share, and those that people set.

jit.off(true, true)
local misuse = require "ckpt.base.misuse"

local defaults = {
  sync_period = 300, -- seconds between two syncs of *_if_needed
  sync_timeout = 1800, -- seconds after which a transfer is given up
  max_retries = 3, -- tries of wait_or_retry
  backoff_s = 5, -- seconds between two of them
}

--- Reads a number from the environment, spelled as people write it: no hexadecimal.
---@param variable string
---@param pattern string its digits
---@param what string for the message
---@param default number where the variable is not set
---@return number
function defaults.setting(variable, pattern, what, default)
  local text = os.getenv(variable)
  if not text then return default end
  local digits = text:match("^%s*(" .. pattern .. ")%s*$")
  local number = digits and not digits:find("[xX]") and tonumber(digits)
  if number then return number end
  misuse(("%s is %q: set it to %s, or unset it"):format(variable, text, what))
  return default
end

return defaults
