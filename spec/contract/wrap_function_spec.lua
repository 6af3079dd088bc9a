-- ckpt.wrap_function: which functions can be trained, and how they are called.

local ckpt = require "ckpt"
local functions = require "contract.function_support"

local trial = functions.trial
local QUIET = { warn = false }

-- luacheck: push ignore 212
local ACCEPTED = {
  ["(config)"] = function(config) end,
  ["(config, checkpoint_dir)"] = function(config, checkpoint_dir) end,
  ["(config, reporter)"] = function(config, reporter) end,
  ["(x)"] = function(x) end,
  ["(config, ...)"] = function(config, ...) end,
  ["(...)"] = function(...) end,
  ["(config, checkpoint_dir, ...)"] = function(config, checkpoint_dir, ...) end,
}
local REFUSED = {
  ["()"] = function() end,
  ["(config, x)"] = function(config, x) end,
  ["(config, reporter, checkpoint_dir)"] = function(config, reporter, checkpoint_dir) end,
  ["(checkpoint_dir, config)"] = function(checkpoint_dir, config) end,
}
-- luacheck: pop

describe("ckpt.wrap_function", function()
  it("[280] takes functions of a config, and of a checkpoint directory or a reporter", function()
    for text, fn in pairs(ACCEPTED) do
      local fine, why = pcall(ckpt.wrap_function, fn, QUIET)
      assert(fine, text .. ": " .. tostring(why))
    end
  end)

  it("[280] refuses any other, and lists what it found", function()
    for text, fn in pairs(REFUSED) do
      local fine, why = pcall(ckpt.wrap_function, fn, QUIET)
      assert(not fine, text)
      assert(why:find("found: " .. text, 1, true), why)
      assert(why:find("must be (config)", 1, true), why)
    end
    for _, none in ipairs { 7, "text", {} } do
      assert.error_matches(function() ckpt.wrap_function(none) end, "no training function")
    end
  end)

  it("refuses options that it does not know", function()
    for _, wrong in ipairs { false, true, 7, { wrn = false } } do
      assert.error_matches(function() ckpt.wrap_function(ACCEPTED["(config)"], wrong) end,
        "wrap_function: .*option")
    end
  end)

  it("[280] takes a table that can be called", trial(function(t)
    local Callable = ckpt.class "Callable"
    function Callable:__call(config, reporter) reporter { x = config.x, own = self.own } end
    local object = Callable()
    object.own = 3
    local runner = t.wrap(object, { x = 2 })
    local result = runner:step()
    assert.same({ 2, 3 }, { result.x, result.own })
  end))

  it("[281] hands over what the shape says; a checkpoint comes first", trial(function(t)
    local seen
    local function call(fn)
      local runner = t.wrap(fn, { name = "config" })
      runner._status_reporter:set_checkpoint { w = 1 }
      seen = nil
      assert(runner:step())
      return seen
    end
    local function got(...) seen = { n = select("#", ...), ... } end
    local config = { name = "config" }
    assert.same({ n = 2, config, { w = 1 } },
      call(function(c, checkpoint_dir) got(c, checkpoint_dir) end))
    assert.same({ n = 2, config, { w = 1 } }, call(function(c, ...) got(c, ...) end))
    assert.same({ n = 1, config }, call(function(...) got(...) end))
    assert.same({ n = 1, config }, call(function(c) got(c) end))
    local _, reporter = unpack(call(function(c, reporter) got(c, reporter) end))
    assert.is_true(ckpt.class.is(reporter, ckpt.StatusReporter))
  end))

  it("[282] warns once that checkpointing is off, unless it is told not to", trial(function(t)
    -- Whether it has warned is known to the process: a fresh copy of the module has not.
    package.loaded["ckpt.ray.train.wrap_function"] = nil
    local wrap = require "ckpt.ray.train.wrap_function"
    local function count()
      local found = 0
      for _, line in ipairs(t.log) do
        found = found + (line.text:find "checkpointing is off" and 1 or 0)
      end
      return found
    end
    wrap.wrap_function(ACCEPTED["(config)"], QUIET)
    wrap.wrap_function(ACCEPTED["(config, checkpoint_dir)"])
    wrap.wrap_function(ACCEPTED["(config, reporter)"])
    assert.equal(0, count())
    wrap.wrap_function(ACCEPTED["(config)"])
    assert.equal(1, count())
    wrap.wrap_function(ACCEPTED["(x)"])
    assert.equal(1, count())
  end))

  it("[283] puts mix-ins before the runner, the first one first", trial(function(t)
    local first = { name_of = function() return "first" end }
    function first:step()
      local result = ckpt.FunctionRunner.step(self)
      result.mixed = true
      return result
    end
    local second = { name_of = function() return "second" end, other = function() return 2 end }
    local Class = ckpt.wrap_function(ACCEPTED["(config, reporter)"], { mixins = { first, second } })
    local runner = t.make(Class)
    assert.same({ "first", 2, true }, { runner:name_of(), runner:other(), runner:step().mixed })
    assert.is_true(ckpt.class.is(runner, ckpt.FunctionRunner))
    local object = setmetatable({ mixins = { second } },
      { __call = function(_, config, reporter) reporter { config } end })
    assert.equal("second", t.wrap(object):name_of())
  end))

  it("[283] names the class after the function, or `func`", function()
    local fn = ACCEPTED["(config, reporter)"]
    assert.equal("func", ckpt.wrap_function(fn).name)
    assert.equal("mine", ckpt.wrap_function(fn, { name = "mine" }).name)
    local call = function(_, config) end -- luacheck: ignore 212
    local object = setmetatable({ name = "own" }, { __call = call })
    assert.equal("own", ckpt.wrap_function(object, QUIET).name)
  end)

  it("[284] reports the end once more, so that the driver sees it", trial(function(t)
    local runner = t.wrap(function(_, reporter)
      reporter { i = 1 }
      return "output"
    end)
    assert.is_nil(runner:train().__duplicate__)
    local last = runner:train()
    assert.is_true(last.__duplicate__)
    assert.equal(1, last.i)
    assert.equal(1, runner.iteration)
  end))

  it("[285] refuses the driver's own times for checkpoints", trial(function(t)
    local Class = ckpt.wrap_function(ACCEPTED["(config, reporter)"])
    for _, options in ipairs { { checkpoint_freq = 1 }, { checkpoint_at_end = true } } do
      assert.error_matches(function() t.make(Class, nil, options) end,
        "not for training functions", 1, true)
    end
    t.make(Class, nil, { checkpoint_freq = 0, checkpoint_at_end = false })
  end))
end)
