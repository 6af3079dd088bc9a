-- ckpt.FunctionRunner: the steps of a training function, and its checkpoints.

local ckpt = require "ckpt"
local functions = require "contract.function_support"
local support = require "support"

local trial, fs = functions.trial, ckpt.fs

-- Reports its count, and sets a checkpoint directory with the count in `c` before each report;
-- begins where the checkpoint says.
local function counting(_, reporter, checkpoint)
  local count = 0
  if checkpoint then count = tonumber(support.read(checkpoint .. "/c")) + 1 end
  while true do
    local path = assert(reporter:make_checkpoint_dir(count))
    support.write(path .. "/c", tostring(count))
    reporter:set_checkpoint(path)
    reporter { count = count }
    count = count + 1
  end
end

-- A class of runners of a function that is called as the runner itself calls it.
local function class_of(fn)
  local Class = ckpt.FunctionRunner:extend "Test"
  function Class:_trainable_func(...) return fn(self.config, select(2, ...)) end
  return Class
end

-- A runner of `counting` that has made its first step.
local function trained(t, options)
  local runner = t.make(class_of(counting), nil, options)
  runner:train()
  return runner
end

-- A runner in t.dir/other that takes up an object; of `counting`, or of another function.
local function taking_up(t, object, fn)
  local runner = t.make(class_of(fn or counting), nil, { logdir = t.dir .. "/other" })
  assert(runner:restore_from_object(object))
  return runner
end

-- Another runner of the function that takes up what this one has saved.
local function following(t, runner, fn, options)
  local path = assert(runner:save())
  local other = t.make(class_of(fn), nil, options)
  assert(other:restore(path))
  return other
end

describe("ckpt.FunctionRunner, step by step", function()
  it("[231] has the limits of its peer, in seconds", function()
    local Runner = ckpt.FunctionRunner
    assert.same({ 0.2, 10, 1 },
      { Runner.RESULT_FETCH_TIMEOUT, Runner.ERROR_REPORT_TIMEOUT, Runner.ERROR_FETCH_TIMEOUT })
  end)

  it("[253] starts the function with the first step, not at set-up", trial(function(t)
    local begun = 0
    local runner = t.wrap(function(_, reporter)
      begun = begun + 1
      reporter {}
    end)
    assert.equal(0, begun)
    runner:step()
    assert.equal(1, begun)
  end))

  it("[254] calls it with the config, the reporter and the last checkpoint, which is not new then",
    trial(function(t)
      local seen
      local runner = t.make(class_of(function(config, reporter, checkpoint)
        seen = { config, reporter, checkpoint, reporter:has_new_checkpoint() }
        reporter {}
      end), { lr = 1 })
      runner._status_reporter:set_checkpoint { w = 1 }
      runner:step()
      assert.same({ { lr = 1 }, runner._status_reporter, { w = 1 }, false }, seen)
    end))

  it("[255] takes the stop condition for a good end", trial(function(t)
    local runner = t.wrap(function(_, reporter)
      reporter { i = 1 }
      error(ckpt.StatusReporter.STOP)
    end)
    assert(runner:step())
    local result, text = runner:step()
    assert.is_nil(result)
    assert.is_truthy(text:find "without results")
    assert.is_nil(t.said "failed")
  end))

  it("[255] logs any other error, and keeps it with a traceback", trial(function(t)
    local function inner() error "no data" end
    local runner = t.wrap(function(_) inner() end)
    local result, text, name = runner:step()
    assert.is_nil(result)
    assert.equal("EINTERNAL", name)
    assert.is_truthy(text:find "function_runner_spec.lua:%d+: no data")
    assert.is_truthy(text:find("in function 'inner'", 1, true))
    assert.equal("error", t.said "no data")
  end))

  it("[255] takes what the function returns for its failure", trial(function(t)
    local runner = t.wrap(function(_) return nil, "the disk is full", "ENOSPACE" end)
    local result, text, name = runner:step()
    assert.is_nil(result)
    assert.is_truthy(text:find("the disk is full", 1, true))
    assert.equal("ENOSPACE", name)
  end))

  it("[256] lets the function go on for one report with each step", trial(function(t)
    local log = {}
    local runner = t.wrap(function(_, reporter)
      for i = 1, 3 do
        table.insert(log, "report " .. i)
        reporter { i = i }
      end
    end)
    for i = 1, 3 do
      assert.equal(i, runner:step().i)
      table.insert(log, "step " .. i)
    end
    assert.equal("report 1 step 1 report 2 step 2 report 3 step 3", table.concat(log, " "))
  end))

  it("[256] looks every 0.2 s for the result of a function that yields by itself",
    trial(function(t)
      local runner = t.wrap(function(_, reporter)
        for _ = 1, 3 do coroutine.yield() end
        reporter { i = 1 }
      end)
      assert.equal(1, runner:step().i)
      assert.same({ 0.2, 0.2, 0.2 }, t.clock.slept)
    end))

  it("[256] lets other tasks run while it waits for a function that yields", trial(function(t)
    local log = {}
    local runner = t.wrap(function(_, reporter)
      for i = 1, 3 do
        log[#log + 1] = i
        coroutine.yield()
      end
      reporter {}
    end)
    local driver = ckpt.job.task(function() return runner:step() end)
    local other = ckpt.job.task(function()
      for _ = 1, 3 do
        log[#log + 1] = "other"
        ckpt.job.yield(0.2)
      end
    end)
    assert(driver:wait())
    other:wait()
    assert.equal("1 other 2 other 3 other", table.concat(log, " "))
  end))

  it("[257] fails with the function's error when there is no result", trial(function(t)
    local runner = t.wrap(function(_, reporter)
      reporter { i = 1 }
      error "broken"
    end)
    assert.equal(1, runner:step().i)
    local result, text, name = runner:step()
    assert.is_nil(result)
    assert.is_truthy(text:find("the trial's function failed: .*broken"))
    assert.equal("EINTERNAL", name)
  end))

  it("[257] fails when the function ends without results and without an error", trial(function(t)
    local runner = t.make(class_of(function() end))
    local result, text, name = runner:step()
    assert.is_nil(result)
    assert.is_truthy(text:find "without results and without an error")
    assert.equal("EINTERNAL", name)
  end))

  it("[258] delivers the result that came before an error, with a warning", trial(function(t)
    local runner = t.wrap(function(_) error "broken" end)
    -- A worker whose result and error are there at once; a program can do that.
    function runner._new_worker()
      local results, failure = { { i = 1 } }, { text = "late", name = "EIO" }
      return {
        alive = function() return false end,
        result = function() return table.remove(results) end,
        has_error = function() return failure ~= nil end,
        take_error = function()
          local taken = failure
          failure = nil
          return taken
        end,
        stop = function() return 0 end,
      }
    end
    local worker = runner:_new_worker()
    runner._new_worker = function() return worker end
    assert.equal(1, runner:step().i)
    assert.equal("warning", t.said "results before that come first")
    local result, text, name = runner:step()
    assert.is_nil(result)
    assert.is_truthy(text:find "late")
    assert.equal("EIO", name)
  end))

  it("[259 G] tells the same error again with each further step", trial(function(t)
    local begun = 0
    local runner = t.wrap(function(_)
      begun = begun + 1
      error "broken"
    end)
    local first = { runner:step() }
    for _ = 1, 3 do assert.same(first, { runner:step() }) end
    assert.equal(1, begun)
    assert.is_true(runner:stop()) -- it was told
  end))

  it("is not stepped or stopped by its own function", trial(function(t)
    local runner
    runner = t.wrap(function(_, reporter)
      local _, stepped = pcall(runner.step, runner)
      local _, stopped = pcall(runner.stop, runner)
      reporter { stepped = stepped, stopped = stopped }
    end)
    local result = assert(runner:step())
    assert.is_truthy(result.stepped:find("its own runner", 1, true))
    assert.is_truthy(result.stopped:find("its own runner", 1, true))
  end))

  it("[276] takes no step after it was stopped", trial(function(t)
    local runner = t.wrap(function(_, reporter) reporter {} end)
    runner:step()
    runner:stop()
    assert.error_matches(function() runner:step() end, "was stopped")
  end))

  it("[260] lays the mark of the end over a copy of the last result", trial(function(t)
    local runner = t.wrap(function(_, reporter) reporter { i = 1, time_this_iter_s = 3 } end)
    local first = assert(runner:step())
    assert.same({ i = 1, time_this_iter_s = 0, __duplicate__ = true }, runner:step())
    assert.same({ i = 1, time_this_iter_s = 3 }, first)
  end))

  it("[260] yields only the mark for a function that never reported", trial(function(t)
    local runner = t.wrap(function(_) end)
    assert.same({ time_this_iter_s = 0, __duplicate__ = true }, runner:step())
  end))

  it("[293] calls a function with itself", trial(function(t)
    local runner = t.wrap(function(_) end)
    local seen
    assert.same({ 1, 2 }, { runner:execute(function(r)
      seen = r
      return 1, 2
    end) })
    assert.equal(runner, seen)
  end))

  it("[294] has no function of its own", trial(function(t)
    local result, text = t.make(ckpt.FunctionRunner):step()
    assert.is_nil(result)
    assert.is_truthy(text:find "not implemented")
    assert.error_matches(function() ckpt.FunctionRunner._trainable_func() end, "not implemented")
  end))
end)

describe("ckpt.FunctionRunner's checkpoints", function()
  it("[261] decides itself where it saves", trial(function(t)
    local runner = trained(t)
    assert.error_matches(function() runner:save(t.dir) end, "leave out the path")
    assert.equal(t.dir .. "/checkpoint_000000/", (runner:save()))
  end))

  it("[262] makes a null checkpoint when none is set, with counts of 0", trial(function(t)
    local runner = t.wrap(function(_, reporter)
      reporter { timesteps_this_iter = 5, episodes_this_iter = 1 }
    end)
    runner:train()
    local path = assert(runner:save())
    assert.equal(t.dir .. "/checkpoint_-00001/", path)
    assert.is_true(ckpt.FuncCheckpointUtil.is_null_checkpoint(path))
    local state = assert(ckpt.TrainableUtil.read_checkpoint(path))
    assert.same({ 0, 0, 0 }, { state.iteration, state.timesteps_total, state.episodes_total })
  end))

  it("[263] counts from 1 again after a null checkpoint", trial(function(t)
    local runner = t.wrap(function(_, reporter) while true do reporter {} end end)
    runner:train()
    runner:train()
    local path = assert(runner:save())
    local other = t.wrap(function(_, reporter) while true do reporter {} end end)
    assert(other:restore(path))
    assert.equal(1, other:train().training_iteration)
  end))

  it("[264] counts an empty table, or text, as no checkpoint", trial(function(t)
    local runner = t.wrap(function(_) end)
    for _, empty in ipairs { {}, "" } do
      runner._status_reporter._checkpoint = empty
      assert.equal(t.dir .. "/checkpoint_-00001/", (runner:save()))
    end
  end))

  it("[265] saves a table into the file `checkpoint` of the iteration's directory",
    trial(function(t)
      local runner = t.wrap(function(_, reporter)
        reporter:set_checkpoint { w = 1 }
        reporter {}
      end)
      runner:train()
      local dir = assert(runner._status_reporter:make_checkpoint_dir(1))
      support.write(dir .. "/kept", "k")
      assert.equal(dir .. "/checkpoint", (runner:save()))
      assert.same({
        ".is_checkpoint=", "checkpoint.tune_metadata", 'checkpoint={"w": 1}', "kept=k",
      }, functions.tree(dir))
    end))

  it("[266] saves a path where it is", trial(function(t)
    local runner = t.wrap(function(_, reporter)
      local dir = assert(reporter:make_checkpoint_dir(7))
      support.write(dir .. "/model", "m")
      reporter:set_checkpoint(dir .. "/model")
      reporter {}
    end)
    runner:train()
    assert.equal(t.dir .. "/checkpoint_000007/model", (runner:save()))
    assert.is_true(fs.exists(t.dir .. "/checkpoint_000007/model.tune_metadata"))
  end))

  it("[266] makes a temporary one permanent under the current iteration", trial(function(t)
    local runner = t.make(class_of(counting))
    for _ = 1, 3 do runner:train() end
    local other = taking_up(t, assert(runner:save_to_object()))
    assert.equal(t.dir .. "/other/checkpoint_000003/", (other:save()))
    assert.same({ ".is_checkpoint=", ".tune_metadata", "c=2" },
      functions.tree(t.dir .. "/other/checkpoint_000003"))
    assert.equal(t.dir .. "/other/checkpoint_000003/", (other:save()), "and stays there")
    other:stop()
    assert.same({ "checkpoint_000003/" }, { functions.tree(t.dir .. "/other")[1] })
  end))

  it("[266] moves a path inside of it by its relative part", trial(function(t)
    local dir = assert(ckpt.FuncCheckpointUtil.mk_temp_checkpoint_dir(t.dir))
    assert(fs.mkdirs(dir .. "/a"))
    support.write(dir .. "/a/model", "m")
    local runner = t.wrap(function(_) end)
    runner._status_reporter:set_checkpoint(dir .. "/a/model")
    assert.equal(t.dir .. "/checkpoint_000000/a/model", (runner:save()))
  end))

  it("[267] refuses any other type, and names it", trial(function(t)
    local runner = t.wrap(function(_) end)
    runner._status_reporter:set_checkpoint(7)
    assert.error_matches(function() runner:save() end, "a number .* a path or a table was expected")
  end))

  it("[268] returns a directory's path with a slash at its end", trial(function(t)
    local runner = trained(t)
    assert.equal(t.dir .. "/checkpoint_000000/", (runner:save()))
    -- Spelled in another way than its directory is: the text of the path decides.
    local odd = fs.join(t.dir, "checkpoint_000000/a/../c")
    assert(fs.mkdirs(t.dir .. "/checkpoint_000000/a"))
    runner._status_reporter:set_checkpoint(odd)
    assert.equal(odd, (runner:save()))
  end))

  it("[269] takes the checkpoint by a save: it is not new any more", trial(function(t)
    local runner = t.make(class_of(counting))
    assert.is_true(runner:train().should_checkpoint)
    assert.is_true(runner._status_reporter:has_new_checkpoint())
    runner:save()
    assert.is_false(runner._status_reporter:has_new_checkpoint())
  end))

  it("[270] hands out the whole directory as an object", trial(function(t)
    local runner = trained(t)
    local object = assert(runner:save_to_object())
    assert.equal("./", object.checkpoint_name)
    assert(ckpt.tar.unpack_text(object.data, t.dir .. "/out"))
    assert.same({ ".is_checkpoint=", ".tune_metadata", "c=0" }, functions.tree(t.dir .. "/out"))
    assert.is_nil(t.said "bytes large")
    support.write(t.dir .. "/checkpoint_000000/big", ("x"):rep(10e6))
    assert(runner:save_to_object())
    assert.equal("info", t.said "bytes large")
  end))

  it("[271] takes up a checkpoint as one that is not new", trial(function(t)
    local other = following(t, trained(t), counting)
    assert.is_false(other._status_reporter:has_new_checkpoint())
    assert.equal(1, other:train().count)
  end))

  it("[271] leaves `tune_checkpoint_path` out of a table", trial(function(t)
    local function remembering(_, reporter, checkpoint)
      reporter:set_checkpoint { w = 5 }
      reporter { seen = checkpoint }
    end
    local runner = t.make(class_of(remembering))
    runner:train()
    local other = following(t, runner, remembering)
    assert.same({ w = 5 }, other:train().seen)
  end))

  it("[271] takes up nothing of a null checkpoint", trial(function(t)
    local function seeing(_, reporter, checkpoint) reporter { seen = checkpoint or "nothing" } end
    local runner = t.make(class_of(seeing))
    local other = following(t, runner, seeing)
    assert.equal("nothing", other:train().seen)
  end))

  it("[272 G] takes up a table as it takes up a path", trial(function(t)
    local runner = t.wrap(function(_) end)
    runner:load_checkpoint { w = 1 }
    assert.same({ w = 1 }, runner._status_reporter:get_checkpoint())
  end))

  it("[286 G] takes a path with `tune_checkpoint_path` in its name", trial(function(t)
    local logdir = t.dir .. "/my_tune_checkpoint_path_x"
    local other = following(t, trained(t, { logdir = logdir }), counting, { logdir = logdir })
    assert.equal(1, other:train().count)
  end))

  it("[273] restores an object by way of a new temporary directory", trial(function(t)
    local other = taking_up(t, assert(trained(t):save_to_object()))
    local dir = other.temp_checkpoint_dir
    assert.is_truthy(dir:find "/other/checkpoint_tmp%x%x%x%x%x%x$")
    assert.same({ ".is_checkpoint=", ".temp_marker=", ".tune_metadata", "c=0" },
      functions.tree(dir))
    assert.equal(1, other.iteration)
    assert.equal(1, other:train().count)
  end))

  it("[274] brings the marks of its origin with it: null stays null", trial(function(t)
    local function seeing(_, reporter, checkpoint) reporter { seen = checkpoint or "nothing" } end
    local runner = t.make(class_of(seeing))
    local other = taking_up(t, assert(runner:save_to_object()), seeing)
    assert.is_true(ckpt.FuncCheckpointUtil.is_null_checkpoint(other.temp_checkpoint_dir))
    assert.equal("nothing", other:train().seen)
  end))

  it("[275 G] removes every temporary directory of its life", trial(function(t)
    local object = assert(trained(t):save_to_object())
    local other = taking_up(t, object)
    for _ = 1, 2 do assert(other:restore_from_object(object)) end
    assert.equal(3, #fs.glob(t.dir .. "/other/checkpoint_tmp*"))
    assert.is_true(other:stop())
    assert.same({}, functions.tree(t.dir .. "/other"))
  end))

  it("[276] warns of results that nobody took, tells a waiting error, ends the session",
    trial(function(t)
      local runner = t.wrap(function(_, reporter)
        pcall(reporter, { i = 1 })
        pcall(reporter, { i = 2 })
        error "while it tidied up"
      end)
      runner:step()
      local done, text, name = runner:stop()
      assert.is_nil(done)
      assert.is_truthy(text:find "while it tidied up")
      assert.equal("EINTERNAL", name)
      assert.equal("warning", t.said "after the trial was told to stop")
      assert.is_false(ckpt.session.is_enabled())
      assert.is_true(runner:stop())
    end))

  it("[276] removes the temporary directory if it is there", trial(function(t)
    local other = taking_up(t, assert(trained(t):save_to_object()))
    assert(fs.remove_tree(other.temp_checkpoint_dir))
    assert.is_true(other:stop())
  end))

  it("[277 G] ends the session and removes what is temporary when an error waits, too",
    trial(function(t)
      local runner = trained(t)
      local object = assert(runner:save_to_object())
      runner:stop()
      local other = t.wrap(function(_, reporter)
        pcall(reporter, {})
        error "broken"
      end)
      assert(other:restore_from_object(object))
      other:step()
      assert.is_nil((other:stop()))
      assert.is_false(ckpt.session.is_enabled())
      assert.same({}, fs.glob(t.dir .. "/checkpoint_tmp*"))
    end))

  it("[278] keeps a temporary directory while the function may load it", trial(function(t)
    local late = taking_up(t, assert(trained(t):save_to_object()), function(_, reporter, checkpoint)
      reporter {}
      reporter { c = support.read(checkpoint .. "/c") }
    end)
    late:train()
    assert(late:save())
    assert.equal("0", late:train().c)
  end))

  it("[279] never hands out a directory with two steps' files in it", trial(function(t)
    local function naming(_, reporter, checkpoint)
      if checkpoint then
        local files = fs.glob(checkpoint .. "/step-*")
        assert(#files == 1, table.concat(files, " "))
      end
      for step = 0, 19 do
        local dir = assert(reporter:make_checkpoint_dir(step))
        support.write(dir .. "/step-" .. step, "")
        reporter:set_checkpoint(dir)
        reporter { step = step }
      end
    end
    local path, object
    for life = 1, 8 do
      local runner = t.make(class_of(naming))
      if life % 2 == 0 then assert(runner:restore(path)) end
      if object and life % 2 == 1 then assert(runner:restore_from_object(object)) end
      for _ = 1, 2 do assert(runner:train()) end
      path = assert(runner:save())
      object = assert(runner:save_to_object())
      assert(runner:stop())
      assert.equal(2 * life, runner.iteration)
    end
    assert.equal(0, #fs.glob(t.dir .. "/checkpoint_tmp*"))
  end))
end)
