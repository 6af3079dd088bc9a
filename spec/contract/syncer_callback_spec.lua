-- ckpt.SyncerCallback: when a trial's directory is fetched, and what becomes of failures.
local ckpt = require "ckpt"
local ffi = require "ffi"
local files = require "contract.files"
local support = require "support"

ffi.cdef [[
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
]]

local ITER, TIME = "TUNE_NODE_SYNCING_MIN_ITER_THRESHOLD", "TUNE_NODE_SYNCING_MIN_TIME_S_THRESHOLD"

describe("ckpt.SyncerCallback", function()
  local clock, transfers, calls, log, restore_log, dir, callback, trial

  -- A callback whose transfers do what `transfers:plan` says; its trials lie in `dir`.
  local function new(options)
    options = options or {}
    options.transfer = options.transfer or function(from, to, ...)
      calls[#calls + 1] = { from = from, to = to, ... }
      return transfers:launch(to)
    end
    return ckpt.SyncerCallback(options)
  end

  local function trial_of(id, more)
    local made = { id = id, logdir = dir .. "/" .. id, uri = "node7:" .. id }
    for key, value in pairs(more or {}) do made[key] = value end
    return made
  end

  local function result(iteration, seconds)
    return { training_iteration = iteration, time_total_s = seconds }
  end

  -- What was logged, level and text in one.
  local function logged()
    local lines = {}
    for i, line in ipairs(log) do lines[i] = line.level .. ": " .. line.text end
    return table.concat(lines, "\n")
  end

  before_each(function()
    ffi.C.unsetenv(ITER)
    ffi.C.unsetenv(TIME)
    dir = support.directory()
    clock = ckpt.testing.clock(1000)
    transfers = ckpt.testing.transfers(clock)
    log, restore_log = ckpt.testing.capture_log()
    calls = {}
    callback, trial = new(), trial_of "a"
  end)

  after_each(function()
    clock:restore()
    restore_log()
    ffi.C.unsetenv(ITER)
    ffi.C.unsetenv(TIME)
    support.sh("rm -rf " .. dir)
  end)

  it("[138] waits for two iterations or ten seconds before the first fetch", function()
    assert.is_false(callback:on_trial_result(trial, result(1, 9.999)))
    assert.is_true(callback:on_trial_result(trial, result(2, 0)))
    assert.is_true(callback:on_trial_result(trial_of "b", result(0, 10)))
  end)

  it("[139] leaves out the same names in the same order", function()
    callback:on_trial_result(trial, result(2, 10))
    assert.same({ "./checkpoint_-00001", "./checkpoint_tmp*", "./save_to_object*", "./rank_*",
      "./.lazy_checkpoint_marker" }, calls[1][1])
  end)

  it("[189] is enabled, fetches each 300 s, has thresholds from the environment", function()
    assert.same({ true, 300, 2, 10 },
      { callback.enabled, callback.sync_period, callback.min_iter, callback.min_time })
    ffi.C.setenv(ITER, " 7 ", 1)
    ffi.C.setenv(TIME, "1e2", 1)
    local other = new { enabled = false, sync_period = 0.5 }
    ffi.C.unsetenv(ITER)
    assert.same({ false, 0.5, 7, 100 },
      { other.enabled, other.sync_period, other.min_iter, other.min_time })
    ffi.C.setenv(TIME, "inf", 1)
    assert.equal(math.huge, new().min_time)
  end)

  it("[189] refuses thresholds that are no numbers, the empty text too", function()
    for _, case in ipairs {
      { ITER, "2.5" }, { ITER, "" }, { ITER, "two" }, { ITER, "0x2" },
      { TIME, "" }, { TIME, "ten" }, { TIME, "0x10" }, { TIME, "1 2" },
    } do
      ffi.C.setenv(case[1], case[2], 1)
      assert.error_matches(new, case[1] .. ' is "' .. case[2] .. '"', 1)
      ffi.C.unsetenv(case[1])
    end
  end)

  it("[190] skips while both thresholds are ahead; one that is reached is enough", function()
    for _, case in ipairs { { 1, 9, false }, { 2, 9, true }, { 1, 10, true }, { 2, 10, true } } do
      local one = trial_of("t" .. case[1] .. "x" .. case[2])
      assert.equal(case[3], callback:on_trial_result(one, result(case[1], case[2])))
    end
  end)

  it("[191] skips until the period is over, and not a moment longer", function()
    assert.is_true(callback:on_trial_result(trial, result(5, 50)))
    clock:advance(299.999)
    assert.is_false(callback:on_trial_result(trial, result(6, 60)))
    clock:advance(0.001)
    assert.is_true(callback:on_trial_result(trial, result(7, 70)))
  end)

  it("[192] takes a trial that has told nothing for one at iteration 0 and 0 s", function()
    local quiet = trial_of("quiet", { sync_on_checkpoint = false })
    assert.is_false(callback:on_checkpoint(quiet, { path = dir }))
    ffi.C.setenv(ITER, "0", 1)
    assert.is_true(new():on_checkpoint(quiet, { path = dir }))
  end)

  it("[193] takes a number that a result lacks for reached", function()
    assert.is_true(callback:on_trial_result(trial_of "b", { time_total_s = 0 }))
    assert.is_true(callback:on_trial_result(trial_of "c", { training_iteration = 0 }))
    assert.is_true(callback:on_trial_result(trial_of "d", {}))
  end)

  it("[194] counts the numbers seen last, not the highest", function()
    callback = new { sync_period = 0 }
    assert.is_true(callback:on_trial_result(trial, result(5, 50)))
    assert.is_false(callback:on_trial_result(trial, result(1, 1)))
  end)

  it("[195] does nothing when disabled, or for a trial that saves to a store itself", function()
    local off = new { enabled = false }
    local cloud = trial_of("b", { uses_cloud_checkpointing = true })
    for object, one in pairs { [off] = trial, [callback] = cloud } do
      assert.is_false(object:on_trial_result(one, result(9, 99)))
      assert.is_false(object:on_checkpoint(one, { path = dir .. "/nowhere" }))
      assert.is_false(object:on_trial_complete(one))
      object:on_trial_error(one)
      assert.same({}, object:status().processes)
    end
    assert.same({}, calls)
  end)

  it("[196] has a process for a trial from the first look on, whatever is decided", function()
    assert.is_false(callback:on_trial_result(trial, result(0, 0)))
    assert.same({ "a" }, callback:status().processes)
  end)

  it("[197] skips while the trial's own transfer runs; others do not count", function()
    transfers:plan { { "ok", 1000 } }
    assert.is_true(callback:on_trial_result(trial, result(5, 50)))
    clock:advance(400)
    assert.is_false(callback:on_trial_result(trial, result(6, 450)))
    assert.is_true(callback:on_trial_result(trial_of "b", result(5, 50)))
    assert.same({ "a" }, callback:status().running)
  end)

  it("[198] forced, asks neither thresholds nor period, and waits for what runs", function()
    transfers:plan { { "ok", 100 }, { "ok", 7 } }
    assert.is_true(callback:on_trial_result(trial, result(5, 50)))
    callback:on_trial_result(trial, result(0, 0))
    assert.is_true(callback:on_checkpoint(trial, { path = dir }))
    assert.equal(1107, clock.time)
    assert.equal(2, #calls)
    assert.equal(1100, transfers.launched[2].time)
  end)

  it("[199] asks once where a trial is; without an answer there is no transfer", function()
    local asked, answer, why = 0, nil, nil
    callback = new {
      source = function(one)
        assert.equal(trial, one)
        asked = asked + 1
        return answer, why
      end,
    }
    assert.is_false(callback:on_trial_result(trial, result(5, 50)))
    assert.equal("", logged())
    why = "its process is gone"
    assert.is_false(callback:on_trial_result(trial, result(5, 50)))
    assert.equal("error: Trial a: cannot tell where it runs: its process is gone", logged())
    answer = "/elsewhere/a"
    assert.is_true(callback:on_checkpoint(trial, { path = dir }))
    assert.is_true(callback:on_checkpoint(trial, { path = dir }))
    assert.equal(3, asked)
    assert.same({ a = "/elsewhere/a" }, callback:status().sources)
    assert.equal("/elsewhere/a", calls[2].from)
  end)

  it("[200] asks again where a trial is after it started anew", function()
    callback:on_checkpoint(trial, { path = dir })
    trial.uri = "node8:a"
    callback:on_checkpoint(trial, { path = dir })
    callback:on_trial_start(trial)
    assert.same({}, callback:status().sources)
    callback:on_checkpoint(trial, { path = dir })
    assert.same({ "node7:a", "node7:a", "node8:a" },
      { calls[1].from, calls[2].from, calls[3].from })
  end)

  it("[201] logs the failure of the transfer before, and starts the next", function()
    callback = new { sync_period = 0 }
    transfers:plan { { "fail", 5, "no route to node7" } }
    assert.is_true(callback:on_trial_result(trial, result(5, 50)))
    clock:advance(10)
    assert.is_true(callback:on_trial_result(trial, result(6, 60)))
    assert.equal("error: Trial a: syncing the previous checkpoint failed: no route to node7",
      logged())
  end)

  it("[201] waits for the transfer before, forced", function()
    transfers:plan { { "fail", 5, "no route to node7" } }
    callback:on_trial_result(trial, result(5, 50))
    assert.is_true(callback:on_trial_complete(trial))
    assert.equal(1005, clock.time)
    assert.is_truthy(logged():find("previous checkpoint failed: no route", 1, true))
  end)

  it("[202 G] logs whatever went wrong with the transfer before, and starts the next", function()
    transfers:plan { { "fail", 5, "a nil value", "EINTERNAL" } }
    callback:on_trial_result(trial, result(5, 50))
    assert.is_true(callback:on_checkpoint(trial, { path = dir }))
    assert.equal(2, #calls)
    assert.is_truthy(logged():find("previous checkpoint failed: a nil value", 1, true))
  end)

  it("[202 G] logs what went wrong with the last transfer of a trial, however it ends", function()
    for _, calls_of in ipairs {
      { "on_trial_complete", "wait_for_all" }, { "on_trial_result", "on_trial_error" },
    } do
      callback = new()
      transfers:plan { { "fail", 5, "no route" } }
      callback[calls_of[1]](callback, trial, result(5, 50))
      clock:advance(10)
      callback[calls_of[2]](callback, trial)
      assert.equal("error: Trial a: syncing the previous checkpoint failed: no route", logged())
      table.remove(log)
    end
  end)

  it("[203] fetches the trial's directory to the same place here, of any size", function()
    callback:on_trial_result(trial, result(5, 50))
    assert.same({ { from = "node7:a", to = dir .. "/a", ckpt.SyncerCallback.EXCLUDE } }, calls)
  end)

  it("[204 G] does not count a transfer that failed for the period", function()
    transfers:plan { { "ok", 0 }, { "fail", 5 }, { "ok", 0 } }
    callback:on_trial_result(trial, result(5, 50))
    clock:advance(300)
    assert.is_true(callback:on_trial_result(trial, result(6, 60)))
    clock:advance(10)
    assert.is_true(callback:on_trial_result(trial, result(7, 70)))
    clock:advance(10)
    assert.is_false(callback:on_trial_result(trial, result(8, 80)))
  end)

  it("[204 G] does not count one that failed while another was to follow it", function()
    transfers:plan { { "fail", 5 }, { "fail", 5 }, { "ok", 0 } }
    assert.is_true(callback:on_trial_result(trial, result(5, 50)))
    callback:on_checkpoint(trial, { path = dir })
    clock:advance(10)
    assert.is_true(callback:on_trial_result(trial, result(6, 60)))
  end)

  it("[204 G] counts the period from the start of the transfer", function()
    transfers:plan { { "ok", 290 } }
    callback:on_trial_result(trial, result(5, 50))
    clock:advance(300)
    assert.is_true(callback:on_trial_result(trial, result(6, 60)))
  end)

  it("[205] logs a failure that it waited for, and says that it has synced", function()
    transfers:plan { { "fail", 3, "disk full" } }
    assert.is_true(callback:on_checkpoint(trial, { path = dir }))
    assert.equal("error: Trial a: syncing the current checkpoint failed: disk full", logged())
    assert.equal(1003, clock.time)
  end)

  it("[205] hands a mistake in the transfer function to the caller", function()
    callback = new { transfer = function() error("a typing error") end }
    local fetched, text, name = callback:on_checkpoint(trial, { path = dir })
    assert.is_nil(fetched)
    assert.equal("EINTERNAL", name)
    assert.is_truthy(text:find("a typing error", 1, true))
    assert.equal("", logged())
  end)

  it("[206] does not wait after a result", function()
    transfers:plan { { "ok", 50 } }
    assert.is_true(callback:on_trial_result(trial, result(5, 50)))
    assert.equal(1000, clock.time)
    assert.same({ "a" }, callback:status().running)
  end)

  it("[207] fetches once more for a complete trial, without waiting, and forgets it", function()
    transfers:plan { { "ok", 50 } }
    assert.is_true(callback:on_trial_complete(trial))
    assert.equal(1000, clock.time)
    assert.same({ processes = { "a" }, running = { "a" }, removing = { "a" }, sources = {} },
      callback:status())
    clock:advance(50)
    assert.is_true(callback:on_trial_complete(trial_of "b"))
    assert.same({ processes = {}, running = {}, removing = {}, sources = {} }, callback:status())
  end)

  it("[208] stops the transfer of a trial that failed, and fetches nothing", function()
    transfers:plan { { "ok", 500 } }
    callback:on_trial_result(trial, result(5, 50))
    callback:on_trial_error(trial)
    assert.equal(1, #calls)
    assert.equal(1000, clock.time)
    assert.is_true(transfers.launched[1].job.cancelled)
    assert.same({ processes = {}, running = {}, removing = {}, sources = {} }, callback:status())
  end)

  it("[209] leaves a checkpoint in memory alone", function()
    assert.is_false(callback:on_checkpoint(trial, { memory = true }))
    assert.same({}, callback:status().processes)
  end)

  it("[210] fetches at once for a checkpoint, unless the trial says not to, and waits", function()
    transfers:plan { { "ok", 20 }, { "ok", 30 } }
    assert.is_true(callback:on_checkpoint(trial, { path = dir }))
    assert.equal(1020, clock.time)
    trial.sync_on_checkpoint = false
    assert.is_false(callback:on_checkpoint(trial, { path = dir }))
    callback:on_trial_result(trial, result(1, 1))
    clock:advance(300)
    assert.is_false(callback:on_checkpoint(trial, { path = dir }))
    callback._reached.a = { 2, 0 }
    assert.is_true(callback:on_checkpoint(trial, { path = dir }))
    assert.equal(1350, clock.time)
  end)

  it("[210] takes a ckpt.Checkpoint", function()
    local checkpoint = ckpt.Checkpoint.from_directory(dir)
    assert.is_true(callback:on_checkpoint(trial, checkpoint))
  end)

  it("[211 G] says that the checkpoint is not here, and that the sync failed if it did", function()
    local path = dir .. "/nope"
    local fetched, text, name = callback:on_checkpoint(trial, { path = path })
    assert.is_nil(fetched)
    assert.equal("ENOENT", name)
    assert.equal("Trial a: checkpoint " .. path
      .. " is not here, though the sync of the trial succeeded", text)
    transfers:plan { { "fail", 1, "no route", "EIO" } }
    fetched, text, name = callback:on_checkpoint(trial, { path = path })
    assert.is_nil(fetched)
    assert.equal("EIO", name)
    assert.equal("Trial a: checkpoint " .. path
      .. " is not here, and the sync of the trial failed: no route", text)
  end)

  it("[212] does not look for the checkpoint if nothing was fetched", function()
    trial.sync_on_checkpoint = false
    assert.is_false(callback:on_checkpoint(trial, { path = dir .. "/nope" }))
    trial.sync_on_checkpoint, trial.uri = true, nil
    assert.is_false(callback:on_checkpoint(trial, { path = dir .. "/nope" }))
  end)

  it("[213] removes a flagged trial only when its transfer is over", function()
    transfers:plan { { "ok", 50 } }
    callback:on_trial_complete(trial)
    callback:on_trial_complete(trial_of "b")
    assert.same({ "a" }, callback:status().processes)
    assert.same({ "a" }, callback:status().removing)
    clock:advance(50)
    callback:on_trial_error(trial_of "c")
    assert.same({}, callback:status().processes)
    assert.same({}, callback:status().removing)
  end)

  it("[214 G] keeps nothing of a trial that has ended", function()
    for _, ending in ipairs { "on_trial_complete", "on_trial_error" } do
      callback = new()
      callback:on_trial_result(trial, result(5, 50))
      callback[ending](callback, trial)
      assert.same({}, callback:state().reached)
      trial.sync_on_checkpoint = false
      assert.is_false(callback:on_checkpoint(trial, { path = dir }), "it is below the thresholds")
      assert.is_true(callback:on_trial_result(trial, result(2, 1)), "it was never synced")
    end
  end)

  it("[215] waits for all, and lists what failed with each trial", function()
    transfers:plan { { "fail", 5, "no route" }, { "ok", 7 }, { "fail", 9, "x", "EINTERNAL" } }
    for _, id in ipairs { "a", "b", "c" } do
      callback:on_trial_result(trial_of(id), result(5, 50))
    end
    local done, text, name = callback:wait_for_all()
    assert.is_nil(done)
    assert.equal("EIO", name)
    assert.is_truthy(text:find("\n  a: no route\n  c: x", 1, true))
    assert.equal(1009, clock.time)
    assert.same({ {}, {} }, { callback:status().processes, callback:status().removing })
    assert.is_true(callback:wait_for_all())
  end)

  -- A report that came when nothing was due had it logged only, and nobody heard of it.
  it("[215] tells of a failure that a later report has seen already", function()
    transfers:plan { { "fail", 5, "no route" } }
    callback:on_trial_result(trial, result(5, 50))
    clock:advance(6)
    callback:on_trial_result(trial, result(1, 1))
    local done, text = callback:wait_for_all()
    assert.is_nil(done)
    assert.is_truthy(text:find("no route", 1, true))
  end)

  it("[216] only logs at the end of the experiment", function()
    transfers:plan { { "fail", 5, "no route" } }
    callback:on_trial_result(trial, result(5, 50))
    callback:on_experiment_end()
    assert.is_truthy(logged():find("^error: .*\n  a: no route$"))
    assert.equal(1005, clock.time)
  end)

  it("[217 G] goes on after it was saved and loaded, and has synced nothing then", function()
    callback:on_trial_result(trial, result(5, 50))
    local kept = callback:state()
    callback = new { sync_period = 1 }
    callback:restore(kept)
    assert.same({ processes = {}, running = {}, removing = {}, sources = {} }, callback:status())
    assert.equal(300, callback.sync_period)
    trial.sync_on_checkpoint = false
    assert.is_true(callback:on_checkpoint(trial, { path = dir }), "the numbers are kept")
    assert.is_false(callback:on_trial_result(trial, result(6, 60)))
  end)

  -- A transfer that is over when it is told so.
  local function held_transfer()
    local held = { over = false }
    function held:running() return not self.over end
    function held:wait()
      while not self.over do ckpt.job.yield() end
      return true
    end
    function held:cancel()
      self.over = true
      ckpt.job.yield() -- a real one lets tasks run until it has stopped
    end
    return held
  end

  it("starts one transfer after the other if several tasks ask for them", function()
    local all, most = {}, 0
    callback = new {
      transfer = function()
        local held, running = held_transfer(), 1
        for _, other in ipairs(all) do running = running + (other.over and 0 or 1) end
        most = math.max(most, running)
        all[#all + 1] = held
        return held
      end,
    }
    local tasks = {}
    for i = 1, 3 do
      tasks[i] = ckpt.job.task(function() return callback:on_checkpoint(trial, { path = dir }) end)
    end
    for _, task in ipairs(tasks) do
      while task:running() do
        for _, held in ipairs(all) do held.over = true end
      end
      assert.is_true((task:wait()))
    end
    assert.same({ 3, 1 }, { #all, most })
  end)

  it("starts nothing for a trial that has failed while a task waited", function()
    local held = held_transfer()
    callback = new { transfer = function()
      calls[#calls + 1] = "transfer"
      return held
    end }
    callback:on_trial_result(trial, result(5, 50))
    local task = ckpt.job.task(function() return callback:on_checkpoint(trial, { path = dir }) end)
    assert.is_true(task:running())
    callback:on_trial_error(trial)
    assert.is_false((task:wait()))
    assert.equal(1, #calls)
    assert.same({}, callback:status().processes)
  end)

  it("[199] starts nothing where the address is empty, and asks again", function()
    local address = ""
    callback = new { source = function() return address end }
    for _ = 1, 2 do
      assert.is_false(callback:on_trial_result(trial, result(5, 50)))
      assert.is_false(callback:on_checkpoint(trial, { path = dir .. "/nowhere" }))
      assert.same({}, callback:status().sources)
    end
    assert.equal("", logged())
    address = "node7"
    assert.is_true(callback:on_trial_result(trial, result(6, 60)))
    assert.same({ [trial.id] = "node7" }, callback:status().sources)
    trial.uri = ""
    local by_default = ckpt.SyncerCallback {}
    assert.is_false(by_default:on_trial_result(trial, result(5, 50)))
    assert.is_true(by_default:wait_for_all())
    assert.equal("", logged())
  end)

  it("[199] logs why nobody can tell where a trial is, if the function raises too", function()
    for _, source in ipairs { function() return nil, "the node is gone" end,
      function() error("the node is gone", 0) end } do
      callback = new { source = source }
      assert.is_false(callback:on_checkpoint(trial, { path = dir .. "/nowhere" }))
      assert.equal(("Trial %s: cannot tell where it runs: the node is gone"):format(trial.id),
        log[#log].text)
      assert.equal("error", log[#log].level)
    end
  end)

  it("tells of failed transfers in the order in which the trials were first seen", function()
    callback = new {
      transfer = function() return ckpt.job.task(function() return nil, "no route", "EIO" end) end,
    }
    for _, id in ipairs { "t2", "t10", "t1" } do
      callback:on_trial_result({ id = id, logdir = dir .. "/" .. id, uri = "x" }, result(5, 50))
    end
    local _, text = callback:wait_for_all()
    assert.matches("t2: .*\n  t10: .*\n  t1: ", text)
  end)

  it("refuses options that it does not know, and values of another kind", function()
    for text, options in pairs {
      ["no option `period`"] = { period = 3 },
      ["no option `sync_perod` (did you mean `sync_period`?)"] = { sync_perod = 3 },
      ["`sync_period` is a string, not a number"] = { sync_period = "5m" },
      ["`source` is a string, not a function"] = { source = "node7" },
    } do
      local ok, why = pcall(function()
        local made = ckpt.SyncerCallback(options)
        return made
      end)
      assert.is_false(ok)
      assert.is_truthy(why:find("^%S*syncer_callback_spec.lua:%d+: SyncerCallback: "), why)
      assert.is_truthy(why:find(text, 1, true), why)
    end
  end)

  it("raises in the caller's line for what is no trial, result or checkpoint", function()
    for _, case in ipairs {
      { "on_trial_start" }, { "on_trial_complete", { id = "a" } }, { "on_trial_error", "a" },
      { "on_trial_result", trial }, { "on_checkpoint", trial }, { "on_checkpoint", trial, {} },
    } do
      local ok, text = pcall(function() callback[case[1]](callback, case[2], case[3]) end)
      assert.is_false(ok)
      assert.is_truthy(text:find("^%S*syncer_callback_spec.lua:%d+: " .. case[1]), text)
    end
  end)
end)

describe("the way of a ckpt.SyncerCallback without one of its own", function()
  local dir, callback

  local function write(path, text) files.put(dir, path, text) end

  local function tree(path)
    local names = {}
    local root = dir .. "/" .. path .. "/"
    for _, entry in ipairs(assert(ckpt.fs.walk(root))) do
      if entry.type == "file" then
        names[#names + 1] = entry.path .. "=" .. ckpt.fs.read(root .. entry.path)
      end
    end
    return table.concat(names, " ")
  end

  support.with_directory(function(made)
    dir = made
    callback = ckpt.SyncerCallback()
    write("node/result.json", "1")
    write("node/checkpoint_000001/model", "m")
    write("node/checkpoint_tmpabc/model", "t")
    write("node/rank_0/log", "l")
  end)

  local function fetch(source)
    local trial = { id = "a", logdir = dir .. "/here", uri = source }
    return callback:on_checkpoint(trial, { path = dir .. "/here/checkpoint_000001" })
  end

  it("[219] copies nothing if it is the same directory", function()
    ckpt.fs.symlink("node", dir .. "/here")
    local before = ckpt.fs.stat(dir .. "/node/result.json").inode
    local log, restore = ckpt.testing.capture_log()
    for _, source in ipairs { dir .. "/node", dir .. "/here/", "file://" .. dir .. "/node" } do
      assert.is_true(fetch(source))
      assert.equal(before, ckpt.fs.stat(dir .. "/node/result.json").inode)
      assert.equal("checkpoint_000001/model=m checkpoint_tmpabc/model=t rank_0/log=l result.json=1",
        tree "node")
    end
    restore()
    assert.same({}, log)
  end)

  it("[219] replaces the target by a directory of this machine", function()
    write("here/old", "o")
    assert.is_true(fetch(dir .. "/node"))
    assert.equal("checkpoint_000001/model=m result.json=1", tree "here")
    assert.same({ "here", "here.lock", "node" }, ckpt.fs.list(dir))
  end)

  it("[219] downloads from another node over what is here", function()
    write("here/old", "o")
    assert(assert(ckpt.store.upload { dir = dir .. "/node", uri = "mem://callback/a" }):wait())
    assert.is_true(fetch "mem://callback/a")
    assert.equal("checkpoint_000001/model=m old=o result.json=1", tree "here")
  end)

  it("fetches trials beside one another, in the background", function()
    local trials = {}
    for i = 1, 3 do
      local id = "t" .. i
      write("node/model", ("x"):rep(100000 * i))
      assert(assert(ckpt.store.upload { dir = dir .. "/node", uri = "mem://beside/" .. id }):wait())
      trials[i] = { id = id, logdir = dir .. "/here/" .. id, uri = "mem://beside/" .. id }
    end
    for _, trial in ipairs(trials) do
      assert.is_true(callback:on_trial_result(trial, { training_iteration = 2 }))
    end
    assert.is_true(callback:wait_for_all())
    for i, trial in ipairs(trials) do
      assert.equal(100000 * i, #ckpt.fs.read(trial.logdir .. "/model"))
    end
  end)

  it("leaves the target alone if the copy fails, or would be of itself", function()
    write("here/checkpoint_000001/model", "o")
    local log, restore = ckpt.testing.capture_log()
    for _, source in ipairs { dir .. "/nowhere", dir, dir .. "/here/checkpoint_000001" } do
      assert.is_true(fetch(source))
      assert.equal("checkpoint_000001/model=o", tree "here")
    end
    restore()
    assert.equal(3, #log)
    assert.same({ "here", "node" }, (function()
      local names = {}
      for _, name in ipairs(ckpt.fs.list(dir)) do
        if not name:find("%.lock$") then names[#names + 1] = name end
      end
      return names
    end)())
  end)
end)
