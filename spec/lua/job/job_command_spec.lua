-- ckpt.job.command: external programs as jobs.

local ckpt = require "ckpt"
local support = require "support"

local function shell(script, options)
  return assert(ckpt.job.command({ "sh", "-c", script }, options))
end

local function is_alive(pid) return os.execute("kill -0 " .. pid .. " 2>/dev/null") == 0 end

describe("ckpt.job.command", function()
  it("tells what a program printed, and how it ended", function()
    local job = shell("echo out; echo err >&2")
    assert.is_true(ckpt.job.is(job))
    assert.same({ code = 0, out = "out\n", err = "err\n" }, job:wait())
    assert.same({ code = 0, out = "out\n", err = "err\n" }, job:wait())
    assert.is_false(job:running())
    assert.same({ 0 }, { job:progress() })
  end)

  it("fails when the program does, and tells all of it nevertheless", function()
    local _, text, name, result = shell("echo out; echo why >&2; exit 3"):wait()
    assert.is_nil(_)
    assert.equal("sh ended with exit code 3: why", text)
    assert.equal("EIO", name)
    assert.same({ code = 3, out = "out\n", err = "why\n" }, result)
    _, text, name, result = shell("kill -KILL $$"):wait()
    assert.is_nil(_)
    assert.equal("signal KILL killed sh", text)
    assert.equal("EIO", name)
    assert.same({ code = false, signal = "KILL", out = "", err = "" }, result)
  end)

  it("says that there is no such program or directory", function()
    local job, text, name = ckpt.job.command { "no-such-program" }
    assert.is_nil(job)
    assert.is_truthy(text:find("no-such-program", 1, true))
    assert.equal("ENOENT", name)
    assert.equal("ENOENT", (select(3, ckpt.job.command({ "true" }, { cwd = "/no/such" }))))
  end)

  it("runs it where and with what it is told", function()
    local result = assert(shell("pwd; cat; echo $MINE ${HOME-none} $PATH", {
      cwd = "/", stdin = "in\0put\n", env = { MINE = "m", HOME = false },
    }):wait())
    assert.equal("/\nin\0put\nm none " .. os.getenv "PATH" .. "\n", result.out)
  end)

  it("keeps the last bytes of what is printed", function()
    assert.equal("t\n", assert(shell("echo first; echo last", { keep = 2 }):wait()).out)
  end)

  it("hands over what is printed, each byte once", function()
    local got = { "", "" }
    local job = shell("for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.02; done; "
      .. "yes | head -c 300000", {
        keep = 100000, output = function(text, which) got[which] = got[which] .. text end,
      })
    assert.equal(100000, #assert(job:wait()).out)
    assert.is_true("1\n2\n3\n" .. ("y\n"):rep(150000) == got[1])
    assert.equal("e1\ne2\ne3\n", got[2])
  end)

  it("waits no longer than it is told", function()
    local job = shell "read x <&2; sleep 100"
    local begun = ckpt.clock.monotonic()
    local result, text, name = job:wait(0.1)
    assert.is_nil(result)
    assert.equal("ETIMEOUT", name)
    assert.is_truthy(text:find "sh has not ended after 0.1 s")
    assert(ckpt.clock.monotonic() - begun < 2)
    assert.is_true(job:running())
    job:cancel()
  end)

  it("ends it by a cancel, with all that it started, gently first", function()
    local job =
      shell "trap 'echo bye; exit 0' TERM; sleep 100 & echo $!; while :; do sleep 0.01; done"
    while not job._program:output():find "\n" do job:turn(1) end
    job:cancel()
    local result, text, name, all = job:wait()
    assert.is_nil(result)
    assert.equal("sh was stopped", text)
    assert.equal("ECANCELED", name)
    local child = all.out:match "^(%d+)\nbye\n$"
    support.await("the child's end", function() return not is_alive(child) end)
    job:cancel()
  end)

  it("kills one that does not end by itself", function()
    local job = shell("trap '' TERM; while :; do sleep 0.01; done", { grace = 0.1 })
    local begun = ckpt.clock.monotonic()
    job:wait(0.1)
    job:cancel()
    assert(ckpt.clock.monotonic() - begun < 3)
    assert.equal("KILL", (select(4, job:wait())).signal)
  end)

  it("kills one that nobody holds any more", function()
    local pid
    do
      local job = shell "echo $$; exec sleep 100"
      while not job._program:output():find "\n" do job:turn(1) end
      pid = job._program:pid()
    end
    collectgarbage()
    collectgarbage()
    assert.is_false(is_alive(pid))
  end)

  it("hands over reports, which wait for their answers", function()
    local seen = {}
    local job = shell(([[
      %s notify loss=0.5 name="a b" flag=true && echo accepted
      %s notify bad=1 || echo refused]]):format(support.runner, support.runner), {
        report = function(report) seen[#seen + 1] = report end,
      })
    while #seen < 1 do job:turn(1) end
    assert.same({ loss = 0.5, name = "a b", flag = true }, seen[1].values)
    assert.is_nil((job:wait(0.2)))
    assert.is_true(seen[1]:answer())
    assert.is_false(seen[1]:answer())
    while #seen < 2 do job:turn(1) end
    assert.is_true(seen[2]:answer "not now")
    local result = assert(job:wait())
    assert.equal("accepted\nrefused\n", result.out)
    assert.is_truthy(result.err:find "not now")
  end)

  it("takes NaN and Infinity as Python writes them, and says what is wrong with a line", function()
    local seen
    local job = assert(ckpt.job.command({ "python3", "-c", [[
import json, os, socket
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["CKPT_SOCKET"]); f = s.makefile("rw")
values = {"a": float("nan"), "b": float("-inf"), "n": None, "x": 0.1 + 0.2, "l": []}
for line in (json.dumps(values), "[]", '{"a": 1,}'):
    f.write(line + "\n"); f.flush(); print(f.readline().strip())
]] }, { report = function(report) seen = report.values report:answer() end }))
    local out = support.lines(assert(job:wait()).out)
    assert.is_true(seen.a ~= seen.a)
    seen.a = nil
    assert.same({ b = -math.huge, x = 0.1 + 0.2, l = {} }, seen)
    assert.equal('{"ok": true}', out[1])
    assert.equal('{"error": "this is no JSON object"}', out[2])
    assert.is_truthy(out[3]:find("no JSON object: .*character 9"), out[3])
  end)

  it("refuses a report for a reason that has bytes which are no text", function()
    local job = shell(support.runner .. " notify x=1 2>&1; exit 0", {
      report = function(report) report:answer "the file a\255b\237\160\128é is full" end,
    })
    assert.is_truthy(assert(job:wait()).out:find("the file a?b???é is full", 1, true))
    job = shell(support.runner .. " notify x=1 2>&1; exit 0", {
      report = function(report) report:answer(nil, { more = print }) end,
    })
    assert.is_truthy(assert(job:wait()).out:find("a function cannot be put into JSON", 1, true))
  end)

  it("lets tasks go on while it is waited for, and waits inside of one", function()
    local log = {}
    local task = ckpt.job.task(function()
      local result = assert(shell("sleep 0.1; echo done"):wait())
      log[#log + 1] = result.out
      return "task"
    end)
    local other = ckpt.job.task(function()
      for i = 1, 3 do
        log[#log + 1] = i
        ckpt.job.yield()
      end
    end)
    assert(shell("sleep 0.3"):wait())
    assert.same({ 1, 2, 3, "done\n" }, log)
    assert.equal("task", task:wait())
    assert.is_false(other:running())
  end)

  it("is cancelled with the task that waits for it", function()
    local inner, name
    local task = ckpt.job.task(function()
      inner = shell "sleep 100"
      name = select(3, inner:wait())
    end)
    task:cancel()
    assert.equal("ECANCELED", name)
    assert.is_false(inner:running())
  end)

  it("is waited for to its end under a virtual clock", function()
    local clock = ckpt.testing.clock(1000)
    local result = shell("sleep 0.1; echo done"):wait(0.01)
    clock:restore()
    assert.equal("done\n", result.out)
  end)

  it("refuses what no program can be given", function()
    local function refused(text, ...)
      local words = { ... }
      assert.error_matches(function() ckpt.job.command(unpack(words)) end, text)
    end
    refused("no list of texts", nil)
    refused("no list of texts", {})
    refused("word 2 of the command", { "echo", 7 })
    refused("word 1 of the command", { "ec\0ho" })
    refused("`cwd`", { "true" }, { cwd = 7 })
    refused("`env`.A", { "true" }, { env = { A = true } })
    refused("names A=B", { "true" }, { env = { ["A=B"] = "x" } })
    refused("`env` is a number", { "true" }, { env = 7 })
    refused("`stdin` is a table", { "true" }, { stdin = {} })
    refused("`report` is a table", { "true" }, { report = {} })
    refused("unknown option timeout", { "true" }, { timeout = 3 })
    refused("`keep` is not a number from 0", { "true" }, { keep = -1 })
    local job = shell "true"
    assert.error_matches(function() job:wait "1" end, "the limit is a string")
    job:wait()
  end)
end)
