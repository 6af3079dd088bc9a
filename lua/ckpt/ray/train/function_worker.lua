--- The training function of a FunctionRunner, as a coroutine: it runs while it is asked for a
--- result, and stands still at each report. A runner of something else has an object with the same
--- functions (program_worker).

jit.off(true, true)
local StatusReporter = require "ckpt.ray.train.status_reporter"
local class = require "ckpt.base.class"
local clock = require "ckpt.base.clock"
local job = require "ckpt.job.job"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local session = require "ckpt.ray.train.session"

-- The coroutine yields this at a report, so that a yield of its own is told from it.
local REPORT = {}
-- A function that was told to stop may catch that and report again so often.
local STOPS = 100

---@class ckpt.WorkerError
---@field text string
---@field name string "EINTERNAL" if it was raised, else what the function returned

---@class ckpt.FunctionWorker: ckpt.Class
local FunctionWorker = class "FunctionWorker"

--- Makes a worker. No part of the function runs before a result is asked for.
---@param reporter ckpt.StatusReporter
---@param fn fun(): any, string?, string?
---@param limits { poll: number, stop: number } seconds: between two looks at a function that yields
---  by itself; until one that was told to stop has to end
function FunctionWorker:init(reporter, fn, limits)
  self._reporter, self._thread = reporter, coroutine.create(fn)
  self._limits = limits
  self._results = {}
  self._state = "ready" -- it may go on; "reported": it waits; "ended"
end

--- Takes the result of a report: the reporter's `deliver`. Called by the function itself.
---@param values table
---@return boolean # whether it was told to stop
function FunctionWorker:deliver(values)
  if coroutine.running() ~= self._thread then
    misuse("a report from outside of the training function, or from a coroutine of its own: report "
      .. "where the function itself runs")
  end
  coroutine.yield(REPORT, values)
  return self._stopping == true
end

---@return boolean
function FunctionWorker:alive() return self._state ~= "ended" end

--- Lets the report return at which the function waits.
function FunctionWorker:release()
  if self._state == "reported" then self._state = "ready" end
end

local function fail(self, text, name)
  log.error("The training function failed: " .. text)
  self._error = { text = text, name = name }
end

local function finish(self, fine, value, text, name)
  self._state = "ended"
  if not fine and value ~= StatusReporter.STOP then
    fail(self, debug.traceback(self._thread, tostring(value)), "EINTERNAL")
  elseif fine and value == nil and type(text) == "string" then
    fail(self, text, type(name) == "string" and name or "EINTERNAL")
  end
end

-- Runs the function up to its next report, yield or end.
local function go_on(self)
  if coroutine.status(self._thread) ~= "suspended" then
    misuse("a training function cannot step or stop its own runner: report, or return")
  end
  local function look(fine, value, ...)
    if coroutine.status(self._thread) == "dead" then return finish(self, fine, value, ...) end
    if value ~= REPORT then return end
    self._state = "reported"
    self._results[#self._results + 1] = (...)
  end
  look(session.within(self._reporter, coroutine.resume, self._thread))
end

--- Returns the next result. A function that yields by itself (`coroutine.yield()`) has none yet and
--- is asked again later.
---@param wait boolean false: not to wait for that
---@return table? values
function FunctionWorker:result(wait)
  if wait and self._state == "ready" then
    go_on(self)
    if self._state == "ready" then job.yield(self._limits.poll) end
  end
  return table.remove(self._results, 1)
end

--- Returns the failure of the function; it is handed out once.
---@return ckpt.WorkerError?
function FunctionWorker:take_error()
  local failure = self._error
  self._error = nil
  return failure
end

---@return boolean
function FunctionWorker:has_error() return self._error ~= nil end

--- Tells the function to stop: the report at which it waits raises. Returns when it has ended, or
--- was left where it is.
---@return integer # how many results nobody took
function FunctionWorker:stop()
  local limit = clock.monotonic() + self._limits.stop
  self._stopping = true
  for _ = 1, STOPS do
    if self._state == "ended" then return #self._results end
    if clock.monotonic() > limit then break end
    self:release()
    go_on(self)
    if self._state == "ready" then clock.sleep(self._limits.poll) end
  end
  log.warn("The training function was told to stop and goes on. It is left where it is.")
  self._state = "ended"
  return #self._results
end

return FunctionWorker
