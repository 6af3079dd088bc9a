local support = require "support"
local log = require "ckpt.base.log"

-- What a script prints, both streams.
local function run(dir, text)
  support.write(dir .. "/script.lua", text)
  return (support.sh(("cd '%s' && '%s/libexec/ckpt-script' script.lua"):format(dir, support.build)))
end

describe("log", function()
  local lines, before, level, dir

  setup(function() dir = support.directory() end)
  teardown(function() os.execute("rm -rf '" .. dir .. "'") end)

  before_each(function()
    lines, level = {}, log.level()
    before = log.use(function(kind, text) lines[#lines + 1] = kind .. ": " .. text end)
  end)
  after_each(function()
    log.use(before)
    log.level(level)
  end)

  it("hands each line to the one sink, with its level", function()
    log.level("debug")
    log.debug("a")
    log.info("b %d %s", 3, "x")
    log.warn("100%")
    log.error("%s", "d")
    assert.are.same({ "debug: a", "info: b 3 x", "warning: 100%", "error: d" }, lines)
  end)

  it("leaves out what is below the level", function()
    assert.are.equal("info", log.level("warning"))
    log.info("no")
    log.warn("yes")
    assert.are.equal("warning", log.level())
    assert.are.same({ "warning: yes" }, lines)
  end)

  it("shows control characters as question marks, and keeps line ends and tabs", function()
    log.warn("a\27[31mb\r\n\tc\194\155d\127é")
    assert.are.same({ "warning: a?[31mb?\n\tc??d?é" }, lines)
  end)

  it("refuses what is no sink, no level, no text", function()
    assert.has_error(function() log.use("x") end)
    assert.has_error(function() log.level("loud") end)
    assert.has_error(function() log.warn(nil) end)
  end)

  it("gives the sink back that was there", function()
    local function mine() end
    local old = log.use(mine)
    assert.are.equal(mine, log.use(old))
  end)

  it("writes to standard error, later lines of a text indented", function()
    local out = run(dir, [[
      local log = require "ckpt.base.log"
      log.warn("one\nckpt: error: forged")]])
    assert.are.equal("ckpt: warning: one\n  ckpt: error: forged\n", out)
  end)

  it("hands over what the engine says", function()
    local out = run(dir, [[
      local ckpt = require "ckpt"
      ckpt.log.use(function(level, text) print(level, text) end)
      os.execute("mkdir out && echo x > out/checkpoint-1.pt")
      local engine = assert(ckpt.open())
      local run = assert(engine:run { dir = "out", to = "store", state = "state" })
      assert(run:prepare())
      print("begin")
      ckpt.log.level("error")
      ckpt.log.level("info")
      ckpt.log.info("mine")
      engine:close()]])
    assert.are.equal("begin\nwarning\tcheckpoint-1.pt is not taken for a checkpoint: "
      .. "nothing proves it whole\ninfo\tmine\n", out)
  end)

  -- As busted does between two files.
  it("goes on to hear an engine that is older than the module", function()
    local out = run(dir, [[
      local job = require "ckpt.core".job
      os.execute("mkdir -p place/cut && echo {} > place/cut/.ckpt-manifest.part.json")
      os.execute("echo > place/x")
      assert(job.dispatch(0))
      package.loaded["ckpt.core"] = nil
      local core = require "ckpt.core"
      collectgarbage()
      collectgarbage()
      assert(core.job.start { kind = "download", uri = "place", dir = "out2" })
      local over
      repeat over = core.job.dispatch(-1) until #over > 0
      print(over[1].status, core.log.next())]])
    assert.are.equal("OK\twarning\tcut is left out: an upload to it goes on, or was cut off\n", out)
  end)
end)
