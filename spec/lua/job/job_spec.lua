-- ckpt.job: tasks, transfers as jobs, waiting, cancelling.

local ckpt = require "ckpt"
local support = require "support"

local fs, job, store = ckpt.fs, ckpt.job, ckpt.store

describe("job.task", function()
  it("an error whose __tostring raises fails its task alone", function()
    local bad = setmetatable({}, { __tostring = function() error "no text" end })
    local done, text, name = ckpt.job.task(function() error(bad) end):wait()
    assert.is_nil(done)
    assert.is_string(text)
    assert.equal("EINTERNAL", name)
  end)

  it("hands over arguments and results, nil among them", function()
    local task = job.task(function(...) return select("#", ...), nil, (...) end, "a", nil, nil)
    assert.is_false(task:running())
    local results = { n = select("#", task:wait()), task:wait() }
    assert.same({ n = 3, 3, nil, "a" }, results)
  end)

  it("passes a failure on", function()
    local task = job.task(function() return nil, "no disk", "EIO" end)
    assert.same({ nil, "no disk", "EIO" }, { task:wait() })
  end)

  it("makes a failure of an error, with where it was", function()
    local function inner() error("boom") end
    local result, text, name = job.task(function() inner() end):wait()
    assert.is_nil(result)
    assert.equal("EINTERNAL", name)
    assert.matches("boom", text)
    assert.matches("inner", text)
  end)

  it("refuses what is no function", function()
    local ok, text = pcall(function() job.task("x") end)
    assert.is_false(ok)
    assert.matches("job_spec.lua:%d+: job.task: a task is a function", text)
  end)

  it("begins at once, and goes on only when jobs are looked at", function()
    local steps = {}
    local task = job.task(function()
      for i = 1, 3 do
        steps[i] = i
        job.yield()
      end
    end)
    assert.same({ 1 }, steps)
    assert.is_true(task:running())
    assert.same({ 1, 2 }, steps)
    task:wait()
    assert.same({ 1, 2, 3 }, steps)
  end)

  it("lets tasks take turns", function()
    local said = {}
    local function talk(name)
      for i = 1, 3 do
        said[#said + 1] = name .. i
        job.yield()
      end
      return name
    end
    local a, b = job.task(talk, "a"), job.task(talk, "b")
    assert.equal("b", b:wait())
    assert.equal("a", a:wait())
    assert.equal("a1 b1 a2 b2 a3 b3", table.concat(said, " "))
  end)

  it("may wait for another, whose results it gets", function()
    local first = job.task(function()
      for _ = 1, 5 do job.yield() end
      return 1, 2
    end)
    local second = job.task(function()
      local a, b = first:wait()
      return b, a
    end)
    assert.same({ 2, 1 }, { second:wait() })
  end)

  it("cannot wait for itself, nor cancel itself", function()
    local task
    task = job.task(function()
      job.yield()
      return pcall(task.wait, task)
    end)
    local ok, text = task:wait()
    assert.is_false(ok)
    assert.matches("cannot wait for itself", text)
    task = job.task(function()
      job.yield()
      return pcall(task.cancel, task)
    end)
    ok, text = task:wait()
    assert.is_false(ok)
    assert.matches("cannot cancel itself", text)
  end)

  it("tells when jobs wait for each other", function()
    local a, b
    a = job.task(function()
      job.yield()
      return b:wait()
    end)
    b = job.task(function()
      job.yield()
      return a:wait()
    end)
    assert.error_matches(function() a:wait() end, "wait for each other")
    a:cancel()
    b:cancel()
  end)

  it("does not yield from a coroutine of its own making", function()
    local task = job.task(function()
      local slow = job.task(function()
        job.yield()
        return "slow"
      end)
      local co = coroutine.wrap(function()
        local result = slow:wait() -- blocks: whoever resumed this coroutine waits for its yields
        coroutine.yield("mine: " .. result)
      end)
      return co()
    end)
    assert.equal("mine: slow", task:wait())
  end)
end)

describe("a wait", function()
  local clock
  before_each(function() clock = ckpt.testing.clock(0) end)
  after_each(function() clock:restore() end)

  local function asleep(seconds, result)
    return job.task(function()
      job.yield(seconds)
      return result
    end)
  end

  it("with a limit says that it goes on, and can be done again", function()
    local task = asleep(100, "done")
    assert.same({ nil, "the task is not over after 30 s; it goes on", "ETIMEOUT" },
      { task:wait(30) })
    assert.equal(30, clock.time)
    assert.is_true(task:running())
    assert.equal("done", task:wait())
    assert.equal(100, clock.time)
    assert.equal("done", task:wait(0))
  end)

  it("with a limit of 0 looks, and does not wait", function()
    local task = asleep(1)
    assert.equal("ETIMEOUT", select(3, task:wait(0)))
    assert.equal(0, clock.time)
    local ok, text = pcall(function() task:wait("1") end)
    assert.is_false(ok)
    assert.matches("job_spec.lua:%d+: wait: the limit is a string", text)
  end)

  it("moves all others on meanwhile, each at its time", function()
    local times = {}
    for _, seconds in ipairs { 7, 3, 5 } do
      job.task(function()
        job.yield(seconds)
        times[#times + 1] = clock.time
      end)
    end
    asleep(6):wait()
    assert.same({ 3, 5 }, times)
    assert.equal(6, clock.time)
    asleep(1):wait()
    assert.same({ 3, 5, 7 }, times)
  end)

  it("has a limit inside of a task, too", function()
    local slow = asleep(50, "late")
    local task = job.task(function()
      local _, _, name = slow:wait(20)
      return name, clock.time, slow:wait()
    end)
    assert.same({ "ETIMEOUT", 20, "late" }, { task:wait() })
    assert.equal(50, clock.time)
  end)

  it("for a scripted transfer lets other tasks go on", function()
    local transfers = ckpt.testing.transfers(clock,
      { { "ok", 100 }, { "fail", 30, "lost", "EIO" } })
    local function move() return transfers:launch():wait() end
    local long, short = job.task(move), job.task(move)
    assert.equal(0, clock.time)
    assert.same({ nil, "lost", "EIO" }, { short:wait() })
    assert.equal(30, clock.time)
    assert.is_true(long:running())
    assert.is_true(long:wait())
    assert.equal(100, clock.time)
  end)

  it("without anything that could end it is an error", function()
    local task = job.task(function() job.yield(math.huge) end)
    assert.error_matches(function() task:wait() end, "none of them can go on")
    assert.equal("ETIMEOUT", select(3, task:wait(9)))
    assert.equal(9, clock.time)
    task:cancel()
  end)
end)

describe("a wait in real time", function()
  it("sleeps until something happens", function()
    local before, started = os.clock(), ckpt.clock.monotonic()
    job.task(function() job.yield(0.3) end):wait()
    assert.is_true(ckpt.clock.monotonic() - started >= 0.3)
    assert.is_true(os.clock() - before < 0.15, "it was busy for " .. os.clock() - before)
  end)

  it("looks now and then while a task only yields", function()
    local before, started, rounds = os.clock(), ckpt.clock.monotonic(), 0
    job.task(function()
      while ckpt.clock.monotonic() - started < 0.5 do
        rounds = rounds + 1
        job.yield()
      end
    end):wait()
    assert.is_true(rounds >= 40, rounds .. " rounds")
    assert.is_true(os.clock() - before < 0.3, "it was busy for " .. os.clock() - before)
  end)
end)

describe("cancel", function()
  it("brings a task back from its wait, so that it can put things in order", function()
    local tidied
    local inner = job.task(function() job.yield(math.huge) end)
    local task = job.task(function()
      local _, _, name = inner:wait()
      tidied = name
      return "a result that nobody wants any more"
    end)
    task:cancel()
    assert.equal("ECANCELED", tidied)
    assert.same({ nil, "cancelled", "ECANCELED" }, { task:wait() })
    assert.is_false(task:running())
    assert.equal("ECANCELED", select(3, inner:wait()))
    task:cancel() -- a second time: nothing
  end)

  it("raises where a task yields", function()
    local caught
    local task = job.task(function()
      local ok, text = pcall(job.yield, math.huge)
      caught = not ok and text
      error(text, 0)
    end)
    task:cancel()
    assert.matches("cancelled", caught)
    assert.equal("ECANCELED", select(3, task:wait()))
  end)

  it("gives up a task that does not listen", function()
    local task = job.task(function()
      while true do pcall(job.yield) end
    end)
    task:cancel()
    assert.equal("ECANCELED", select(3, task:wait()))
  end)

  it("leaves what is over as it is", function()
    local task = job.task(function() return 7 end)
    task:cancel()
    assert.equal(7, task:wait())
  end)
end)

describe("job.is", function()
  it("knows jobs by what they can do", function()
    local function none() end
    assert.is_true(job.is(job.task(none)))
    assert.is_true(job.is { running = none, wait = none, cancel = none })
    assert.is_false(job.is { running = none, wait = none })
    assert.is_false(job.is("job"))
    assert.is_false(job.is(nil))
    local clock = ckpt.testing.clock()
    assert.is_true(job.is(ckpt.testing.transfers(clock):launch()))
    clock:restore()
    assert.is_true(job.is(job.command { "true" }))
  end)
end)

describe("a transfer", function()
  local dir
  support.with_directory(function(made) dir = made end)

  local function many(files, bytes)
    assert(fs.mkdirs(dir .. "/src"))
    for i = 1, files do assert(fs.write(dir .. "/src/" .. i, ("x"):rep(bytes))) end
  end

  it("goes on while the script does something else, and tells how far it is", function()
    many(20, 100000)
    local moving = assert(store.copy { from = dir .. "/src", to = dir .. "/to" })
    support.await("its end", function() return not moving:running() end)
    assert.same({ 2000000, 2000000 }, { moving:progress() })
    local result = moving:wait()
    assert.equal(20, result.files)
    assert.equal(2000000, result.bytes)
    assert.is_true(result.seconds >= 0 and result.seconds < 60)
    assert.equal(result, moving:wait())
  end)

  it("can be cancelled, and has stopped then", function()
    many(100, 10)
    local moving = assert(store.copy { from = dir .. "/src", to = dir .. "/to" })
    moving:cancel()
    local result, _, name = moving:wait()
    if not result then -- it may have been faster
      assert.equal("ECANCELED", name)
      assert.same({ "src" }, fs.list(dir))
    end
    moving:cancel()
  end)

  it("that nobody holds any more goes on", function()
    many(5, 1000)
    assert(store.copy { from = dir .. "/src", to = dir .. "/to" })
    collectgarbage()
    collectgarbage()
    local other = assert(store.copy { from = dir .. "/src", to = dir .. "/other" })
    other:wait()
    support.await("the copy", function() return fs.exists(dir .. "/to") end)
  end)

  it("really runs while a virtual clock stands still", function()
    many(20, 1000)
    local clock = ckpt.testing.clock(50)
    local moving = assert(store.copy { from = dir .. "/src", to = dir .. "/to" })
    local result, text = moving:wait(1)
    clock:restore()
    assert.equal(20, assert(result, text).files)
    assert.equal(50, clock.time)
  end)

  it("may be waited for by many tasks at once", function()
    many(50, 1000)
    local moving = assert(store.copy { from = dir .. "/src", to = dir .. "/to" })
    local tasks = {}
    for i = 1, 5 do tasks[i] = job.task(function() return moving:wait().files + i end) end
    for i = 5, 1, -1 do assert.equal(50 + i, tasks[i]:wait()) end
  end)

  it("many at once all end", function()
    many(3, 1000)
    local moving = {}
    for i = 1, 40 do
      moving[i] = assert(store.copy { from = dir .. "/src", to = dir .. "/to" .. i })
    end
    for i = 40, 1, -1 do assert.equal(3, assert(moving[i]:wait()).files) end
  end)

  it("that fails tells why, each time", function()
    local moving = assert(store.copy { from = dir .. "/none", to = dir .. "/to" })
    for _ = 1, 2 do
      local result, text, name = moving:wait()
      assert.is_nil(result)
      assert.equal("ENOENT", name)
      assert.matches("/none", text, 1, true)
    end
  end)
end)
