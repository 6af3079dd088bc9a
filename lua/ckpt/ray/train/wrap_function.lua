--- `ckpt.wrap_function` and `ckpt.wrap_command`: a Trainable of a training function, or program.

jit.off(true, true)
local DurableTrainable = require "ckpt.ray.train.durable_trainable"
local FunctionRunner = require "ckpt.ray.train.function_runner"
local ProgramRunner = require "ckpt.ray.train.program_runner"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"

---@class ckpt.WrapOptions
---@field name? string the name of the class, "func"
---@field mixins? table[] tables of methods that come before the runner's, the first one first
---@field warn? boolean false: no warning about a function that takes no checkpoint
---@field durable? boolean its checkpoints are in a store before `save` returns, as those of a
---  DurableTrainable: the runners are made by `Class(uri, config, options)`

local wrap = {}

-- Returns the parameters' names, "..." for the rest.
local function parameters(fn, skipped)
  local about, names = debug.getinfo(fn, "u"), {}
  for i = 1 + skipped, about.nparams do names[#names + 1] = debug.getlocal(fn, i) or "?" end
  if about.isvararg then names[#names + 1] = "..." end
  return names
end

-- Tells how to call a function that takes these: "checkpoint", "reporter" or "config". Any function
-- that can take a checkpoint gets it.
local function shape_of(names)
  local first, second = names[1], names[2]
  if first == nil or #names > 3 or #names == 3 and names[3] ~= "..." then return nil end
  if first == "..." or second == nil then return "config" end
  if second == "checkpoint_dir" or second == "..." then return "checkpoint" end
  return second == "reporter" and "reporter" or nil
end

local function shape_or_raise(train_func)
  local fn, skipped = train_func, 0
  if type(train_func) == "table" then
    local meta = getmetatable(train_func)
    fn, skipped = meta and meta.__call, 1 -- the object itself
  end
  if type(fn) ~= "function" then
    misuse(("wrap_function: a %s is no training function"):format(type(train_func)))
  end
  local names = parameters(fn, skipped)
  local shape = shape_of(names)
  if shape then return shape end
  misuse(("wrap_function: the function's parameters must be (config), (config, checkpoint_dir) or "
    .. "(config, reporter); found: (%s)"):format(table.concat(names, ", ")))
end

-- A durable class has all that a DurableTrainable has, over this runner.
local function runner_class(Runner, options, fn)
  if options.durable == nil or options.durable == false then return Runner end
  if options.durable ~= true then
    misuse(("%s: `durable` is true or false, and the store's URI the first argument of the class")
      :format(fn))
  end
  return DurableTrainable.over(Runner, "func")
end

-- Methods of the first mix-in win, then those of the second, then the runner's. Each is a class of
-- its own, so a method reaches the next one by `parent`.
local function mixed(base, mixins)
  for i = #(mixins or {}), 1, -1 do
    local layer = base:extend "mixin"
    if mixins[i] == DurableTrainable then
      misuse("a durable training function or program is asked for by the option `durable`, not by "
        .. "a mix-in")
    end
    for key, value in pairs(mixins[i]) do
      if type(value) == "function" and key ~= "extend" then layer[key] = value end
    end
    base = layer
  end
  return base
end

local warned = false

local function warn_once()
  if warned then return end
  warned = true
  log.warn("Function checkpointing is off: the training function takes no checkpoint, so what it "
    .. "trained is lost when it is started again. To turn it on, let it take (config, "
    .. "checkpoint_dir) and save with ckpt.session.")
end

--- Makes a class of runners of a function. What it may take is told by the names
--- of its parameters: `(config)`, `(config, checkpoint_dir)`, `(config, reporter)`; Lua has no
--- default values, so a second parameter of another name is refused. A table that can be called is
--- taken as well; its fields `name` and `mixins` count.
---
--- A function that returns nil, a text and a name has failed, as has one that raises.
---@param train_func function|table
---@param options? ckpt.WrapOptions
---@return ckpt.FunctionRunner # a class
function wrap.wrap_function(train_func, options)
  local shape = shape_or_raise(train_func)
  local own = type(train_func) == "table" and train_func or {}
  options = options_of.check("wrap_function", options,
    { name = true, mixins = true, warn = true, durable = true })
  if shape == "config" and options.warn ~= false then warn_once() end
  local name = options.name or type(own.name) == "string" and own.name or "func"
  local Runner = runner_class(FunctionRunner, options, "wrap_function")
  local Wrapped = mixed(Runner, options.mixins or own.mixins):extend(name)

  function Wrapped:_trainable_func(config, reporter, checkpoint_dir) -- luacheck: ignore 212
    local output, text, cause
    if shape == "checkpoint" then
      output, text, cause = train_func(config, checkpoint_dir)
    elseif shape == "reporter" then
      output, text, cause = train_func(config, reporter)
    else
      output, text, cause = train_func(config)
    end
    if output == nil and type(text) == "string" then return nil, text, cause end
    -- One more report lets the driver see the end, without a result that it would log twice.
    reporter { __duplicate__ = true }
    return output
  end

  return Wrapped
end

---@class ckpt.WrapCommandOptions
---@field name? string the name of the class, "func"
---@field mixins? table[]
---@field durable? boolean as for wrap_function
---@field cwd? string where the program runs; nil: where the script does
---@field env? table<string, string|false> changes to the environment; false takes a variable away
---@field output? false|fun(text: string, which: integer) gets what it prints: 1 standard output, 2
---  standard error; false: nobody does; nil: our own outputs

--- Makes a class of runners of a program: a training job of any language. It reports as a job of
--- `ckpt-lua run` does: JSON objects, one on each line, to the socket `$CKPT_SOCKET`, or `ckpt-lua
--- notify loss=0.5`; it gets the answer when the runner wants the next result. `$CKPT_DIR` is the
--- trial's directory, `$CKPT_RESUME` the checkpoint to begin from, if there is one, and
--- `$CKPT_CONFIG` the config as JSON. A report that names a `checkpoint` sets it.
---@param argv string[] the program and its arguments
---@param options? ckpt.WrapCommandOptions
---@return ckpt.FunctionRunner # a class
function wrap.wrap_command(argv, options)
  options = options_of.check("wrap_command", options,
    { name = true, mixins = true, durable = true, cwd = true, env = true, output = true })
  if type(argv) ~= "table" or type(argv[1]) ~= "string" then
    misuse("wrap_command: the command is no list of texts, e.g. { \"python3\", \"train.py\" }")
  end
  local Runner = runner_class(ProgramRunner, options, "wrap_command")
  local Wrapped = mixed(Runner, options.mixins):extend(options.name or "func")
  Wrapped.argv, Wrapped.cwd, Wrapped.env = argv, options.cwd, options.env
  Wrapped.output = options.output
  return Wrapped
end

return wrap
