-- ckpt.process: who is dead.

local process = require "ckpt.prims.process"
local support = require "support"

describe("ckpt.process", function()
  it("knows this process, its user and its boot", function()
    local me = assert(process.identity())
    assert.are.equal(process.pid(), me.pid)
    assert.are.equal(tonumber((support.sh("id -u"))), process.user())
    assert.are.equal(process.boot(), me.boot)
    assert.is_truthy(me.namespace:match("^pid:%[%d+%]$"))
    assert.is_false(process.is_dead(me))
  end)

  -- The identity of another process, as that would write it.
  local function of(pid)
    local other = process.identity()
    other.pid = pid
    other.start = support.read(("/proc/%d/stat"):format(pid)):match("^.*%) (.*)$")
    local fields = {}
    for field in other.start:gmatch("%S+") do fields[#fields + 1] = field end
    other.start = fields[20]
    return other
  end

  it("sees another one live and die, a zombie too", function()
    local pipe = io.popen("sleep 100 & echo $!; exec cat >/dev/null 2>&1", "r")
    local pid = pipe:read("*n")
    local other = of(pid)
    assert.is_false(process.is_dead(other))
    os.execute("kill -9 " .. pid)
    support.await("its death", function() return process.is_dead(other) end)
    pipe:close()
    assert.is_true(process.is_dead(other))
  end)

  it("takes another start, or another boot, for another process", function()
    local function changed(key, value)
      local identity = process.identity()
      identity[key] = value
      return identity
    end
    assert.is_true(process.is_dead(changed("start", "1")))
    assert.is_true(process.is_dead(changed("boot", "another")))
    assert.is_true(process.is_dead(changed("pid", 2 ^ 22 + 1)))
  end)

  it("is sure of nothing that it cannot see", function()
    local hidden = process.identity()
    hidden.namespace, hidden.pid = "pid:[1]", 2 ^ 22 + 1
    for _, identity in ipairs { hidden, {}, "text", { pid = 1 }, { pid = "1", start = "1" },
      { pid = 2 ^ 22 + 1, start = "1" } } do
      assert.is_false(process.is_dead(identity))
    end
  end)
end)
