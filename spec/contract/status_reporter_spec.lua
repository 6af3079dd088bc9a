-- ckpt.StatusReporter, and ckpt.session, by which a training function reaches it.

local ckpt = require "ckpt"
local functions = require "contract.function_support"
local support = require "support"

local trial = functions.trial

-- A reporter that was started, and what it has delivered.
local function started(t)
  local delivered = {}
  local reporter = ckpt.StatusReporter(function(values) table.insert(delivered, values) end,
    { trial_name = "name", trial_id = "id", logdir = t.dir .. "/" })
  reporter:_start()
  return reporter, delivered
end

describe("ckpt.StatusReporter", function()
  it("[245] refuses a report before the start", trial(function()
    local delivered = 0
    local reporter = ckpt.StatusReporter(function() delivered = delivered + 1 end)
    assert.error_matches(function() reporter { x = 1 } end, "before its function was started")
    assert.equal(0, delivered)
  end))

  it("[246] fills in the time since the report before, or since the start", trial(function(t)
    local reporter, delivered = started(t)
    t.clock:advance(3)
    reporter { x = 1 }
    t.clock:advance(5)
    reporter { x = 2 }
    assert.same({ { x = 1, time_this_iter_s = 3 }, { x = 2, time_this_iter_s = 5 } }, delivered)
  end))

  it("[246] takes the time that is given, and counts from that report on all the same",
    trial(function(t)
      local reporter, delivered = started(t)
      t.clock:advance(3)
      reporter { time_this_iter_s = 0.5 }
      t.clock:advance(4)
      reporter {}
      assert.same({ { time_this_iter_s = 0.5 }, { time_this_iter_s = 4 } }, delivered)
    end))

  it("[247] hands over a copy, and returns when the runner wants the next one", trial(function(t)
    local values, log = { x = 1 }, {}
    local runner = t.wrap(function(_, reporter)
      reporter(values)
      table.insert(log, "released")
      values.x = 2
      reporter(values)
    end)
    local first = assert(runner:step())
    assert.same({}, log)
    assert.is_nil(values.time_this_iter_s)
    local second = assert(runner:step())
    assert.same({ "released" }, log)
    assert.same({ 1, 2 }, { first.x, second.x })
  end))

  it("[247] takes a table of names and values", trial(function(t)
    assert.error_matches(function() started(t)(7) end, "not a number")
  end))

  it("[248] makes the directory of a step, and uses it again with what is in it", trial(function(t)
    local reporter = started(t)
    local path = assert(reporter:make_checkpoint_dir(3))
    assert.equal(t.dir .. "/checkpoint_000003", path)
    support.write(path .. "/model", "m")
    assert.equal(path, (reporter:make_checkpoint_dir(3)))
    assert.same({ ".is_checkpoint=", "model=m" }, functions.tree(path))
  end))

  it("[249] refuses a path that is in no checkpoint directory; the one before stays",
    trial(function(t)
      local reporter = started(t)
      reporter:set_checkpoint { w = 1 }
      reporter:get_checkpoint()
      for _, path in ipairs { t.dir, t.dir .. "/gone" } do
        assert.error_matches(function() reporter:set_checkpoint(path) end, path, 1, true)
        assert.equal("error", t.said("make_checkpoint_dir"))
        assert.is_false(reporter:has_new_checkpoint())
        assert.same({ w = 1 }, reporter:get_checkpoint())
      end
      local path = assert(reporter:make_checkpoint_dir(1))
      support.write(path .. "/model", "m")
      reporter:set_checkpoint(path .. "/model")
      assert.equal(path .. "/model", reporter:get_checkpoint())
    end))

  it("[250] counts a checkpoint as new unless it is told otherwise", trial(function(t)
    local reporter = started(t)
    assert.is_false(reporter:has_new_checkpoint())
    reporter:set_checkpoint({ w = 1 }, false)
    assert.is_false(reporter:has_new_checkpoint())
    reporter:set_checkpoint { w = 2 }
    assert.is_true(reporter:has_new_checkpoint())
    reporter:set_checkpoint({ w = 3 }, false)
    assert.is_true(reporter:has_new_checkpoint())
    assert.same({ w = 3 }, reporter:get_checkpoint())
  end))

  it("[251] hands out the last checkpoint, as often as it is asked; it is not new then",
    trial(function(t)
      local reporter = started(t)
      reporter:set_checkpoint { w = 1 }
      assert.same({ w = 1 }, reporter:get_checkpoint())
      assert.is_false(reporter:has_new_checkpoint())
      assert.same({ w = 1 }, reporter:get_checkpoint())
    end))

  it("[252] adds should_checkpoint to the result of a step in which one was set", trial(function(t)
    local runner = t.wrap(function(_, reporter)
      reporter { i = 1 }
      reporter:set_checkpoint { w = 1 }
      reporter { i = 2 }
      reporter { i = 3 }
    end)
    assert.is_nil(runner:step().should_checkpoint)
    assert.is_true(runner:step().should_checkpoint)
    assert(runner:save())
    assert.is_nil(runner:step().should_checkpoint)
  end))

  it("[295] knows its trial", trial(function(t)
    local reporter = started(t)
    assert.same({ "name", "id", t.dir .. "/" },
      { reporter.trial_name, reporter.trial_id, reporter.logdir })
    local seen
    local Class = ckpt.wrap_function(function(_, ...) seen = ckpt.session.get(...) end)
    local runner = t.make(Class, nil, { trial_name = "n", trial_id = "i" })
    runner:step()
    assert.same({ "n", "i", runner.logdir }, { seen.trial_name, seen.trial_id, seen.logdir })
  end))

  it("[296] lets a report say that training is complete", trial(function(t)
    local runner = t.wrap(function(_, reporter)
      reporter { i = 1 }
      reporter { i = 2, done = true }
    end)
    assert.is_false(runner:train().done)
    assert.is_true(runner:train().done)
  end))

  it("[297 G] raises at a report when the trial was told to stop, and the function ends without "
    .. "an error", trial(function(t)
      local raised, tidied
      local runner = t.wrap(function(_, reporter)
        local fine, why = pcall(reporter, { i = 1 })
        raised, tidied = not fine and why, true
        error(why, 0)
      end)
      assert(runner:step())
      assert.is_true(runner:stop())
      assert.is_true(tidied)
      assert.equal(ckpt.StatusReporter.STOP, raised)
      assert.equal("the trial was told to stop", tostring(raised))
      assert.is_nil(t.said "failed")
    end))

  it("[297 G] raises at each further report too, and gives up on who does not care",
    trial(function(t)
      local reports = 0
      local runner = t.wrap(function(_, reporter)
        while true do
          pcall(reporter, { i = 1 })
          reports = reports + 1
        end
      end)
      assert(runner:step())
      assert.is_true(runner:stop())
      assert.is_true(reports > 1 and reports < 1000)
      assert.equal("warning", t.said "goes on")
    end))
end)

describe("ckpt.session", function()
  it("[298] knows the reporter from the set-up to the clean-up", trial(function(t)
    assert.is_false(ckpt.session.is_enabled())
    assert.error_matches(function() ckpt.session.get() end, "no session")
    assert.error_matches(function() ckpt.session.report {} end, "no session")
    local runner = t.wrap(function(_) ckpt.session.report { i = 7 } end)
    assert.is_true(ckpt.session.is_enabled())
    assert.equal(t.dir .. "/", ckpt.session.get().logdir)
    assert.equal(7, runner:step().i)
    runner:stop()
    assert.is_false(ckpt.session.is_enabled())
  end))

  it("[298] knows each function's own reporter while that runs", trial(function(t)
    local function train(config)
      for _ = 1, 2 do
        ckpt.session.report { name = ckpt.session.get().trial_name, of = config.of }
      end
    end
    local Class = ckpt.wrap_function(train, { warn = false })
    local a = t.make(Class, { of = "a" }, { trial_name = "a" })
    local b = t.make(Class, { of = "b" }, { trial_name = "b" })
    for _ = 1, 2 do
      for _, runner in ipairs { a, b } do
        local result = assert(runner:step())
        assert.equal(result.of, result.name)
      end
    end
    assert.equal("b", ckpt.session.get().trial_name)
    b:stop()
    assert.equal("a", ckpt.session.get().trial_name)
  end))

  it("[298] forgets a runner that nobody has any more", trial(function(t)
    do
      local runner = ckpt.wrap_function(function(_, reporter) reporter {} end)({},
        { logdir = t.dir })
      runner:step()
    end
    collectgarbage()
    collectgarbage()
    assert.is_false(ckpt.session.is_enabled())
  end))

  it("[298] makes a checkpoint directory and sets it when it is filled", trial(function(t)
    local runner = t.wrap(function(_)
      ckpt.session.checkpoint_dir(4, function(dir) support.write(dir .. "/model", "m") end)
      ckpt.session.report {}
    end)
    assert.is_true(runner:step().should_checkpoint)
    assert.equal(t.dir .. "/checkpoint_000004/", (runner:save()))
    assert.error_matches(function() ckpt.session.checkpoint_dir(nil, print) end, "`step` is a nil")
  end))

  it("[298] does not set a checkpoint whose files could not be written", trial(function(t)
    local answer
    local runner = t.wrap(function(_)
      answer = { ckpt.session.checkpoint_dir(4, function() return nil, "no space", "ENOSPACE" end) }
      ckpt.session.report {}
    end)
    assert.is_nil(runner:step().should_checkpoint)
    assert.equal("ENOSPACE", answer[3])
  end))

  it("[298] is reached from the function's own line only", trial(function(t)
    local runner = t.wrap(function(_, reporter)
      local inner = coroutine.create(function() reporter { i = 1 } end)
      local _, why = coroutine.resume(inner)
      reporter { why = why }
    end)
    assert.is_truthy(runner:step().why:find("coroutine of its own", 1, true))
    assert.error_matches(function() runner._status_reporter {} end, "from outside of the training")
  end))
end)
