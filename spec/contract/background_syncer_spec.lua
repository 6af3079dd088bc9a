-- ckpt.BackgroundSyncer: transfers beside the script, one at a time.

local ckpt = require "ckpt"

describe("a background syncer", function()
  local clock, transfers, logged, restore_log

  before_each(function()
    clock = ckpt.testing.clock(1000)
    transfers = ckpt.testing.transfers(clock)
    logged, restore_log = ckpt.testing.capture_log()
  end)
  after_each(function()
    restore_log()
    clock:restore()
  end)

  local function syncer(options, plan)
    local Scripted = ckpt.BackgroundSyncer:extend("Scripted")
    function Scripted.sync_up_command(_, ...) return transfers:launch { "up", ... } end
    function Scripted.sync_down_command(_, ...) return transfers:launch { "down", ... } end
    function Scripted.delete_command(_, ...) return transfers:launch { "delete", ... } end
    transfers:plan(plan)
    return Scripted(options)
  end

  local function launched()
    local list = {}
    for i, one in ipairs(transfers.launched) do list[i] = table.concat(one.label, " ", 1, 2) end
    return list
  end

  local function texts()
    local list = {}
    for i, line in ipairs(logged) do list[i] = line.text end
    return list
  end

  it("[137, 300] has the base's numbers", function()
    local s = syncer()
    assert.same({ 300, 1800 }, { s.sync_period, s.sync_timeout })
    assert.equal("newest", s.queue)
    assert.error_matches(function() syncer { queue = "all" } end, 'queue is "newest" or "skip"')
    assert.error_matches(function() syncer { sync_timeout = -1 } end,
      "sync_timeout is a number of seconds")
  end)

  it("[161] says at the call which command its class does not bring", function()
    local Half = ckpt.BackgroundSyncer:extend("Half")
    function Half.sync_up_command() return transfers:launch() end
    local s = Half()
    assert.is_true(s:sync_up("/l", "u"))
    assert.error_matches(function() s:delete("u") end, "no function `delete_command`")
    assert.error_matches(function() s:sync_down("u", "/l") end, "no function `sync_down_command`")
  end)

  it("[173, 176] counts a transfer as running until its timeout, not a moment longer", function()
    local s = syncer({ sync_timeout = 10, queue = "skip" }, { { "ok", 100 }, { "ok", 100 } })
    s:sync_up("/l", "u")
    clock:advance(9.5)
    assert.is_false(s:sync_up("/l", "u"))
    clock:advance(0.5)
    assert.is_true(s:sync_up("/l", "u"))
    assert.equal(2, #transfers.launched)
    assert.equal(1010, clock.time)
  end)

  it("[159, 176 G] stops a transfer that timed out before the next begins", function()
    local s = syncer({ sync_timeout = 10 }, { { "ok", 100 }, { "ok", 1 } })
    s:sync_up("/l", "u")
    local first = transfers.launched[1].job
    clock:advance(10)
    assert.is_true(first:running())
    local running_before
    s.sync_up_command = function(_, ...)
      running_before = first:running()
      return transfers:launch { "up", ... }
    end
    assert.is_true(s:sync_up("/l", "u"))
    assert.is_false(running_before)
    assert.is_true(first.cancelled)
    assert.same({ "Last sync command failed: sync up of /l to u did not finish running within "
      .. "the timeout of 10 seconds" }, texts())
  end)

  it("[177] a command that forgets to return its job has not synced anything", function()
    local s = ckpt.BackgroundSyncer { sync_up_command = function() end }
    assert.is_true(s:sync_up("/l", "u"))
    local done, text, name = s:wait()
    assert.is_nil(done)
    assert.truthy(text:find("sync_up_command returned nothing", 1, true))
    assert.equal("EINVAL", name)
  end)

  it("[174] refuses a request while a transfer runs, and says what it skips", function()
    local s = syncer({ queue = "skip" }, { { "ok", 100 } })
    s:sync_up("/l", "u")
    clock:advance(5)
    assert.is_false(s:sync_up("/a", "v"))
    assert.is_false(s:sync_down("v", "/a"))
    assert.is_false(s:delete("v"))
    assert.same({
      "Last sync still in progress, skipping sync up of /a to v",
      "Last sync still in progress, skipping sync down of v to /a",
      "Last sync still in progress, skipping deletion of v",
    }, texts())
    assert.equal("warning", logged[1].level)
    assert.is_true(s:wait())
    assert.same({ "up /l" }, launched())
  end)

  it("[174 G] remembers a refused request: it runs when the slot is free", function()
    local s = syncer({}, { { "ok", 100 }, { "ok", 50 } })
    s:sync_up("/l", "u")
    clock:advance(5)
    assert.is_false(s:sync_up("/a", "v", { "*.tmp" }))
    assert.same({ "Last sync still in progress, sync up of /a to v has to wait" }, texts())
    assert.is_true(s:wait())
    assert.equal(1150, clock.time)
    assert.same({ "up", "/a", "v", { "*.tmp" } }, transfers.launched[2].label)
    assert.is_nil((s:wait()))
  end)

  it("[174 G] lets the newest request run, and says which one will not", function()
    local s = syncer({}, { { "ok", 100 } })
    s:sync_up("/l", "u")
    s:sync_up("/a", "v")
    s:sync_up("/a", "v")
    s:sync_up("/b", "w")
    s:wait()
    assert.same({ "up /l", "up /b" }, launched())
    assert.equal("sync up of /a to v will not run: a newer request took its place", texts()[4])
    assert.equal(4, #logged)
  end)

  it("[174 G] starts what waits at the next call, whichever it is", function()
    local s = syncer({}, { { "fail", 100, "cut off" }, { "ok", 50 }, { "ok", 1 } })
    s:sync_up("/l", "u")
    s:sync_up("/a", "v")
    clock:advance(99)
    assert.is_true(s:is_running())
    assert.same({ "up /l" }, launched())
    clock:advance(1)
    assert.is_true(s:is_running())
    assert.same({ "up /l", "up /a" }, launched())
    assert.equal("Last sync command failed: Sync process failed: cut off", texts()[2])
    assert.is_false(s:sync_up("/b", "w"))
    clock:advance(50)
    assert.is_true(s:is_running())
    assert.same({ "up /l", "up /a", "up /b" }, launched())
  end)

  it("[174] forgets a refused download or deletion: run later, it would do harm", function()
    local s = syncer({ sync_period = 60 }, { { "ok", 100 }, { "ok", 50 } })
    s:sync_up("/l", "u")
    s:sync_up("/a", "v")
    assert.is_false(s:sync_down("v", "/a"))
    assert.is_false(s:sync_down_if_needed("v", "/a"))
    assert.is_false(s:delete("v"))
    assert.equal("Last sync still in progress, skipping sync down of v to /a", texts()[2])
    assert.equal("Last sync still in progress, skipping deletion of v", texts()[4])
    assert.is_true(s:wait())
    assert.same({ "up /l", "up /a" }, launched())
    assert.equal(-math.huge, s.last_sync_down_time)
  end)

  it("[174 G] tells a failure before what waits has run, which the next wait does", function()
    local s = syncer({}, { { "fail", 10, "cut off" }, { "ok", 50 } })
    s:sync_up("/l", "u")
    s:sync_up("/a", "v")
    local _, text = s:wait()
    assert.equal("Sync process failed: cut off", text)
    assert.same({ "up /l" }, launched())
    assert.is_true(s:wait())
    assert.same({ "up /l", "up /a" }, launched())
  end)

  it("[165 G] counts a remembered request of the period from its launch", function()
    local s = syncer({ sync_period = 60 }, { { "ok", 100 }, { "ok", 1 } })
    s:sync_up("/l", "u")
    clock:advance(10)
    assert.is_false(s:sync_up_if_needed("/a", "v"))
    assert.equal(-math.huge, s.last_sync_up_time)
    clock:advance(100)
    s:wait()
    assert.same({ "up /l", "up /a" }, launched())
    assert.equal(1110, s.last_sync_up_time)
    assert.is_nil((s:sync_up_if_needed("/a", "v")))
  end)

  it("[175] waits for an old transfer, warns of its failure, and starts", function()
    local s = syncer({}, { { "fail", 3, "cut off" }, { "ok", 5 } })
    s:sync_up("/l", "u")
    clock:advance(10)
    assert.is_true(s:sync_down("u", "/l"))
    assert.same({ "Last sync command failed: Sync process failed: cut off" }, texts())
    assert.equal("warning", logged[1].level)
    assert.same({ "up /l", "down u" }, launched())
    assert.is_true(s:wait())
  end)

  it("[177] has one slot for all three kinds", function()
    local ways = {
      function(s) return s:sync_up("/l", "u") end,
      function(s) return s:sync_down("u", "/l") end,
      function(s) return s:delete("u") end,
    }
    for _, first in ipairs(ways) do
      for _, second in ipairs(ways) do
        local s = syncer({ queue = "skip" }, { { "ok", 10 } })
        assert.is_true(first(s))
        assert.is_false(second(s))
        clock:advance(10)
        assert.is_true(second(s))
        s:wait()
      end
    end
  end)

  it("[177] has its slot taken while another task waits for it", function()
    local s = syncer { queue = "skip" }
    s.sync_up_command = function() return ckpt.job.task(function() ckpt.job.yield(10) end) end
    s:sync_up("/l", "u")
    local waiting = ckpt.job.task(function() return s:wait() end)
    clock:advance(5)
    assert.is_false(s:delete("u"))
    assert.is_true(waiting:wait())
    assert.is_true(s:delete("u"))
  end)

  it("[178 G] hands the exclude list of a download on", function()
    local s = syncer()
    s:sync_down("u", "/l", { "./rank_*", "*.tmp" })
    assert.same({ "down", "u", "/l", { "./rank_*", "*.tmp" } }, transfers.launched[1].label)
    s:sync_down_if_needed("u", "/l", { "x" })
    assert.same({ "down", "u", "/l", { "x" } }, transfers.launched[2].label)
  end)

  it("[179] has nothing to wait for when nothing was launched", function()
    assert.equal(nil, (syncer():wait()))
  end)

  it("[179] passes a timeout on as it is, and puts every other failure in words", function()
    local s = syncer({ sync_timeout = 10 },
      { { "ok", 100 }, { "fail", 1, "no such key", "ENOENT" }, { "ok", 1 } })
    s:sync_up("/l", "u")
    local result, text, name = s:wait()
    assert.is_nil(result)
    assert.equal("sync up of /l to u did not finish running within the timeout of 10 seconds", text)
    assert.equal("ETIMEOUT", name)
    s:sync_down("u", "/l")
    assert.same({ nil, "Sync process failed: no such key", "ENOENT" }, { s:wait() })
    s:delete("u")
    assert.is_true(s:wait())
    assert.equal(nil, (s:wait()))
  end)

  it("[179] empties the slot whatever the outcome", function()
    for _, plan in ipairs { { "ok", 5 }, { "fail", 5 }, { "ok", 500 } } do
      local s = syncer({ sync_timeout = 10, queue = "skip" }, { plan })
      s:sync_up("/l", "u")
      s:wait()
      assert.is_nil(s:state().waiting)
      assert.is_false(s:is_running())
      assert.is_nil((s:wait()))
      assert.is_true(s:sync_up("/l", "u"))
    end
    assert.same({}, texts())
  end)

  it("[180] launches the last command again, whichever it was", function()
    local s = syncer({}, { { "ok", 1 }, { "fail", 1 }, { "ok", 1 } })
    s:sync_up("/l", "u")
    s:wait()
    s:delete("v")
    assert.is_nil((s:wait()))
    assert.is_true(s:retry())
    assert.is_true(s:wait())
    assert.same({ "up /l", "delete v", "delete v" }, launched())
  end)

  it("[180] cannot retry when there was no command", function()
    assert.same({ nil, "No sync command set, cannot retry.", "EINVAL" }, { syncer():retry() })
  end)

  it("[180 G] waits for a running transfer before it launches it again", function()
    local s = syncer({}, { { "fail", 100, "cut off" }, { "ok", 5 } })
    s:sync_up("/l", "u")
    clock:advance(1)
    assert.is_true(s:retry())
    assert.equal(1100, clock.time)
    assert.equal(1100, transfers.launched[2].time)
    assert.same({ "Last sync command failed: Sync process failed: cut off" }, texts())
    assert.is_true(s:wait())
  end)

  it("[172] goes on with its transfer through reset and close", function()
    local s = syncer({}, { { "ok", 100 } })
    s:sync_up_if_needed("/l", "u")
    s:reset()
    s:close()
    assert.equal(-math.huge, s.last_sync_up_time)
    assert.is_true(s:is_running())
    assert.is_false(transfers.launched[1].job.cancelled)
  end)

  it("[181] is saved without its transfer, with its command, its clocks and what waits", function()
    local s = syncer({ sync_period = 60, sync_timeout = 70 }, { { "ok", 100 }, { "ok", 1 } })
    s:sync_up_if_needed("/l", "u", { "*.tmp" })
    clock:advance(10)
    s:sync_up("/a", "v")
    local text = require "ckpt.base.json".encode(s:state())
    local other = syncer({ sync_period = 1 })
    other:restore(require "ckpt.base.json".decode(text))
    assert.is_false(transfers.launched[1].job.cancelled)
    assert.equal(1000, other.last_sync_up_time)
    assert.equal(-math.huge, other.last_sync_down_time)
    assert.same({ 60, 70 }, { other.sync_period, other.sync_timeout })
    assert.is_nil((other:sync_up_if_needed("/l", "u")))
    assert.is_true(other:retry())
    assert.same({ "up", "/l", "u", { "*.tmp" } }, transfers.launched[2].label)
    assert.is_true(other:wait())
    assert.same({ "up /l", "up /l", "up /a" }, launched())
  end)

  it("[181] has nothing running after it was restored", function()
    local s = syncer({}, { { "ok", 100 } })
    s:sync_up("/l", "u")
    local other = syncer()
    other:restore(s:state())
    assert.is_false(other:is_running())
    assert.is_nil((other:wait()))
  end)

  it("takes texts, and patterns in a list", function()
    local s = syncer()
    assert.error_matches(function() s:sync_up({}, "u") end, "a directory is a text, not a table")
    assert.error_matches(function() s:sync_up("/l", nil) end, "a text, not a nil")
    assert.error_matches(function() s:sync_up("/l", "u", "*.tmp") end, "exclude must be a list")
    assert.error_matches(function() s:sync_down("u", "/l", { 7 }) end, "exclude must be a list")
    assert.equal(0, #transfers.launched)
  end)

  it("tells of a mistake where it was made, however deep it is seen", function()
    local s = syncer()
    for _, mistake in ipairs {
      function() s:sync_up("/l", 7) end,
      function() s:sync_up_if_needed("/l", 7) end,
      function() syncer { queue = 1 } end,
      function() ckpt.DefaultSyncer { sync_period = "1" } end,
      function() ckpt.DefaultSyncer(ckpt.DefaultSyncer()) end,
    } do
      local _, text = pcall(mistake)
      assert.matches("^spec/contract/background_syncer_spec.lua:%d+: ", text)
    end
  end)
end)
