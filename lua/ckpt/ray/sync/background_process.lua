--- One piece of work at a time, beside the script, as Ray's `_BackgroundProcess`. There the work is
--- a thread; here it is a job (`ckpt.job`): a transfer of the engine, an external program, or a
--- coroutine made with `job.task`. A plain function is worked off inside start().

jit.off(true, true)
local class = require "ckpt.base.class"
local clock = require "ckpt.base.clock"
local job = require "ckpt.job.job"
local misuse = require "ckpt.base.misuse"

---@class ckpt.BackgroundProcess: ckpt.Class
---@overload fun(fn: (fun(...): ...), name?: string): ckpt.BackgroundProcess
local BackgroundProcess = class("BackgroundProcess")

--- `fn` does the work when start() calls it: it returns a job, or the result itself. A result of
--- `nil, text, "ENAME"`, or an error that is raised, is a failure, which the next wait() tells of.
---@param fn fun(...): ...
---@param name? string what messages call it; "the function"
function BackgroundProcess:init(fn, name)
  if type(fn) ~= "function" then
    misuse("BackgroundProcess: the work must be a function, not a " .. type(fn))
  end
  self._fn, self._name = fn, name or "the function"
  self._started = -math.huge
end

--- Tells whether the work goes on. Never blocks.
---@return boolean
function BackgroundProcess:is_running() return self._job ~= nil and self._job:running() end

--- Returns when the work was started, by clock.monotonic(); -math.huge before any start.
---@return number
function BackgroundProcess:start_time() return self._started end

--- Tells whether there is work that was not waited for, running or over.
---@return boolean
function BackgroundProcess:exists() return self._job ~= nil or self._result ~= nil end

local function pack(...) return { n = select("#", ...), ... } end

-- Turns the values of pcall into results: an error becomes a failure.
local function result_of(ok, ...)
  if ok then return pack(...) end
  return pack(nil, tostring((...)), "EINTERNAL")
end

--- Tells whether the work is over and has failed. The next wait() tells how. Never blocks.
---@return boolean
function BackgroundProcess:has_failed()
  if self._job and not self._job:running() then
    self._job, self._result = nil, pack(self._job:wait())
  end
  local result = not self._job and self._result
  return result and result[1] == nil and result[2] ~= nil or false
end

--- Starts the work with these arguments. While it runs, a second start changes nothing; the result
--- of work that is over and was not waited for is dropped.
---@return boolean # false: it runs already
function BackgroundProcess:start(...)
  if self:is_running() then return false end
  self._job, self._result = nil, nil
  local result = result_of(pcall(self._fn, ...))
  if job.is(result[1]) then
    self._job = result[1]
  else
    self._result = result
  end
  self._started = clock.monotonic()
  return true
end

--- Stops the work, if it runs, and forgets it: a later wait() returns nothing.
function BackgroundProcess:stop()
  if self:is_running() then self._job:cancel() end
  self._job, self._result = nil, nil
end

--- Waits for the work and returns its result, once: then there is nothing to wait for, whatever
--- the outcome. Nothing started: returns nothing.
---
--- `timeout` counts from the start of the work, not from this call. Work that is not over by then
--- is cancelled, and has stopped when this returns: `nil, text, "ETIMEOUT"`.
---@param timeout? number seconds; nil, 0: no limit
---@return any ...
function BackgroundProcess:wait(timeout)
  local work, result = self._job, self._result
  if work then
    local left
    if timeout and timeout ~= 0 then
      left = math.max(timeout - (clock.monotonic() - self._started), 0)
    end
    result = pack(work:wait(left))
    if result[1] == nil and result[3] == "ETIMEOUT" then
      if work:running() then
        work:cancel()
        result = pack(nil, ("%s did not finish running within the timeout of %s seconds")
          :format(self._name, timeout), "ETIMEOUT")
      else
        -- It has ended since the limit passed: the result is known.
        result = pack(work:wait())
      end
    end
  end
  -- Another task may have started new work meanwhile.
  if self._job == work then self._job, self._result = nil, nil end
  if result then return unpack(result, 1, result.n) end
end

return BackgroundProcess
