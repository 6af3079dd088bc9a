--- The class behind `ckpt.wrap_command`: a FunctionRunner whose function is a program.

jit.off(true, true)
local FunctionRunner = require "ckpt.ray.train.function_runner"
local ProgramWorker = require "ckpt.ray.train.program_worker"
local fs = require "ckpt.prims.fs"
local json = require "ckpt.base.json"

---@class ckpt.ProgramRunner: ckpt.FunctionRunner
---@field argv string[] the program
---@field cwd? string
---@field env? table<string, string|false>
---@field output? false|fun(text: string, which: integer)
local ProgramRunner = FunctionRunner:extend "func"

--- Seconds between the signals TERM and KILL, when a program does not end by itself.
ProgramRunner.STOP_GRACE = 5

function ProgramRunner:_limits()
  local limits = FunctionRunner._limits(self)
  limits.grace = self.STOP_GRACE
  return limits
end

function ProgramRunner:setup(config)
  local text, problem = json.encode(config)
  if not text then error("a program gets its config as JSON: " .. problem, 0) end
  self._config = text
  FunctionRunner.setup(self, config)
end

-- Returns the checkpoint that the program begins from: a path, as for a function; a table in a file
-- of its own.
local function write_checkpoint(self, checkpoint)
  if type(checkpoint) ~= "table" then return checkpoint or false end
  local path = fs.join(self.logdir, ".resume.json")
  local content, problem = json.encode(checkpoint)
  if not content then return nil, "a program gets its checkpoint as JSON: " .. problem, "EINVAL" end
  local written, text, name = fs.write(path, content)
  if not written then return nil, text, name end
  return path
end

-- Passes the program's output on to where it would be seen if it ran alone.
local function pass_on(text, which)
  local file = which == 1 and io.stdout or io.stderr
  file:write(text)
  file:flush()
end

function ProgramRunner:_new_worker()
  local reporter = self._status_reporter
  local resume, text, name = write_checkpoint(self, reporter:get_checkpoint())
  if resume == nil then return nil, text, name end
  local env = {
    CKPT_DIR = self.logdir,
    CKPT_RESUME = resume,
    CKPT_CONFIG = self._config,
    CKPT_ANSWER_WAIT = "none", -- for `ckpt-lua notify`: however long a sync in between takes
  }
  for key, value in pairs(self.env or {}) do env[key] = value end
  local output = self.output == nil and pass_on or self.output or nil
  return ProgramWorker(reporter, self.argv, { cwd = self.cwd, env = env, output = output },
    self:_limits())
end

return ProgramRunner
