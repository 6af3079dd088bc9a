-- ckpt.Syncer: the period, waiting with retries, the check of the upload directory.

local ckpt = require "ckpt"

describe("a syncer", function()
  local clock, calls, answer, restore_log, logged

  before_each(function()
    clock = ckpt.testing.clock(1000)
    calls, answer = {}, true
    logged, restore_log = ckpt.testing.capture_log()
  end)
  after_each(function()
    restore_log()
    clock:restore()
  end)

  local function syncer(more)
    local options = {
      sync_period = 60,
      sync_up = function(_, ...)
        calls[#calls + 1] = { "up", ... }
        if type(answer) == "function" then return answer() end
        return answer
      end,
      sync_down = function(_, ...)
        calls[#calls + 1] = { "down", ... }
        if type(answer) == "function" then return answer() end
        return answer
      end,
      delete = function(_, ...)
        calls[#calls + 1] = { "delete", ... }
        return answer
      end,
    }
    for name, value in pairs(more or {}) do options[name] = value end
    return ckpt.Syncer(options)
  end

  local function up(s) return s:sync_up_if_needed("/l", "mem://u", { "*.tmp" }) end
  local function down(s) return s:sync_down_if_needed("mem://u", "/l", { "*.tmp" }) end

  it("[137, 300] has a period of 300 s and a timeout of 1800 s", function()
    local s = ckpt.Syncer {
      sync_up = function() end, sync_down = function() end, delete = function() end,
    }
    assert.equal(300, s.sync_period)
    assert.equal(1800, s.sync_timeout)
    assert.equal(60, syncer().sync_period)
  end)

  it("[161] must bring sync_up, sync_down and delete", function()
    for _, missing in ipairs { "sync_up", "sync_down", "delete" } do
      assert.error_matches(function() syncer { [missing] = false } end,
        "a syncer needs a function `" .. missing .. "`")
    end
    local Lazy = ckpt.Syncer:extend("Lazy")
    assert.error_matches(function() Lazy() end, "a syncer needs a function `sync_up`")
  end)

  it("[161] has nothing to retry and nothing to wait for unless it brings it", function()
    local s = syncer()
    assert.equal(0, select("#", s:retry()))
    assert.equal(0, select("#", s:wait()))
    local own = syncer { wait = function() return nil, "late", "ETIMEOUT" end }
    assert.same({ nil, "late", "ETIMEOUT" }, { own:wait() })
  end)

  it("[162] has never synced at first: the first call is due", function()
    local s = syncer { sync_period = 1e15 }
    assert.equal(-math.huge, s.last_sync_up_time)
    assert.equal(-math.huge, s.last_sync_down_time)
    assert.is_true(up(s))
    assert.is_true(down(s))
    assert.same({
      { "up", "/l", "mem://u", { "*.tmp" } }, { "down", "mem://u", "/l", { "*.tmp" } },
    }, calls)
  end)

  it("[163] is due again when exactly the period has passed", function()
    local s = syncer()
    up(s)
    clock:advance(59.5)
    up(s)
    assert.equal(1, #calls)
    clock:advance(0.5)
    assert.is_true(up(s))
    assert.equal(2, #calls)
  end)

  it("[164] answers nothing, not false, when it is not due", function()
    local s = syncer()
    up(s)
    down(s)
    assert.equal(0, select("#", up(s)))
    assert.equal(0, select("#", down(s)))
    assert.is_nil((up(s)))
  end)

  it("[165 G] counts the period from before the call, of a launch alone", function()
    local s = syncer()
    answer = function()
      clock:advance(10)
      return true
    end
    up(s)
    assert.equal(1000, s.last_sync_up_time)
    clock:advance(60)
    answer = false
    assert.is_false(up(s))
    assert.equal(1000, s.last_sync_up_time)
    answer = function() return nil, "no route", "EIO" end
    assert.same({ nil, "no route", "EIO" }, { up(s) })
    assert.equal(1000, s.last_sync_up_time)
    answer = true
    assert.is_true(up(s))
    assert.equal(1070, s.last_sync_up_time)
  end)

  it("[166] does not count a call that raised", function()
    local s = syncer()
    answer = function() error("broken", 0) end
    assert.has_error(function() up(s) end, "broken")
    assert.has_error(function() down(s) end, "broken")
    assert.equal(-math.huge, s.last_sync_up_time)
    assert.equal(-math.huge, s.last_sync_down_time)
    answer = true
    assert.is_true(up(s))
  end)

  it("[167] has a period of its own for each direction", function()
    local s = syncer()
    up(s)
    clock:advance(30)
    assert.is_true(down(s))
    assert.equal(1000, s.last_sync_up_time)
    assert.equal(1030, s.last_sync_down_time)
    clock:advance(30)
    assert.is_true(up(s))
    assert.is_nil(down(s))
  end)

  it("[167] does not count plain calls", function()
    local s = syncer()
    s:sync_up("/l", "mem://u")
    s:sync_down("mem://u", "/l")
    assert.equal(-math.huge, s.last_sync_up_time)
    assert.equal(-math.huge, s.last_sync_down_time)
  end)

  -- A syncer whose waits fail as listed.
  local function failing(failures)
    local waits, retries = 0, 0
    local s = syncer {
      wait = function()
        waits = waits + 1
        local failure = failures[waits]
        if failure then return nil, failure[1], failure[2] end
        return true
      end,
      retry = function() retries = retries + 1 end,
    }
    return s, function() return waits, retries end
  end

  it("[168] tries three times, 5 s apart", function()
    local s, counts = failing { { "a", "EIO" }, { "b", "EIO" }, { "c", "EIO" }, { "d", "EIO" } }
    assert.is_nil((s:wait_or_retry()))
    assert.equal(3, (counts()))
    assert.same({ 5, 5 }, clock.slept)
  end)

  it("[168] wants at least one try", function()
    assert.error_matches(function() syncer():wait_or_retry(0) end,
      "max_retries must be at least 1, not 0")
    assert.error_matches(function() syncer():wait_or_retry(-1) end, "at least 1")
  end)

  it("[169] says what failed, sleeps, launches again and waits", function()
    local s, counts = failing { { "a", "EIO" }, { "b", "EHELD" } }
    assert.is_true(s:wait_or_retry(3, 7))
    assert.same({ 3, 2 }, { counts() })
    assert.same({ 7, 7 }, clock.slept)
    assert.same({
      { level = "error",
        text = "Caught sync error: a. Retrying after sleeping for 7 seconds..." },
      { level = "error",
        text = "Caught sync error: b. Retrying after sleeping for 7 seconds..." },
    }, logged)
  end)

  it("[169] takes a wait that raises, or answers false, for one that failed", function()
    local raised = { "network is down", { code = 7 },
      setmetatable({}, { __tostring = function() error "no text" end }) }
    local waits, retries = 0, 0
    local s = syncer {
      wait = function()
        waits = waits + 1
        if raised[waits] then error(raised[waits], 0) end
        if waits == 4 then return false end
        return true
      end,
      retry = function() retries = retries + 1 end,
    }
    assert.is_true(s:wait_or_retry(5, 7))
    assert.same({ 5, 4 }, { waits, retries })
    assert.same({ 7, 7, 7, 7 }, clock.slept)
    assert.equal("Caught sync error: network is down. Retrying after sleeping for 7 seconds...",
      logged[1].text)
    assert.same({ "error", "error", "error", "error" },
      { logged[1].level, logged[2].level, logged[3].level, logged[4].level })
    waits = 0
    local done, text, name = s:wait_or_retry(1)
    assert.same({ nil, "Failed sync even after 1 retries: network is down", "EINTERNAL" },
      { done, text, name })
  end)

  it("[169] lets a task end that was cancelled while it waited", function()
    local waits = 0
    local s = syncer { wait = function()
      waits = waits + 1
      ckpt.job.yield(math.huge)
    end }
    local task = ckpt.job.task(function() return s:wait_or_retry(3, 0) end)
    task:cancel()
    assert.same({ nil, "cancelled", "ECANCELED" }, { task:wait() })
    assert.equal(1, waits)
  end)

  it("[169] returns at once when all is well", function()
    local s, counts = failing {}
    assert.is_true(s:wait_or_retry())
    assert.same({ 1, 0 }, { counts() })
    assert.same({}, clock.slept)
    assert.is_true(syncer():wait_or_retry())
  end)

  it("[170 G] neither sleeps nor launches after the last try", function()
    local s, counts = failing { { "a", "EIO" }, { "b", "EIO" }, { "c", "EHELD" } }
    local _, text, name = s:wait_or_retry(2, 5)
    assert.equal("Failed sync even after 2 retries: b", text)
    assert.equal("EIO", name)
    assert.same({ 2, 1 }, { counts() })
    assert.same({ 5 }, clock.slept)
  end)

  it("[170 G] does not try again what no retry can mend", function()
    for _, cause in ipairs { "ENOSTORE", "EACCESS", "EUNSUPPORTED", "EINVAL" } do
      local s, counts = failing { { "no such bucket", cause } }
      local _, text, name = s:wait_or_retry(3, 5)
      assert.matches("no such bucket", text)
      assert.equal(cause, name)
      assert.same({ 1, 0 }, { counts() })
    end
    assert.same({}, clock.slept)
  end)

  it("[169] tries again where room may be made meanwhile", function()
    local s, counts = failing { { "no space", "ENOSPACE" } }
    assert.is_true(s:wait_or_retry(3, 5))
    assert.same({ 2, 1 }, { counts() })
  end)

  it("[171] retries what timed out as what failed", function()
    local s, counts = failing { { "too slow", "ETIMEOUT" }, { "too slow", "ETIMEOUT" } }
    assert.is_true(s:wait_or_retry(3, 1))
    assert.same({ 3, 2 }, { counts() })
  end)

  it("[172] forgets both times with reset; close changes nothing", function()
    local s = syncer()
    up(s)
    down(s)
    s:close()
    assert.equal(1000, s.last_sync_up_time)
    s:reset()
    assert.equal(-math.huge, s.last_sync_up_time)
    assert.equal(-math.huge, s.last_sync_down_time)
    assert.is_true(up(s))
    assert.equal(3, #calls)
  end)

  it("[181] goes on in another process with what state() gave", function()
    local s = syncer { sync_timeout = 5 }
    up(s)
    clock:advance(20)
    local state = s:state()
    local other = syncer()
    other:restore(state)
    assert.equal(5, other.sync_timeout)
    assert.equal(1000, other.last_sync_up_time)
    assert.equal(-math.huge, other.last_sync_down_time)
    assert.is_nil((up(other)))
    assert.error_matches(function() other:restore("x") end, "the table that state%(%) gave")
  end)

  it("[146] may write nowhere, to file:// and to a store that is known", function()
    local s = syncer()
    for _, place in ipairs { "", "file:///a", "mem://x", "s3://bucket/run" } do
      assert.is_true(s:validate_upload_dir(place))
    end
    assert.is_true(s:validate_upload_dir(nil))
    for _, place in ipairs { "/x", "relative", "weird://x", "s3//x" } do
      assert.error_matches(function() s:validate_upload_dir(place) end,
        "no storage is known for the upload directory `" .. place .. "`")
    end
  end)

  it("[147, 149, 150 G] says true for a good place, without looking at it", function()
    -- This bucket is on no network, and asking twice asks twice.
    local endpoint = "s3://no-such-bucket/x"
    assert.is_true(ckpt.Syncer:validate_upload_dir(endpoint))
    local resolve, asked = ckpt.store.resolve, 0
    ckpt.store.resolve = function(uri)
      asked = asked + 1
      return resolve(uri)
    end
    ckpt.Syncer:validate_upload_dir(endpoint)
    ckpt.Syncer:validate_upload_dir(endpoint)
    ckpt.store.resolve = resolve
    assert.equal(2, asked)
    assert.equal(1000, clock.time)
  end)

  it("is made around a syncer of another class", function()
    local plain = { seen = {} }
    function plain:sync_up(local_dir) self.seen[#self.seen + 1] = local_dir return true end
    function plain:sync_down() return false, self end
    function plain:delete() return self ~= nil end
    local s = ckpt.Syncer.of(plain)
    assert.is_true(up(s))
    assert.is_nil((up(s)))
    assert.same({ "/l" }, plain.seen)
    assert.equal(s, ckpt.Syncer.of(s))
    assert.is_true(s:wait_or_retry())
    assert.error_matches(function() ckpt.Syncer.of {} end, "a syncer is a table with sync_up")
    assert.is_false(ckpt.Syncer.is("auto"))
  end)
end)
