--- The training program of a runner, as function_worker is a function. It runs until it reports,
--- and waits for the answer, which it gets when the next result is wanted.

jit.off(true, true)
local StatusReporter = require "ckpt.ray.train.status_reporter"
local TrainableUtil = require "ckpt.ray.train.trainable_util"
local class = require "ckpt.base.class"
local core = require "ckpt.core"
local fs = require "ckpt.prims.fs"
local job = require "ckpt.job.job"
local log = require "ckpt.base.log"

---@class ckpt.ProgramWorker: ckpt.Class
local ProgramWorker = class "ProgramWorker"

-- A program names its checkpoint by its path, below the trial's directory if it is relative. The
-- mark of a checkpoint directory is ours to put there, but in no place outside of the trial's.
local function set_checkpoint(self, path)
  local reporter = self._reporter
  path = fs.normalize(path:sub(1, 1) == "/" and path or fs.join(reporter.logdir, path))
  local at = fs.stat(path)
  local directory = at and (at.type == "directory" and path or fs.parent(path))
  -- A link in the trial's directory may lead out of it.
  local inside, root = directory and fs.real(directory), fs.real(reporter.logdir)
  local is_ours = inside and root and inside:sub(1, #root + 1) == root .. "/"
  if at and not TrainableUtil.find_checkpoint_dir(path) then
    if not is_ours then
      return false, ("%s is no checkpoint: give the path of a directory below $CKPT_DIR, or of a "
        .. "file in one"):format(path)
    end
    local marked, text = TrainableUtil.mark_checkpoint_dir(directory)
    if not marked then return false, text end
  end
  return pcall(reporter.set_checkpoint, reporter, path)
end

-- Sets the checkpoint that a report names. False: it is refused, and its sender told why.
local function accept(self, report)
  local checkpoint = report.values.checkpoint
  if type(checkpoint) ~= "string" then return true end
  local fine, why = set_checkpoint(self, checkpoint)
  if not fine then report:answer(tostring(why)) end
  return fine
end

local function only_key(values, key) return next(values) == key and next(values, key) == nil end

-- Takes a report. One that names a checkpoint and nothing else is no result, so nobody waits with
-- it.
local function take(self, report)
  if self._stopping or not only_key(report.values, "checkpoint") then
    table.insert(self._arrived, report)
  elseif accept(self, report) then
    report:answer()
  end
end

---@param reporter ckpt.StatusReporter
---@param argv string[]
---@param options { cwd?: string, env: table<string, string|false>, output?: fun(text: string,
---  which: integer) }
---@param limits { poll: number, stop: number, error: number, grace: number } seconds: between two
---  looks; until a program that was told to stop is asked to end (TERM), and then killed; for the
---  rest of what a failed one says
function ProgramWorker:init(reporter, argv, options, limits)
  self._reporter, self._limits = reporter, limits
  self._arrived = {} -- reports that are no result yet: there is one result at a time
  self._results = {}
  local text, name
  self._job, text, name = job.command(argv, {
    cwd = options.cwd, env = options.env, output = options.output, linger = limits.error,
    grace = limits.grace,
    report = function(report) take(self, report) end,
  })
  if not self._job then self._error = { text = text, name = name } end
end

--- Takes the result of a report: the reporter's `deliver`.
---@param values table
---@return boolean
function ProgramWorker:deliver(values)
  table.insert(self._results, values)
  return false
end

---@return boolean
function ProgramWorker:alive()
  return self._job ~= nil and (self._waits or not self._ended)
end

--- Lets the report return at which the program waits.
function ProgramWorker:release()
  local report = self._report
  self._report, self._waits = nil, false
  if report then report:answer() end
end

-- The program's last word, if it ended well.
local function look_ended(self)
  if self._ended or self._job:running() then return end
  self._ended = true
  local result, text, name = self._job:wait()
  if result or self._stopping then
    self._over = true
  else
    log.error("The training program failed: " .. text)
    self._error = { text = text, name = name }
  end
end

-- Makes the next report, or the program's good end, the result.
local function take_next(self)
  if self._waits then return end
  local report
  repeat report = table.remove(self._arrived, 1) until not report or accept(self, report)
  if report then
    self._report, self._waits = report, true
    self._reporter(report.values)
  elseif self._over and not self._stopping then
    self._over, self._waits = false, true
    self._reporter { __duplicate__ = true }
  end
end

-- Waits for the program, for one poll. Programs that are driven by tasks train side by side.
local function pause(self)
  if not job.inside() then
    self._job:turn(self._limits.poll)
  elseif not self._job:turn(0) then
    job.yield()
  end
end

--- Returns the next result.
---@param wait boolean false: not to wait for it
---@return table? values
function ProgramWorker:result(wait)
  if self._job then
    if wait and #self._arrived == 0 and not self._waits then pause(self) end
    look_ended(self)
    take_next(self)
  end
  return table.remove(self._results, 1)
end

--- Returns the failure of the program; it is handed out once.
---@return ckpt.WorkerError?
function ProgramWorker:take_error()
  local failure = self._error
  self._error = nil
  return failure
end

---@return boolean
function ProgramWorker:has_error() return self._error ~= nil end

-- Refuses its reports, until it ends.
local function refuse(self)
  local count = #self._arrived
  table.insert(self._arrived, self._report)
  for _, report in ipairs(self._arrived) do
    report:answer(tostring(StatusReporter.STOP), { stop = true })
  end
  self._arrived, self._report = {}, nil
  return count
end

--- Tells the program to stop: its reports are refused. If it does not end, it is made to.
---@return integer # how many results nobody took
function ProgramWorker:stop()
  if not self._job then return 0 end
  -- A program lives in real time, whatever clock is in place.
  local limit = core.clock.monotonic() + self._limits.stop
  local left = #self._results
  look_ended(self)
  self._stopping = true
  left = left + refuse(self)
  while not self._ended and core.clock.monotonic() < limit do
    self._job:turn(self._limits.poll)
    left = left + refuse(self)
    look_ended(self)
  end
  self._ended = true
  self._job:cancel()
  return left
end

return ProgramWorker
