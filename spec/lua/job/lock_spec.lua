local support = require "support"
local ckpt = require "ckpt"
local fs, lock = ckpt.fs, ckpt.lock

describe("lock.take", function()
  local dir, path

  support.with_directory(function(made)
    dir = made
    path = dir .. "/lock"
  end)

  it("gives a file to one holder, also within one process", function()
    local mine = assert(lock.take(path))
    assert.are.equal(path, mine:path())
    assert.is_true(mine:held())
    local other, text, name = lock.take(path)
    assert.is_nil(other)
    assert.are.equal("EHELD", name)
    assert.is_truthy(text:find(path, 1, true))
    assert.are.equal("EHELD", select(3, lock.take(path, { shared = true })))
    mine:release()
    mine:release()
    assert.is_false(mine:held())
    assert(lock.take(path)):release()
  end)

  it("gives it to all who share it", function()
    local a = assert(lock.take(path, { shared = true }))
    local b = assert(lock.take(path, { shared = true }))
    assert.are.equal("EHELD", select(3, lock.take(path)))
    a:release()
    assert.are.equal("EHELD", select(3, lock.take(path)))
    b:release()
    assert(lock.take(path)):release()
  end)

  it("waits by the clock of the library, and no longer than told", function()
    local mine = assert(lock.take(path))
    local time = ckpt.testing.clock(0)
    local other, text, name = lock.take(path, { timeout = 3600 })
    local waited = time.time
    time:restore()
    assert.is_nil(other)
    assert.are.equal("ETIMEOUT", name)
    assert.is_truthy(text:find("3600 s", 1, true))
    assert.is_true(waited >= 3600 and waited < 3601)
    mine:release()
  end)

  it("comes back as soon as the holder has let go", function()
    local mine = assert(lock.take(path))
    local time, naps = ckpt.testing.clock(0), 0
    local sleep = ckpt.clock.use(nil)
    ckpt.clock.use {
      now = sleep.now,
      monotonic = sleep.monotonic,
      sleep = function(seconds)
        naps = naps + 1
        if naps == 5 then mine:release() end
        sleep.sleep(seconds)
      end,
    }
    local other = lock.take(path, { timeout = math.huge })
    ckpt.clock.use(sleep)
    time:restore()
    assert.is_truthy(other)
    assert.are.equal(5, naps)
    other:release()
  end)

  it("lets the task that holds it go on while another one waits", function()
    local order = {}
    local first = ckpt.job.task(function()
      local held = assert(lock.take(path))
      ckpt.job.yield(0.01)
      order[#order + 1] = "first"
      held:release()
    end)
    local second = ckpt.job.task(function()
      local held = assert(lock.take(path, { timeout = 10 }))
      order[#order + 1] = "second"
      held:release()
      return true
    end)
    assert.is_true(second:wait(20))
    first:wait(20)
    assert.are.same({ "first", "second" }, order)
  end)

  it("is let go by the kernel when its holder is killed", function()
    local script = dir .. "/holder.lua"
    support.write(script, ([[
      local lock = require "ckpt".lock
      local held = assert(lock.take(%q))
      require "ckpt".fs.write(%q, "x")
      require "ckpt".clock.sleep(60)
      held:release()]]):format(path, dir .. "/taken"))
    local pid = support.sh(("'%s/libexec/ckpt-script' '%s' >/dev/null 2>&1 & echo $!"):format(
      support.build, script)):match("%d+")
    support.await("the holder", function() return fs.exists(dir .. "/taken") end)
    assert.are.equal("EHELD", select(3, lock.take(path)))
    os.execute("kill -9 " .. pid)
    assert(lock.take(path, { timeout = 10 })):release()
  end)

  it("keeps many processes apart", function()
    assert(fs.write(dir .. "/count", "0"))
    support.write(dir .. "/add.lua", ([[
      local ckpt = require "ckpt"
      local path, lock = %q, %q
      for _ = 1, 20 do
        local held = assert(ckpt.lock.take(lock, { timeout = 60 }))
        local file = assert(io.open(path))
        local count = file:read("*n")
        file:close()
        file = assert(io.open(path, "w"))
        file:write(count + 1)
        file:close()
        held:release()
      end]]):format(dir .. "/count", path))
    local one = ("'%s/libexec/ckpt-script' '%s' &\n"):format(support.build, dir .. "/add.lua")
    assert.are.equal("", (support.sh(one:rep(5) .. "wait")))
    assert.are.equal("100", fs.read(dir .. "/count"))
  end)

  it("is let go with its object", function()
    local held = lock.take(path)
    assert.is_truthy(held)
    held = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert(lock.take(path)):release()
  end)

  it("is not taken on a file that its last holder has removed meanwhile", function()
    local first = assert(lock.take(path))
    assert(fs.remove(path))
    local second = assert(lock.take(path)) -- another file of that name
    first:release()
    assert.are.equal("EHELD", select(3, lock.take(path)))
    second:release()
  end)

  it("refuses what is no lock file", function()
    assert.are.equal("ENOENT", select(3, lock.take(dir .. "/no/lock")))
    os.execute("mkfifo " .. dir .. "/fifo")
    assert.are.equal("EINVAL", select(3, lock.take(dir .. "/fifo")))
    assert(fs.symlink("lock", dir .. "/link"))
    assert.is_nil((lock.take(dir .. "/link")))
  end)

  it("raises for options that it does not know, in the caller's line", function()
    for _, wrong in ipairs {
      function() lock.take(path, { wait = 1 }) end,
      function() lock.take(path, { timeout = "1" }) end,
      function() lock.take(path, 5) end,
    } do
      local fine, text = pcall(wrong)
      assert.is_false(fine)
      assert.is_truthy(text:find("lock_spec.lua:", 1, true), text)
    end
    assert.has_error(function() lock.take("a\0b") end)
    assert.has_error(function() lock.take({ path = "x" }) end)
  end)
end)

describe("lock.lease", function()
  local store, time, number = nil, nil, 0

  before_each(function()
    number = number + 1
    store = assert(ckpt.store.open("mem://leases" .. number))
    time = ckpt.testing.clock(0)
  end)
  after_each(function()
    time:restore()
    store:close()
  end)

  local function take(options) return lock.lease(store, "job", options) end

  it("is held by one, and knows when its time is over", function()
    local mine = assert(take { seconds = 10, owner = "a" })
    assert.is_true(mine:valid())
    local other, text, name = take { owner = "b" }
    assert.is_nil(other)
    assert.are.equal("EHELD", name)
    assert.is_truthy(text:find("held by a;", 1, true))
    time:advance(9.9)
    assert.is_true(mine:valid())
    time:advance(0.1)
    assert.is_false(mine:valid())
  end)

  it("goes on from each renewal", function()
    local mine = assert(take { seconds = 10 })
    for _ = 1, 5 do
      time:advance(6)
      assert.is_true(mine:renew())
      assert.is_true(mine:valid())
    end
    time:advance(9)
    assert.is_true(mine:valid())
  end)

  it("is free at once when it was released", function()
    local mine = assert(take())
    assert.is_true(mine:release())
    assert.is_false(mine:valid())
    local other = assert(take())
    assert.is_true(other:valid())
    assert.is_true(mine:release()) -- once more: the other one's stays
    assert.is_true(other:renew())
  end)

  it("is taken over only after it was seen unchanged for its whole time", function()
    local mine = assert(take { seconds = 10, owner = "a" })
    time:advance(1000)
    assert.are.equal("EHELD", select(3, take { owner = "b" })) -- age alone proves nothing
    local begin = time.time
    local other = assert(take { owner = "b", timeout = 60 })
    local waited = time.time - begin
    assert.is_true(waited >= 10 and waited < 13, waited)
    assert.is_true(other:valid())
    local done, text, name = mine:renew()
    assert.is_nil(done)
    assert.are.equal("EFENCED", name)
    assert.is_truthy(text:find("lost to b", 1, true))
    assert.is_false(mine:valid())
  end)

  it("is not taken over while it is renewed", function()
    local mine = assert(take { seconds = 10 })
    local advance = time.advance
    time.advance = function(self, seconds)
      advance(self, seconds)
      assert(mine:renew())
    end
    local other, _, name = take { timeout = 100 }
    time.advance = nil
    assert.is_nil(other)
    assert.are.equal("ETIMEOUT", name)
    assert.is_true(mine:valid())
  end)

  it("has one winner when many see it free at once", function()
    assert(take { seconds = 1 })
    local winners = 0
    local tasks = {}
    for i = 1, 8 do
      tasks[i] = ckpt.job.task(function()
        local mine = take { seconds = 100, timeout = 20, owner = "t" .. i }
        if mine and mine:valid() then winners = winners + 1 end
      end)
    end
    for _, task in ipairs(tasks) do task:wait() end
    assert.are.equal(1, winners)
  end)

  it("is one's own when only the answer was lost", function()
    local lossy, lost = {}, false
    for _, method in ipairs { "get_tagged", "put_if_absent", "replace_if" } do
      lossy[method] = function(_, ...)
        local a, b, c = store[method](store, ...)
        if method ~= "get_tagged" and not lost then
          lost = true
          return nil, "the line is cut", "EIO"
        end
        return a, b, c
      end
    end
    local mine, text, name = lock.lease(lossy, "job")
    assert.is_nil(mine)
    assert.are.equal("EIO", name)
    assert.are.equal("the line is cut", text)
    -- A renewal that failed so may be tried again.
    local other = assert(lock.lease(lossy, "second", { seconds = 10 }))
    time:advance(5)
    lost = false
    assert.are.equal("EIO", select(3, other:renew()))
    assert.is_true(other:valid())
    assert.is_true(other:renew())
    time:advance(9)
    assert.is_true(other:valid())
  end)

  it("is one's own when the store has met its own first try", function()
    local twice = setmetatable({}, { __index = function(_, method)
      return function(_, ...)
        local a, b, c = store[method](store, ...)
        if a and method == "put_if_absent" then return nil, "it is there", "EEXISTS" end
        if a and method == "replace_if" then return nil, "it is another", "ECONFLICT" end
        return a, b, c
      end
    end })
    local mine = assert(lock.lease(twice, "job", { seconds = 10 }))
    assert.is_true(mine:valid())
    time:advance(5)
    assert.is_true(mine:renew())
    time:advance(9)
    assert.is_true(mine:valid())
  end)

  it("that is lost is not released for the one who has it", function()
    local mine = assert(take { seconds = 1 })
    local other = assert(take { seconds = 50, timeout = 10 })
    assert.is_false(mine:valid())
    assert.is_true(mine:release())
    assert.are.equal("EHELD", select(3, take()))
    assert.is_true(other:renew())
  end)

  it("of a holder that was killed is taken over by another process", function()
    local dir = support.directory()
    local script = dir .. "/holder.lua"
    support.write(script, ([[
      local ckpt = require "ckpt"
      local store = assert(ckpt.store.open(%q))
      local lease = assert(ckpt.lock.lease(store, "job", { seconds = 1, owner = "the first" }))
      while true do
        ckpt.clock.sleep(0.1)
        assert(lease:renew())
      end]]):format(dir .. "/store"))
    local pid = support.sh(("'%s/libexec/ckpt-script' '%s' >/dev/null 2>&1 & echo $!"):format(
      support.build, script)):match("%d+")
    local place = assert(ckpt.store.open(dir .. "/store"))
    support.await("the lease", function() return place:exists("job") end)
    time:restore()
    assert.are.equal("EHELD", select(3, lock.lease(place, "job")))
    os.execute("kill -9 " .. pid)
    local mine = assert(lock.lease(place, "job", { timeout = 20 }))
    assert.is_true(mine:valid())
    place:close()
    fs.remove_tree(dir)
  end)

  it("leaves alone what is no lease", function()
    assert(store:put("job", "ckpt-lease 1\nmine\n"))
    local mine, text, name = take()
    assert.is_nil(mine)
    assert.are.equal("EFORMAT", name)
    assert.is_truthy(text:find("use another key", 1, true))
  end)

  it("raises for what it cannot use, in the caller's line", function()
    for _, wrong in ipairs {
      function() lock.lease({}, "job") end,
      function() lock.lease(store, 5) end,
      function() take { second = 1 } end,
      function() take { seconds = "1" } end,
      function() take { seconds = 0 } end,
      function() take { owner = "a\nb" } end,
    } do
      local fine, text = pcall(wrong)
      assert.is_false(fine)
      assert.is_truthy(text:find("lock_spec.lua:", 1, true), text)
    end
  end)
end)
