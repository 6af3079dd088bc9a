--- ckpt.StatusReporter: what a training function tells its progress by. `reporter { loss = 0.5 }`
--- hands a result to the runner and comes back when the runner wants the next one.

local TrainableUtil = require "ckpt.trainable_util"
local class = require "ckpt.class"
local clock = require "ckpt.clock"
local log = require "ckpt.log"

---@class ckpt.ReporterOptions
---@field trial_name? string
---@field trial_id? string
---@field logdir? string the trial's directory

--- The last three are for reading (item 295).
---@class ckpt.StatusReporter: ckpt.Class
---@field logdir? string
---@field trial_name? string
---@field trial_id? string
---@overload fun(values: table)
local StatusReporter = class "StatusReporter"

--- What a report raises when the trial was told to stop. A function that lets it through ends
--- without an error; one that catches it should tidy up and end (item 297).
StatusReporter.STOP = setmetatable({}, {
  __tostring = function() return "the trial was told to stop" end,
})

---@param deliver fun(values: table): boolean? takes a result, and returns when training may go on;
---  true: the trial was told to stop
---@param options? ckpt.ReporterOptions
function StatusReporter:init(deliver, options)
  options = options or {}
  self.logdir = options.logdir
  self.trial_name, self.trial_id = options.trial_name, options.trial_id
  self._deliver = deliver
  self._fresh = false
end

--- Reports a result. `time_this_iter_s` is added if it is not there: the seconds since the report
--- before, or since the start (item 246). `done = true` says that training is complete (item 296).
---@param values table names and values; copied
function StatusReporter:__call(values)
  if not self._reported then
    error("the reporter is called before its function was started: time since then cannot be told",
      2)
  end
  if type(values) ~= "table" then
    error(("the reporter takes a table of names and values, not a %s"):format(type(values)), 2)
  end
  local result = {}
  for key, value in pairs(values) do result[key] = value end
  local now = clock.monotonic()
  if result.time_this_iter_s == nil then result.time_this_iter_s = now - self._reported end
  self._reported = now
  if self._deliver(result) then error(StatusReporter.STOP, 0) end
end

--- Makes the checkpoint directory of a step in the trial's directory, or finds it with what is in
--- it (item 248).
---@param step integer
---@return string? path
---@return string? text
---@return string? name
function StatusReporter:make_checkpoint_dir(step)
  local path, text, name = TrainableUtil.make_checkpoint_dir(self.logdir, step)
  if path then log.debug("Made the checkpoint directory " .. path) end
  return path, text, name
end

--- Sets what the next save takes: a path in a directory of `make_checkpoint_dir`, or a table. A
--- path that is in no such directory is logged and raises, and the one before stays (item 249).
---@param checkpoint string|table
---@param is_new? boolean false: the driver is not told of a new one (item 250)
function StatusReporter:set_checkpoint(checkpoint, is_new)
  if type(checkpoint) == "string" then
    local directory, text = TrainableUtil.find_checkpoint_dir(checkpoint)
    if not directory then
      log.error("A checkpoint must be in a directory that make_checkpoint_dir gave: " .. text)
      error(text, 2)
    end
  end
  self._checkpoint = checkpoint
  if is_new ~= false then self._fresh = true end
end

--- Whether one was set since it was last taken.
---@return boolean
function StatusReporter:has_new_checkpoint() return self._fresh end

--- The checkpoint that was set last; it is not a new one any more (item 251).
---@return string|table|nil
function StatusReporter:get_checkpoint()
  self._fresh = false
  return self._checkpoint
end

--- Begins the time of the first report. Runners call it.
function StatusReporter:_start() self._reported = clock.monotonic() end

return StatusReporter
