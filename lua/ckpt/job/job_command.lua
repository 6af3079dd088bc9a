--- `ckpt.job.command`: an external program as a job.

jit.off(true, true)
local class = require "ckpt.base.class"
local clock = require "ckpt.base.clock"
local core = require "ckpt.core"
local duration = require "ckpt.base.duration"
local fs = require "ckpt.prims.fs"
local json = require "ckpt.base.json"
local loop = require "ckpt.job.job_loop"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"
local plain_json = require "ckpt.base.plain_json"

local GRACE = 5 -- seconds between TERM and KILL
local KEEP = 1024 * 1024
local ONCE = 2 * KEEP -- more than can come in between two looks, so that `output` misses nothing
local TAIL = 2000 -- bytes of what a failed program said last
local SLICE = 0.05 -- seconds that other jobs stand still while a program is waited for

local KINDS = {
  cwd = "string", env = "table", stdin = "string", keep = "number", linger = "number",
  grace = "number", output = "function", report = "function",
}

---@class ckpt.CommandOptions
---@field cwd? string where it runs; nil: where the script does
---@field env? table<string, string|false> changes to the environment; false takes a variable away
---@field stdin? string what it can read; nil: nothing
---@field keep? integer bytes, the last ones, that are kept of each of its two outputs; 1 MiB
---@field linger? number seconds that are waited after its end for what others still print who got
---  its outputs from it, 0
---@field grace? number seconds that it has to end itself when it is cancelled, 5
---@field output? fun(text: string, which: integer) called, while the job is waited for or looked
---  at, with what it has printed meanwhile; 1: standard output, 2: standard error
---@field report? fun(report: ckpt.Report) called, while the job is waited for or looked at, for
---  each JSON object that the program sends to $CKPT_SOCKET, one on each line

---@class ckpt.CommandResult
---@field code integer|false its exit code
---@field signal? string what killed it: "KILL"
---@field out string
---@field err string

---@class ckpt.Report
---@field values table what was reported
---@field answer fun(self, refusal?: string, more?: table): boolean lets the program go on; with a
---  text it is told that the report was refused, and why. False if it does not wait any more

---@class ckpt.CommandJob: ckpt.Class
local CommandJob = class "CommandJob"

local function check_text(value, name)
  if type(value) ~= "string" or value:find("%z") then
    misuse(("job.command: %s is no text that a program can be given"):format(name))
  end
end

local function check(argv, options)
  if type(argv) ~= "table" or #argv == 0 then
    misuse("job.command: the command is no list of texts, e.g. { \"rsync\", \"-a\", from, to }")
  end
  for i, word in ipairs(argv) do check_text(word, "word " .. i .. " of the command") end
  for name, kind in pairs(KINDS) do
    if options[name] ~= nil and type(options[name]) ~= kind then
      misuse(("job.command: `%s` is a %s, not a %s"):format(name, type(options[name]), kind))
    end
  end
  if options.grace then duration.option(options.grace, "job.command: `grace`") end
  if options.linger then duration.option(options.linger, "job.command: `linger`") end
  if options.cwd then check_text(options.cwd, "`cwd`") end
  for key, value in pairs(options.env or {}) do
    check_text(key, "a name in `env`")
    if key == "" or key:find "=" then misuse("job.command: `env` names " .. key) end
    if value ~= false then check_text(value, "`env`." .. key) end
  end
  for name in pairs(options) do
    if not KINDS[name] then
      misuse("job.command: unknown option " .. tostring(name) .. options_of.hint(name, KINDS))
    end
  end
end

local function changes_of(env)
  local list = {}
  for name, value in pairs(env or {}) do
    list[#list + 1] = value and name .. "=" .. value or name
  end
  return list
end

-- Makes $CKPT_SOCKET of a program that may report: in a directory that only we can enter.
local function add_socket(job, start)
  local directory, text, name = fs.temporary_directory(nil, "ckpt-report-")
  if not directory then return nil, text, name end
  job._directory = directory
  start.socket = fs.join(directory, "socket")
  table.insert(start.env, "CKPT_SOCKET=" .. start.socket)
  return true
end

local function close(job)
  job._program:close()
  if job._directory then fs.remove_tree(job._directory) end
  job._directory = nil
end

---@param argv string[]
---@param options ckpt.CommandOptions
function CommandJob:init(argv, options)
  self._name, self._report, self._output = argv[1], options.report, options.output
  self._seen = { 0, 0 } -- bytes of each output that were handed to `output`
  self._keep = options.keep or KEEP
  self._grace, self._linger = options.grace or GRACE, options.linger or 0
  self._waiting = 0 -- reports that were handed out and not answered
end

local function start(job, argv, options)
  local plan = {
    argv = argv, env = changes_of(options.env), cwd = options.cwd, input = options.stdin,
    keep = options.output and math.max(job._keep, ONCE) or job._keep,
  }
  if options.report then
    local made, text, name = add_socket(job, plan)
    if not made then return nil, text, name end
  end
  local text, name
  job._program, text, name = core.command.start(plan)
  if job._program then return job end
  if job._directory then fs.remove_tree(job._directory) end
  return nil, text, name
end

local Report = {}
Report.__index = Report

function Report:answer(refusal, more)
  if self._answered then return false end
  self._answered = true
  local line = {}
  for key, value in pairs(more or {}) do line[key] = value end
  -- A reason that names a file may have bytes that JSON cannot hold.
  line.error = refusal and refusal:gsub("[^\n\t]+", core.log.plain)
  line.ok = not refusal or nil
  -- Numbers that the script adds keep all their digits: ours writes them.
  local job, text, problem = self._job, json.encode(line)
  text = text or json.encode { error = "its answer cannot be put into JSON: " .. problem }
  local there = not job._closed and job._program:answer(self._from, text) ~= nil
  job._waiting = job._waiting - 1
  return there
end

local function take_reports(job)
  for from, line in function() return job._program:report() end do
    job._waiting = job._waiting + 1
    local report = setmetatable({ _job = job, _from = from }, Report)
    local values, problem = plain_json.decode(line)
    if type(values) ~= "table" or not plain_json.is_object(line) then
      report:answer("this is no JSON object" .. (problem and ": " .. problem or ""))
    elseif values["$ckpt"] ~= nil then
      report:answer "this program is run by a script, which answers no such questions"
    else
      for key, value in pairs(values) do
        if value == plain_json.null then values[key] = nil end
      end
      report.values = values
      job._report(report)
    end
  end
end

local function hand_over_output(job)
  local out, err, printed, complained = job._program:output(job._seen[1], job._seen[2])
  job._seen = { printed, complained }
  if out ~= "" then job._output(out, 1) end
  if err ~= "" then job._output(err, 2) end
end

local function last_of(text, bytes) return #text > bytes and text:sub(#text - bytes + 1) or text end

local function tail(text)
  text = text:gsub("%s+$", "")
  if #text > TAIL then text = "..." .. last_of(text, TAIL) end
  return text == "" and "" or ": " .. text
end

-- Returns how it ended: its result, or also why that is a failure.
local function outcome(job, code, signal)
  local out, err = job._program:output()
  local result = {
    code = code, signal = signal, out = last_of(out, job._keep), err = last_of(err, job._keep),
  }
  if job._cancelled then return { nil, job._name .. " was stopped", "ECANCELED", result } end
  if code == 0 then return { result } end
  local how = code and ("%s ended with exit code %d"):format(job._name, code)
    or signal and ("signal %s killed %s"):format(signal, job._name)
    or ("%s has ended, and was reaped by somebody else"):format(job._name)
  return { nil, how .. tail(err), "EIO", result }
end

local function settle(job)
  if job._closed then return end
  local code, signal, is_silent = job._program:ended()
  if code == nil then return end
  local now = core.clock.monotonic()
  job._ended_at = job._ended_at or now
  if not is_silent and not job._cancelled and now < job._ended_at + job._linger then return end
  job._outcome = job._outcome or outcome(job, code, signal)
  -- A process that still waits for an answer may belong to the program's group, which goes with it.
  if job._waiting > 0 and not job._cancelled then return end
  job._closed = true
  close(job)
end

--- Takes in output and reports of the program, and waits for those, or for its end.
---@param seconds number the longest to wait
---@return boolean # whether there was something
function CommandJob:turn(seconds)
  if self._closed then return false end
  log.flush()
  local did, text = self._program:turn(seconds)
  if did == nil then error(text, 0) end
  if self._output then hand_over_output(self) end
  if self._report then take_reports(self) end
  settle(self)
  return did
end

--- Tells whether it still runs. Takes in its output and reports, and does not wait.
---@return boolean
function CommandJob:running()
  self:turn(0)
  loop.step()
  return self._outcome == nil
end

--- Waits for its end. Inside of a task the other ones go on meanwhile.
---@param seconds? number the longest to wait, by ckpt.clock; with a virtual clock it is waited for
---  to its end
---@return ckpt.CommandResult? # if its exit code was 0
---@return string? text how it ended, and what it said last
---@return string? name "EIO": another exit code, or killed; "ECANCELED"; "ETIMEOUT": it goes on
---@return ckpt.CommandResult? # of one that failed
function CommandJob:wait(seconds)
  local most = seconds == nil and math.huge or duration.limit(seconds, "wait: the limit")
  local limit, task = clock.monotonic() + most, loop.task()
  while self:running() do
    local rest = limit - clock.monotonic()
    if rest <= 0 then
      return nil, ("%s has not ended after %g s"):format(self._name, seconds), "ETIMEOUT"
    end
    if not task then
      self:turn(math.min(rest, SLICE))
    elseif task.cancelled then
      self:cancel()
    else
      loop.yield()
    end
  end
  return unpack(self._outcome, 1, 4)
end

--- Ends it and what it has started, its whole process group: asks it to (TERM), and kills it some
--- seconds later. Returns when it is gone.
function CommandJob:cancel()
  if self._closed then return end
  if not self._outcome then
    self._cancelled = true
    self._program:stop(self._grace)
    if self._output then hand_over_output(self) end
    settle(self)
  end
  if self._closed then return end
  self._closed = true
  self._outcome = self._outcome or outcome(self, false, nil)
  close(self)
end

--- It does not know how far it is.
---@return integer done 0
---@return nil total
function CommandJob:progress() return 0, nil end -- luacheck: ignore 212

--- Starts a program as a job: in a process group of its own, with no open file of ours. Its output
--- is taken in when the job is waited for or looked at; a program that prints more than a pipe
--- holds (64 KiB) stands still until then. Processes that it leaves running in its group when it
--- ends are killed, and so are all of them when nobody holds the job any more and it is collected.
---@param argv string[] the program, looked for along PATH, and its arguments
---@param options? ckpt.CommandOptions
---@return ckpt.CommandJob? # its wait() returns a ckpt.CommandResult
---@return string? text
---@return string? name "ENOENT": no such program, or directory
local function command(argv, options)
  options = options or {}
  check(argv, options)
  return start(CommandJob(argv, options), argv, options)
end

return command
