--- ckpt.session: how a training function, and what it calls, reaches its reporter without being
--- handed it.
---
---     local train = ckpt.wrap_function(function(config, checkpoint_dir)
---       ckpt.session.report { loss = 0.5 }
---     end)
---
--- While a function runs its own reporter is known. Elsewhere it is that of the runner that was set
--- up last and not cleaned up yet.

jit.off(true, true)
local finally = require "ckpt.base.finally"
local misuse = require "ckpt.base.misuse"

---@class ckpt.session
local session = {}

-- Reporter -> how many were made known before it. If nobody has its runner any more, it goes by
-- itself.
---@type table<ckpt.StatusReporter, integer>
local known = setmetatable({}, { __mode = "k" })
local count = 0
---@type ckpt.StatusReporter?
local running

--- Makes a reporter known. Runners do this in their set-up.
---@param reporter ckpt.StatusReporter
function session.init(reporter)
  count = count + 1
  known[reporter] = count
end

--- Forgets it. Runners do this in their clean-up.
---@param reporter ckpt.StatusReporter
function session.shutdown(reporter) known[reporter] = nil end

local function newest()
  local found
  for reporter, number in pairs(known) do
    if not found or number > known[found] then found = reporter end
  end
  return found
end

--- Calls a function while a reporter is the one of the running training function.
---@param reporter ckpt.StatusReporter
---@param fn fun(...): ...
---@return ... what it returns
function session.within(reporter, fn, ...)
  local before = running
  running = reporter
  return finally(function() running = before end, fn, ...)
end

--- Tells whether there is a reporter.
---@return boolean
function session.is_enabled() return (running or newest()) ~= nil end

local function current()
  return running or newest()
    or misuse("no session: this is for functions that a FunctionRunner runs (ckpt.wrap_function)")
end

--- Returns the reporter. Raises if there is none.
---@return ckpt.StatusReporter
function session.get() return current() end

--- Reports, as calling the reporter does.
---@param values table
function session.report(values) current()(values) end

--- Makes the checkpoint directory of a step and calls a function with it; when that returns, the
--- files that it saved there are the checkpoint. If it returns nil and a text, nothing is set.
---@param step integer
---@param save fun(directory: string)
---@return string? path of the directory
---@return string? text
---@return string? name
function session.checkpoint_dir(step, save)
  if type(step) ~= "number" then
    misuse(("session.checkpoint_dir: `step` is a %s, not a number"):format(type(step)))
  end
  local reporter = current()
  local directory, text, name = reporter:make_checkpoint_dir(step)
  if not directory then return nil, text, name end
  local saved
  saved, text, name = save(directory)
  if not saved and type(text) == "string" then return nil, text, name or "EIO" end
  reporter:set_checkpoint(directory)
  return directory
end

return session
