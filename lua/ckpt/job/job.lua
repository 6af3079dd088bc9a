--- Jobs: work that goes on while the script does something else. The transfers of `ckpt.store` are
--- jobs, external programs are, and a function becomes one with `job.task`.
---
---     local upload = assert(ckpt.store.upload { dir = "out", uri = "s3://bucket/out" })
---     while upload:running() do train_some_more() end
---     local moved, text = upload:wait()
---
--- All objects with the functions running, wait and cancel are jobs to the library.

jit.off(true, true)
local class = require "ckpt.base.class"
local clock = require "ckpt.base.clock"
local core = require "ckpt.core"
local duration = require "ckpt.base.duration"
local loop = require "ckpt.job.job_loop"
local misuse = require "ckpt.base.misuse"

-- A task that goes on yielding after it was cancelled is given up after so many times.
local PATIENCE = 1000

---@class ckpt.Job: ckpt.Class
---@field result? table what wait() returns; nil while it runs
local Job = class("Job")

--- Tells whether it still has to go on. Moves all jobs on, and never blocks.
---@return boolean
function Job:running()
  if not self.result then loop.step() end
  return self.result == nil
end

local function until_time(seconds)
  if seconds == nil or seconds == math.huge then return nil end
  return clock.monotonic() + math.max(duration.limit(seconds, "wait: the limit"), 0)
end

local function wait_in_task(self, task, limit)
  while not self.result do
    if task.cancelled then self:cancel() end
    if self.result or (limit and clock.monotonic() >= limit) then return end
    loop.yield(self, limit)
  end
end

--- Waits for the end. Inside of a task the other ones go on meanwhile. May be called again.
---@param seconds? number the most to wait, by ckpt.clock: with a virtual clock, a transfer that
---  really moves data is waited for to its end
---@return any ... # what came out; of a transfer: `{ files=, bytes=, seconds= }`
---@return string? text
---@return string? name "ETIMEOUT": the limit has passed, and it goes on; "ECANCELED"; ...
function Job:wait(seconds)
  local limit = until_time(seconds)
  local task = loop.task()
  if self == task then misuse("a task cannot wait for itself") end
  if task then
    wait_in_task(self, task, limit)
  else
    loop.wait(self, limit)
  end
  if self.result then return unpack(self.result, 1, self.result.n) end
  return nil, ("%s is not over after %g s; it goes on"):format(self.what, seconds), "ETIMEOUT"
end

--- Tells how far it is.
---@return number # done
---@return number? # of how many, if that is known
function Job:progress() return self.result and 1 or 0, 1 end

--- Stops it; it has stopped when this returns. One that is over stays as it is.
function Job:cancel() misuse("the class " .. self.name .. " has no cancel") end

-- ---- transfers of the engine ----

---@class ckpt.Transfer: ckpt.Job
local Transfer = Job:extend("Transfer")

function Transfer:init(number, what)
  self.number, self.what = number, what
  loop.add_transfer(number, self)
end

function Transfer:_over(what)
  if what.status == "OK" then
    self.result = { n = 1, { files = what.files, bytes = what.bytes, seconds = what.seconds } }
  else
    self.result = { n = 3, nil, what.reason or "it failed", what.status }
  end
end

---@return number # bytes that have been moved
---@return number? # of how many, once that is known
function Transfer:progress()
  if not self.result then
    local done, total = core.job.progress(self.number)
    if not done then return 0, nil end
    return done, total > 0 and total or nil
  end
  local bytes = self.result[1] and self.result[1].bytes or 0
  return bytes, bytes
end

function Transfer:cancel()
  if self.result then return end
  core.job.cancel(self.number)
  loop.wait(self)
end

-- ---- tasks ----

---@class ckpt.Task: ckpt.Job
---@field thread thread
---@field cancelled boolean
---@field awaits? ckpt.Job
---@field until_time? number
local Task = Job:extend("Task")

local CANCELED = { n = 3, nil, "cancelled", "ECANCELED" }

function Task:init(fn)
  self.what, self.cancelled = "the task", false
  self.thread = coroutine.create(fn)
end

function Task:_over(results)
  if self.cancelled then
    self.result = CANCELED
  elseif results[1] then
    self.result = { n = results.n - 1, unpack(results, 2, results.n) }
  else
    -- An error may be any value, also one whose __tostring raises.
    local fine, said = pcall(tostring, results[2])
    local text = debug.traceback(self.thread, fine and said or "an error that has no text")
    self.result = { n = 3, nil, text, "EINTERNAL" }
  end
end

--- The task comes back from what it waits for, which is cancelled too, with "ECANCELED"; where it
--- yields an error is raised. So it can put things in order.
function Task:cancel()
  if self.result then return end
  if loop.task() == self then misuse("a task cannot cancel itself: return from its function") end
  self.cancelled = true
  for _ = 1, PATIENCE do
    if self.result then return end
    loop.push(self)
  end
  loop.forget(self)
  self.result = CANCELED
end

-- ---- the module ----

-- luacheck: no max line length (LuaLS wants the type of a function in one line)

---@class ckpt.job
---@field command fun(argv: string[], options?: ckpt.CommandOptions): ckpt.CommandJob?, string?, string?
local job = { Job = Job }

--- Makes a job of a function, which runs at once until it waits for another job or yields, and goes
--- on while any job is asked or waited for. Its results are the job's: `nil, text, "ENAME"` is a
--- failure, and so is an error ("EINTERNAL", with a traceback).
---@param fn fun(...): ...
---@param ... any what it is called with
---@return ckpt.Task
function job.task(fn, ...)
  if type(fn) ~= "function" then misuse("job.task: a task is a function, not a " .. type(fn)) end
  local task = Task(fn)
  loop.start(task, ...)
  return task
end

--- Lets the other tasks run, inside of one. Outside, it does what can be done without waiting.
---@param seconds? number comes back after so long, by ckpt.clock; math.huge: when it is cancelled
function job.yield(seconds)
  local limit = seconds == math.huge and seconds or until_time(seconds)
  local task = loop.task()
  if not task then
    loop.step()
    if seconds then clock.sleep(seconds) end
    return
  end
  -- A task that does not listen gives way all the same: it can be given up.
  loop.yield(nil, not task.cancelled and limit or nil)
  if task.cancelled then error("cancelled", 2) end
end

--- Tells whether a task calls.
---@return boolean
function job.inside() return loop.task() ~= nil end

--- Tells whether a task calls that was cancelled, and is to end.
---@return boolean
function job.cancelled()
  local task = loop.task()
  return task ~= nil and task.cancelled
end

--- Tells whether a value is a job: it has running, wait and cancel.
---@param value any
---@return boolean
function job.is(value)
  return type(value) == "table" and type(value.running) == "function"
    and type(value.wait) == "function" and type(value.cancel) == "function"
end

--- Starts a transfer of the engine.
---@param options table as core.job.start has it
---@param what string for messages
---@return ckpt.Transfer?
---@return string? text
---@return string? name
function job.transfer(options, what)
  local number, text, name = core.job.start(options)
  if not number then return nil, text, name end
  return Transfer(number, what)
end

return setmetatable(job, {
  __index = function(self, key)
    if key ~= "command" then return nil end
    local command = require("ckpt.job.job_command")
    rawset(self, key, command)
    return command
  end,
})
