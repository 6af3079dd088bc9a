-- ckpt.BackgroundProcess: one piece of work at a time.

local ckpt = require "ckpt"

describe("a background process", function()
  local clock, transfers

  before_each(function()
    clock = ckpt.testing.clock(1000)
    transfers = ckpt.testing.transfers(clock)
  end)
  after_each(function() clock:restore() end)

  local function process(plan)
    transfers:plan(plan)
    return ckpt.BackgroundProcess(function(label) return transfers:launch(label) end, "copy")
  end

  it("[153] runs one thing at a time: a start while it runs is refused", function()
    local p = process { { "ok", 10, "first" }, { "ok", 10, "second" } }
    assert.is_true(p:start("a"))
    clock:advance(4)
    assert.is_true(p:is_running())
    assert.is_false(p:start("b"))
    assert.equal(1, #transfers.launched)
    assert.equal(1000, p:start_time())
    assert.equal("first", p:wait())
    assert.is_true(p:start("c"))
    assert.equal("c", transfers.launched[2].label)
    assert.equal("second", p:wait())
  end)

  it("[154] was started at minus infinity before any start", function()
    assert.equal(-math.huge, process():start_time())
    assert.is_false(process():is_running())
  end)

  it("[154] records the time of the start after the work has begun", function()
    local p = ckpt.BackgroundProcess(function()
      clock:advance(7)
      return transfers:launch()
    end)
    p:start()
    assert.equal(1007, p:start_time())
  end)

  it("[154] forgets at a start the result that nobody waited for", function()
    local p = process { { "fail", 1, "lost" }, { "ok", 5, "kept" } }
    p:start()
    clock:advance(2)
    assert.is_true(p:start())
    assert.same({ "kept" }, { p:wait() })
  end)

  it("[155] returns the result of its work once", function()
    local p = ckpt.BackgroundProcess(function(a, b) return a + b, nil, "three" end)
    p:start(1, 2)
    assert.is_false(p:is_running())
    assert.is_true(p:exists())
    local count = select("#", p:wait())
    assert.equal(3, count)
    assert.is_false(p:exists())
    p:start(3, 4)
    assert.same({ 7, nil, "three" }, { p:wait() })
    assert.same({}, { p:wait() })
  end)

  it("[155] keeps a failure for the next wait, whether returned, raised, or a job's", function()
    local p = ckpt.BackgroundProcess(function() return nil, "no space", "ENOSPACE" end)
    p:start()
    assert.same({ nil, "no space", "ENOSPACE" }, { p:wait() })
    p = ckpt.BackgroundProcess(function() error("broken", 0) end)
    p:start()
    assert.same({ nil, "broken", "EINTERNAL" }, { p:wait() })
    p = process { { "fail", 3, "cut off", "EIO" } }
    p:start()
    assert.same({ nil, "cut off", "EIO" }, { p:wait() })
    assert.same({}, { p:wait() })
  end)

  it("[156] has nothing to wait for before a start", function()
    assert.equal(0, select("#", process():wait()))
    assert.equal(0, select("#", process():wait(5)))
  end)

  it("[157] counts the timeout from the start of the work, not of the wait", function()
    local p = process { { "ok", 100 } }
    p:start()
    clock:advance(6)
    local _, _, name = p:wait(10)
    assert.equal("ETIMEOUT", name)
    assert.equal(1010, clock.time)
  end)

  it("[157] never waits less than nothing: what is over by then is a success", function()
    local p = process { { "ok", 5, "done" }, { "ok", 100 } }
    p:start()
    clock:advance(50)
    assert.equal("done", p:wait(10))
    p:start()
    clock:advance(50)
    assert.equal("ETIMEOUT", select(3, p:wait(10)))
    assert.equal(1100, clock.time)
  end)

  it("[158] waits without limit for a timeout of 0 or none", function()
    for _, timeout in ipairs { 0, false } do
      local p = process { { "ok", 5000, "done" } }
      p:start()
      assert.equal("done", p:wait(timeout or nil))
    end
    assert.equal(11000, clock.time)
  end)

  it("[159 G] stops what timed out before it says so, with its name and the seconds", function()
    local p = process { { "ok", 100 }, { "ok", 1, "next" } }
    p:start()
    local result, text, name = p:wait(0.5)
    assert.is_nil(result)
    assert.equal("copy did not finish running within the timeout of 0.5 seconds", text)
    assert.equal("ETIMEOUT", name)
    assert.is_true(transfers.launched[1].job.cancelled)
    assert.is_false(p:exists())
    assert.is_true(p:start())
    assert.equal("next", p:wait())
  end)

  it("[159 G] tells a timeout of the work itself from its own", function()
    local p = process { { "fail", 3, "the server did not answer", "ETIMEOUT" } }
    p:start()
    assert.same({ nil, "the server did not answer", "ETIMEOUT" }, { p:wait(10) })
    assert.is_false(transfers.launched[1].job.cancelled)
  end)

  it("[155] returns the result of work that ends as soon as its time is over", function()
    local over, cancelled = false, false
    local work = {
      running = function()
        over = true
        return false
      end,
      wait = function()
        if over then return "done" end
        return nil, "it goes on", "ETIMEOUT"
      end,
      cancel = function() cancelled = true end,
    }
    local p = ckpt.BackgroundProcess(function() return work end, "copy")
    p:start()
    assert.same({ "done" }, { p:wait(10) })
    assert.is_false(cancelled)
  end)

  it("[160] is empty after a wait, whatever its outcome", function()
    local p = process { { "ok", 1 }, { "fail", 1 }, { "ok", 100 } }
    for _ = 1, 3 do
      p:start()
      p:wait(10)
      assert.is_false(p:exists())
      assert.is_false(p:is_running())
      assert.equal(0, select("#", p:wait(10)))
    end
  end)

  it("[153] keeps work that another task has started while one waited", function()
    local seconds = { 5, 7 }
    local p = ckpt.BackgroundProcess(function()
      return ckpt.job.task(function()
        local s = table.remove(seconds, 1)
        ckpt.job.yield(s)
        return s
      end)
    end)
    p:start()
    local other = ckpt.job.task(function()
      ckpt.job.yield(5)
      return p:start()
    end)
    assert.equal(5, ckpt.job.task(function() return p:wait() end):wait())
    assert.is_true(other:wait())
    assert.is_true(p:is_running())
    assert.equal(7, p:wait())
  end)

  it("can be stopped, and forgets its work then", function()
    local p = process { { "ok", 100 } }
    p:start()
    p:stop()
    assert.is_true(transfers.launched[1].job.cancelled)
    assert.equal(0, select("#", p:wait()))
  end)

  it("takes a function, nothing else", function()
    assert.has_error(function() ckpt.BackgroundProcess("cp -r a b") end,
      "BackgroundProcess: the work must be a function, not a string")
  end)
end)
