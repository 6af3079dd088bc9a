--- ckpt.StatusReporter: what a training function tells its progress by. `reporter { loss = 0.5 }`
--- hands a result to the runner and comes back when the runner wants the next one.

jit.off(true, true)
local TrainableUtil = require "ckpt.ray.train.trainable_util"
local class = require "ckpt.base.class"
local clock = require "ckpt.base.clock"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"

---@class ckpt.ReporterOptions
---@field trial_name? string
---@field trial_id? string
---@field logdir? string the trial's directory

--- The last three are for reading.
---@class ckpt.StatusReporter: ckpt.Class
---@field logdir? string
---@field trial_name? string
---@field trial_id? string
---@overload fun(values: table)
local StatusReporter = class "StatusReporter"

--- A report raises this when the trial was told to stop. A function that lets it through ends
--- without an error; one that catches it should tidy up and end.
StatusReporter.STOP = setmetatable({}, {
  __tostring = function() return "the trial was told to stop" end,
})

local OPTIONS = { logdir = true, trial_id = true, trial_name = true }

---@param deliver fun(values: table): boolean? takes a result, and returns when training may go on;
---  true: the trial was told to stop
---@param options? ckpt.ReporterOptions
function StatusReporter:init(deliver, options)
  options = options_of.check("StatusReporter", options, OPTIONS)
  self.logdir = options.logdir
  self.trial_name, self.trial_id = options.trial_name, options.trial_id
  self._deliver = deliver
  self._fresh = false
end

--- Reports a result. `time_this_iter_s` is added if it is not there: the seconds since the report
--- before, or since the start. `done = true` says that training is complete.
---@param values table names and values; copied
function StatusReporter:__call(values)
  if not self._reported then
    misuse("the reporter is called before its function was started: time since then cannot be told")
  end
  if type(values) ~= "table" then
    misuse(("the reporter takes a table of names and values, not a %s"):format(type(values)))
  end
  local result = {}
  for key, value in pairs(values) do result[key] = value end
  local now = clock.monotonic()
  if result.time_this_iter_s == nil then result.time_this_iter_s = now - self._reported end
  self._reported = now
  if self._deliver(result) then error(StatusReporter.STOP, 0) end
end

--- Makes the checkpoint directory of a step in the trial's directory, or finds it with what is in
--- it.
---@param step integer
---@return string? path
---@return string? text
---@return string? name
function StatusReporter:make_checkpoint_dir(step)
  local path, text, name = TrainableUtil.make_checkpoint_dir(self.logdir, step)
  if path then log.debug("Made the checkpoint directory " .. path) end
  return path, text, name
end

--- Sets the checkpoint that the next save takes: a path in a directory of `make_checkpoint_dir`, or
--- a table. A path that is in no such directory is logged and raises, and the one before stays.
---@param checkpoint string|table
---@param is_new? boolean false: the driver is not told of a new one
function StatusReporter:set_checkpoint(checkpoint, is_new)
  if type(checkpoint) == "string" then
    local directory, text = TrainableUtil.find_checkpoint_dir(checkpoint)
    if not directory then
      log.error("A checkpoint must be in a directory that make_checkpoint_dir gave: " .. text)
      misuse(text)
    end
  end
  self._checkpoint = checkpoint
  if is_new ~= false then self._fresh = true end
end

--- Tells whether one was set since it was last taken.
---@return boolean
function StatusReporter:has_new_checkpoint() return self._fresh end

--- Returns the checkpoint that was set last; it is not a new one any more.
---@return string|table|nil
function StatusReporter:get_checkpoint()
  self._fresh = false
  return self._checkpoint
end

--- Begins the time of the first report. Runners call it.
function StatusReporter:_start() self._reported = clock.monotonic() end

return StatusReporter
