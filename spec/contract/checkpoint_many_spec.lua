-- 64 processes ask for one remote checkpoint at once, and some are killed: one download, nobody
-- reads a part of it, nothing is left behind.

local ckpt = require "ckpt"
local readers = require "ckpt.ray.checkpoint.checkpoint_readers"
local shelf = require "contract.shelf"
local support = require "support"
local world = require "contract.checkpoint_world"

local fs = ckpt.fs

-- With sanitizers a process is many times as large.
local MANY = support.sanitized and 16 or 64
local KILLED = MANY / 4
local SEED = tonumber(os.getenv("CKPT_SEED")) or 20211121

describe("64 processes and one checkpoint", function()
  local w, checkpoint, dir, gate

  before_each(function()
    math.randomseed(SEED)
    w = world.open()
    checkpoint = w:remote("remote", {
      ["a.bin"] = ("a"):rep(300000), ["sub/b.bin"] = ("b"):rep(100000), ["c"] = "c",
    })
    dir = fs.join(w.tmp, "checkpoint_tmp_" .. checkpoint.id)
    gate = shelf.gate(w.dir .. "/remote")
    assert(fs.mkdirs(w.dir .. "/pids"))
  end)
  after_each(function()
    fs.remove(gate)
    w:close()
  end)

  -- Each notes its pid, gets the files by `how`, and prints "whole" if all of them are there.
  local function start(how)
    return w:start(checkpoint, ([[
      local function check(path)
        assert(ckpt.fs.read(path .. "/a.bin") == ("a"):rep(300000), "a.bin")
        assert(ckpt.fs.read(path .. "/sub/b.bin") == ("b"):rep(100000), "b.bin")
        assert(ckpt.fs.read(path .. "/c") == "c", "c")
        return "whole"
      end
      support.write(%q .. ckpt.fs.readlink("/proc/self"), "")
      io.write(%s)]]):format(w.dir .. "/pids/", how))
  end

  local READER = "assert(checkpoint:as_directory(check))"
  local OWNER = "check(assert(checkpoint:to_directory()))"

  local function await(what, check)
    local deadline = os.time() + 45
    while not check() do
      assert(os.time() < deadline, "waited in vain for " .. what)
      os.execute("sleep 0.02")
    end
  end

  -- Only one of ours: a pid is used again.
  local function kill(pid)
    local command = support.read("/proc/" .. pid .. "/cmdline") or ""
    if command:find(w.dir, 1, true) then os.execute("kill -9 " .. pid .. " 2>/dev/null") end
  end

  -- Some of the processes, never `spared`.
  local function pick(count, spared)
    local pids = fs.list(w.dir .. "/pids")
    local picked = {}
    while #picked < count do
      local pid = table.remove(pids, math.random(#pids))
      if pid ~= spared then picked[#picked + 1] = pid end
    end
    return picked
  end

  local function leader()
    local _, lines = w:fetched()
    return lines[#lines]:match("^%d+")
  end

  -- Waits for all: the number of those that saw everything, and of those that were killed.
  local function finish(ends)
    local whole, killed = 0, 0
    for _, ended in ipairs(ends) do
      local said, code = ended()
      if code == 137 then
        killed = killed + 1
      else
        assert(code == 0 and said == "whole", said)
        whole = whole + 1
      end
    end
    return whole, killed
  end

  local function nothing_left()
    assert.are.same({}, w:left())
    for _, entry in ipairs(fs.walk(w.tmp)) do
      assert.are_not.equal("file", entry.type, entry.path)
    end
  end

  it("[57] fetch it once, and the last reader removes it, with 16 killed", function()
    assert(fs.write(gate, ""))
    local ends = {}
    for i = 1, MANY do ends[i] = start(READER) end
    await("64 marks", function() return #readers.marks(dir) == MANY end)
    await("the first fetch", function() return (w:fetched()) > 0 end)
    for _, pid in ipairs(pick(KILLED, leader())) do kill(pid) end
    assert(fs.remove(gate))
    assert.are.same({ MANY - KILLED, KILLED }, { finish(ends) })
    assert.are.equal(3, (w:fetched()))
    nothing_left()
  end)

  it("[38 G] have another one fetch it when the one that did is killed", function()
    assert(fs.write(gate, ""))
    local ends = {}
    for i = 1, MANY do ends[i] = start(READER) end
    await("64 marks", function() return #readers.marks(dir) == MANY end)
    await("the first fetch", function() return (w:fetched()) > 0 end)
    local first = leader()
    kill(first)
    await("the next one's fetch", function() return leader() ~= first end)
    assert(fs.remove(gate))
    assert.are.same({ MANY - 1, 1 }, { finish(ends) })
    assert.are.equal(3 + 1, (w:fetched()))
    nothing_left()
  end)

  it("[36] fetch it once for those that keep it, who keep it", function()
    assert(fs.write(gate, ""))
    local ends = {}
    for i = 1, MANY do ends[i] = start(i % 2 == 0 and READER or OWNER) end
    await("32 marks", function() return #readers.marks(dir) == MANY / 2 end)
    await("64 processes", function() return #fs.list(w.dir .. "/pids") == MANY end)
    await("the first fetch", function() return (w:fetched()) > 0 end)
    for _, pid in ipairs(pick(KILLED, leader())) do kill(pid) end
    assert(fs.remove(gate))
    assert.are.same({ MANY - KILLED, KILLED }, { finish(ends) })
    assert.are.equal(3, (w:fetched()))
    -- A killed owner may have been the last one out: whoever comes next sees to the marks.
    assert(checkpoint:as_directory(function() return true end))
    assert.are.same({ fs.base(dir) }, w:left())
    assert.are.same({}, w:lock_files())
    assert.are.equal(("a"):rep(300000), fs.read(dir .. "/a.bin"))
    assert.are.equal(3, (w:fetched()))
  end)

  it("[62 G] leave nothing behind, whenever they are killed", function()
    local ends = {}
    for i = 1, MANY do
      ends[i] = start(READER)
      if i % 4 == 0 then
        local pids = fs.list(w.dir .. "/pids")
        if #pids > 0 then kill(pids[math.random(#pids)]) end
      end
    end
    local whole, killed = finish(ends)
    assert.are.equal(MANY, whole + killed)
    -- The very last one may have been killed: whoever comes next clears up after it.
    assert(checkpoint:as_directory(function() return true end))
    nothing_left()
  end)
end)
