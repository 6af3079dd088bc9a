local clock = require "ckpt.base.clock"
local core = require "ckpt.core"

describe("clock", function()
  after_each(function() clock.use(nil) end)

  it("tells the time of day and one that does not go back", function()
    assert.is_true(math.abs(clock.now() - os.time()) < 5)
    local before = clock.monotonic()
    for _ = 1, 1000 do
      local now = clock.monotonic()
      assert.is_true(now >= before)
      before = now
    end
  end)

  it("sleeps at least as long as told, and not for 0 or less", function()
    local before = clock.monotonic()
    clock.sleep(0.02)
    assert.is_true(clock.monotonic() - before >= 0.02)
    before = clock.monotonic()
    clock.sleep(0)
    clock.sleep(-1e9)
    clock.sleep(-math.huge)
    assert.is_true(clock.monotonic() - before < 5)
  end)

  it("wants a number", function()
    local fine, text = pcall(clock.sleep, "1")
    assert.is_false(fine)
    assert.is_truthy(text:find("`seconds` is a string", 1, true))
    assert.error_matches(function() clock.sleep(0 / 0) end, "is nan")
  end)

  it("lets a test put its own in place, and gives back the one before", function()
    local slept
    local mine = {
      now = function() return 7 end,
      monotonic = function() return 8 end,
      sleep = function(s) slept = s end,
    }
    assert.are.equal(core.clock, clock.use(mine))
    assert.are.equal(7, clock.now())
    assert.are.equal(8, clock.monotonic())
    clock.sleep(1e9)
    assert.are.equal(1e9, slept)
    assert.are.equal(mine, clock.use(nil))
    assert.is_true(clock.now() > 1e9)
  end)
end)
