--- What the specs of training functions share: a trial in a directory of its own, what is logged,
--- what is on disk.

local ckpt = require "ckpt"
local support = require "support"

local functions = {}

--- What is below a directory, sorted: "checkpoint_000000/", "checkpoint_000000/c=0". The content of
--- metadata is left out, since it has times in it.
---@param dir string
---@return string[]
function functions.tree(dir)
  local list = {}
  for i, entry in ipairs(assert(ckpt.fs.walk(dir))) do
    if entry.type == "directory" then
      list[i] = entry.path .. "/"
    elseif entry.path:find "%.tune_metadata$" then
      list[i] = entry.path
    else
      list[i] = entry.path .. "=" .. support.read(dir .. "/" .. entry.path)
    end
  end
  table.sort(list)
  return list
end

--- Calls `body(trial)` with a trial:
---   dir       its directory, removed afterwards
---   log       what was logged
---   clock     a virtual clock that starts at 1000, unless `real`
---   make(Class[, config][, options])  a runner in `dir`, stopped afterwards
---   wrap(fn[, config])  the same for a training function; config is { reporter = true } ...
---   said(text)  the level of the last line that was logged with this in it; nil if there is none
---@param body fun(trial: table)
---@param real? boolean
function functions.with_trial(body, real)
  local trial = { dir = support.directory(), clock = not real and ckpt.testing.clock(1000) or nil }
  local log, restore = ckpt.testing.capture_log()
  local runners = {}
  trial.log = log

  function trial.make(Class, config, options)
    options = options or {}
    options.logdir = options.logdir or trial.dir
    local runner = Class(config, options)
    runners[#runners + 1] = runner
    return runner
  end

  function trial.wrap(fn, config)
    return trial.make(ckpt.wrap_function(fn, { warn = false }), config)
  end

  function trial.tree() return functions.tree(trial.dir) end

  function trial.said(text)
    for i = #log, 1, -1 do
      if log[i].text:find(text, 1, true) then return log[i].level end
    end
  end

  local fine, why = xpcall(body, debug.traceback, trial)
  for _, runner in ipairs(runners) do runner:stop() end
  restore()
  if trial.clock then trial.clock:restore() end
  os.execute("chmod -R u+rwX '" .. trial.dir .. "'; rm -rf '" .. trial.dir .. "'")
  if not fine then error(why, 0) end
end

--- A test: its body gets a trial.
---@param body fun(trial: table)
---@param real? boolean
function functions.trial(body, real)
  return function() functions.with_trial(body, real) end
end

return functions
