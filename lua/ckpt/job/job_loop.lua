--- Runs jobs while the script does something else, or waits: the engine's transfers, which go on by
--- themselves and only have to be asked, and tasks, which are coroutines that each run until they
--- yield. Nothing happens on another thread: all of it inside of running() and wait() of any job.

jit.off(true, true)
local clock = require "ckpt.base.clock"
local core = require "ckpt.core"
local log = require "ckpt.base.log"

local loop = {}

-- The longest pause between two rounds while a task only yields, in seconds: the task may look at
-- something that nothing tells us of.
local PAUSE_MAX = 0.01

-- Number -> job. A transfer that nobody has any more goes on all the same, and its end is dropped.
local transfers = setmetatable({}, { __mode = "v" })
local in_flight = 0

-- Tasks that are not over, in the order of their start; and the one that runs.
---@type ckpt.Task[]
local tasks = {}
local current

-- ---- transfers ----

--- Takes note of a transfer that the engine has started.
---@param number integer
---@param job ckpt.Transfer
function loop.add_transfer(number, job)
  transfers[number] = job
  in_flight = in_flight + 1
end

local function collect(milliseconds)
  local over, text = core.job.dispatch(milliseconds)
  log.flush()
  if not over then error("the engine cannot be asked for its jobs: " .. text, 0) end
  for _, what in ipairs(over) do
    local job = transfers[what.job]
    in_flight = in_flight - 1
    if job then job:_over(what) end
  end
end

-- ---- tasks ----

--- Returns the task that calls, if one does: not from another coroutine that it has made.
---@return ckpt.Task?
function loop.task()
  return current and coroutine.running() == current.thread and current or nil
end

local function is_ready(task)
  if coroutine.status(task.thread) ~= "suspended" then return false end
  local awaited = task.awaits
  if awaited and awaited.result then return true end
  if task.until_time then return clock.monotonic() >= task.until_time end
  return awaited == nil
end

local function take_out(task)
  for i, other in ipairs(tasks) do
    if other == task then
      table.remove(tasks, i)
      return
    end
  end
end

local function pack(...) return { n = select("#", ...), ... } end

local function resume(task, ...)
  local before = current
  current = task
  local results = pack(coroutine.resume(task.thread, ...))
  current = before
  if coroutine.status(task.thread) ~= "dead" then return end
  take_out(task)
  task:_over(results)
end

--- Runs a new task until it yields.
---@param task ckpt.Task
function loop.start(task, ...)
  tasks[#tasks + 1] = task
  resume(task, ...)
end

--- Runs a task on, whatever it waits for.
---@param task ckpt.Task
function loop.push(task)
  if coroutine.status(task.thread) == "suspended" then resume(task) end
end

--- Forgets a task that does not end.
---@param task ckpt.Task
function loop.forget(task) take_out(task) end

--- Lets others run until `awaited` is over, or the time has come. Only inside of a task.
---@param awaited? ckpt.Job
---@param until_time? number
function loop.yield(awaited, until_time)
  local task = current
  task.awaits, task.until_time = awaited, until_time
  coroutine.yield()
  task.awaits, task.until_time = nil, nil
end

-- ---- rounds ----

--- Does what can be done without waiting.
---@return boolean # whether a task ran
function loop.step()
  if in_flight > 0 then collect(0) end
  local ran = false
  for _, task in ipairs({ unpack(tasks) }) do
    if not task.result and is_ready(task) then
      ran = true
      resume(task)
    end
  end
  return ran
end

-- Returns the first time that somebody waits for, and whether a task waits for nothing in
-- particular.
local function outlook(until_time)
  local polls = false
  for _, task in ipairs(tasks) do
    local at = task.until_time
    if at and (not until_time or at < until_time) then until_time = at end
    polls = polls or (coroutine.status(task.thread) == "suspended" and not at and not task.awaits)
  end
  return until_time, polls
end

-- Waits until something may have changed, `most` seconds at most.
local function pause(most)
  if most == math.huge then most = nil end
  if in_flight > 0 then
    collect(most and math.min(math.ceil(most * 1000), 2 ^ 30) or -1)
  elseif most then
    clock.sleep(most)
  else
    error("these jobs wait for each other: none of them can go on", 0)
  end
end

--- Blocks until the job is over, or the time has come. Not inside of a task.
---@param job ckpt.Job
---@param until_time? number
function loop.wait(job, until_time)
  local idle = 0
  while not job.result do
    local ran = loop.step()
    if job.result or (until_time and clock.monotonic() >= until_time) then return end
    local first, polls = outlook(until_time)
    local most = first and math.max(first - clock.monotonic(), 0)
    idle = (polls and ran) and idle + 1 or 0
    if polls then most = math.min(most or PAUSE_MAX, PAUSE_MAX, idle * PAUSE_MAX / 100) end
    -- A task that was made ready by another one's step has not run yet.
    local ready = false
    for _, task in ipairs(tasks) do ready = ready or (not polls and is_ready(task)) end
    if not ready and (not most or most > 0) then pause(most) end
  end
end

return loop
