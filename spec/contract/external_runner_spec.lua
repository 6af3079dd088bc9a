-- ckpt.wrap_command: a training program beside the script, which reports by its socket. What it
-- shares with a training function is shown again where the program makes it harder.

local ckpt = require "ckpt"
local functions = require "contract.function_support"
local support = require "support"

local NOTIFY = support.runner .. " notify"

local function trial(body) return functions.trial(body, true) end

-- A runner of a shell script in which `notify` reports.
local function shell(t, script, config, options)
  script = "notify() { " .. NOTIFY .. ' "$@"; }\n' .. script
  options = options or {}
  if options.output == nil then options.output = false end
  local Class = ckpt.wrap_command({ "sh", "-c", script }, options)
  return t.make(Class, config)
end

local PYTHON = [[
import json, os, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(os.environ["CKPT_SOCKET"])
lines = link.makefile("rw")
def report(**values):
    lines.write(json.dumps(values) + "\n")
    lines.flush()
    return json.loads(lines.readline())
]]

local function python(t, script, config)
  return t.make(ckpt.wrap_command({ "python3", "-c", PYTHON .. script }, { output = false }),
    config)
end

local function is_alive(pid) return os.execute("kill -0 " .. pid .. " 2>/dev/null") == 0 end

describe("ckpt.wrap_command", function()
  it("[256] lets the program go on for one report with each step", trial(function(t)
    local runner = shell(t, [[
      for i in 1 2 3; do echo "$i" >>$CKPT_DIR/begun; notify i=$i name="n $i" || exit; done]])
    for i = 1, 3 do
      local result = assert(runner:train())
      assert.same({ i, "n " .. i, i }, { result.i, result.name, result.training_iteration })
      assert.is_true(result.time_this_iter_s >= 0)
      assert.equal(i, #support.read(t.dir .. "/begun"):gsub("\n", ""))
    end
    local last = assert(runner:train())
    assert.same({ true, 3 }, { last.__duplicate__, last.i })
    assert.is_true(runner:stop())
  end))

  it("[247] answers a report when the next result is wanted, and not before", trial(function(t)
    local runner = python(t, [[
for i in range(3):
    answer = report(i=i)
    open(os.environ["CKPT_DIR"] + "/answers", "a").write(json.dumps(answer) + "\n")
]])
    assert.equal(0, runner:train().i)
    os.execute "sleep 0.1"
    assert.is_nil(support.read(t.dir .. "/answers"))
    assert.equal(1, runner:train().i)
    assert.equal('{"ok": true}\n', support.read(t.dir .. "/answers"))
  end))

  it("[247] lets `notify` wait as long as it takes, or as long as the program says",
    trial(function(t)
      local script = [[
        notify i=1 2>>$CKPT_DIR/said && echo accepted >$CKPT_DIR/first
        notify i=2]]
      local runner = shell(t, script)
      assert.equal(1, runner:train().i)
      os.execute "sleep 0.4"
      assert.equal(2, runner:train().i)
      assert.equal("accepted\n", support.read(t.dir .. "/first"))
      local hasty = shell(t, script, nil, { env = { CKPT_ANSWER_WAIT = "0.1" } })
      os.remove(t.dir .. "/first")
      assert.equal(1, hasty:train().i)
      os.execute "sleep 0.4"
      hasty:train()
      assert.is_nil(support.read(t.dir .. "/first"))
      assert.is_truthy(support.read(t.dir .. "/said"):find "does not answer")
    end))

  it("[247] holds one result at a time: a second reporter waits for its turn", trial(function(t)
    local runner = shell(t, "notify i=1 & notify i=1 & notify i=1 & wait")
    for _ = 1, 3 do assert.equal(1, runner:train().i) end
    assert.is_true(runner:train().__duplicate__)
  end))

  it("[253] starts the program with the first step, in an environment of its own",
    trial(function(t)
      local runner = shell(t, [[
        echo "$CKPT_DIR|$CKPT_RESUME|$CKPT_CONFIG|$MINE|${HOME-none}|$(pwd)" >$CKPT_DIR/seen
        notify i=1]], { lr = 0.5 }, { cwd = "/", env = { MINE = "m", HOME = false } })
      assert.is_nil(support.read(t.dir .. "/seen"))
      assert.equal(1, runner:train().i)
      assert.equal(t.dir .. '/||{"lr": 0.5}|m|none|/\n', support.read(t.dir .. "/seen"))
    end))

  it("[254] tells the program the checkpoint to begin from", trial(function(t)
    local script = [[
      count=0
      [ -z "$CKPT_RESUME" ] || count=$(($(cat "$CKPT_RESUME/c") + 1))
      while :; do
        mkdir -p $CKPT_DIR/step$count && echo $count >$CKPT_DIR/step$count/c
        notify count=$count checkpoint=step$count || exit 0
        count=$((count + 1))
      done]]
    local runner = shell(t, script)
    runner:train()
    local result = assert(runner:train())
    assert.same({ 1, true }, { result.count, result.should_checkpoint })
    local path = assert(runner:save())
    assert.equal(t.dir .. "/step1/", path)
    local object = assert(runner:save_to_object())
    runner:stop()
    local other = shell(t, script)
    assert(other:restore(path))
    assert.equal(2, other:train().count)
    other:stop()
    other = shell(t, script)
    assert(other:restore_from_object(object))
    assert.equal(2, other:train().count)
  end))

  it("[254] hands over a table as a file", trial(function(t)
    local runner = shell(t, "notify seen=\"$(cat \"$CKPT_RESUME\")\"")
    runner:load_checkpoint { w = 1 }
    assert.equal('{"w": 1}', runner:train().seen)
  end))

  it("[249] refuses a checkpoint that is not there, and lets the program go on", trial(function(t)
    local runner = python(t, [[
first = report(checkpoint="gone")
os.mkdir(os.environ["CKPT_DIR"] + "/there")
second = report(checkpoint="there")
report(first=first["error"], second=second["ok"])
]])
    local result = assert(runner:train())
    assert.is_truthy(result.first:find("gone", 1, true))
    assert.is_true(result.second)
    assert.is_true(result.should_checkpoint)
    assert.equal("error", t.said "make_checkpoint_dir")
  end))

  it("[249] is told what to give by what it has: directories, and no function", trial(function(t)
    local runner = python(t, [[
where = os.environ["CKPT_DIR"]
open(where + "/model", "w").write("m")
for i, path in enumerate([where + "/model", where, "/etc", "/etc/hostname"]):
    open(where + "/said", "a").write(report(i=i, checkpoint=path)["error"] + "\n")
]])
    runner:train()
    local said = assert(support.read(t.dir .. "/said"))
    local lines = 0
    for line in said:gmatch "[^\n]+" do
      lines = lines + 1
      assert.truthy(line:find("is no checkpoint: give the path of a directory below $CKPT_DIR", 1,
        true), line)
      assert.is_nil(line:match "make_checkpoint_dir")
    end
    assert.equal(4, lines)
  end))

  it("[252] counts a checkpoint as set with the result that names it", trial(function(t)
    local runner = shell(t, [[
      mkdir $CKPT_DIR/a
      notify i=1 & sleep 0.3; notify i=2 checkpoint=a & wait]])
    local worker = runner:_new_worker()
    runner._new_worker = function() return worker end
    os.execute "sleep 0.6" -- both have arrived
    assert.same({ 1 }, { runner:train().i, runner._last_result.should_checkpoint })
    assert.same({ 2, true }, { runner:train().i, runner._last_result.should_checkpoint })
  end))

  it("[255] fails with the end of a program that failed, and with what it said last",
    trial(function(t)
      local runner = shell(t, "notify i=1; echo first; echo 'no data' >&2; exit 3")
      assert.equal(1, runner:train().i)
      local result, text, name = runner:train()
      assert.is_nil(result)
      assert.is_truthy(text:find "exit code 3: no data$")
      assert.equal("EIO", name)
      assert.equal("error", t.said "no data")
      assert.same({ nil, text, name }, { runner:train() })
    end))

  it("[257] says what signal killed the program", trial(function(t)
    local runner = shell(t, "notify i=1; kill -KILL $$; sleep 5")
    runner:train()
    local result, text, name = runner:train()
    assert.is_nil(result)
    assert.is_truthy(text:find("signal KILL killed sh", 1, true))
    assert.equal("EIO", name)
  end))

  it("[257] says that there is no such program", trial(function(t)
    local runner = t.make(ckpt.wrap_command({ t.dir .. "/gone" }, { output = false }))
    local result, text, name = runner:train()
    assert.is_nil(result)
    assert.is_truthy(text:find(t.dir .. "/gone", 1, true))
    assert.equal("ENOENT", name)
  end))

  it("[231] waits for the rest of what a failed program says, but not for ever", trial(function(t)
    local runner = shell(t, "(sleep 0.2; echo late >&2) & exit 1")
    local _, text = runner:train()
    assert.is_truthy(text:find "exit code 1: late$")
    local begun = ckpt.clock.monotonic()
    _, text = shell(t, "sleep 20 & echo early >&2; exit 1"):train()
    assert.is_truthy(text:find "exit code 1: early$")
    local took = ckpt.clock.monotonic() - begun
    assert(took >= 1 and took < 5, took)
  end))

  it("[258] delivers the result that came before the error, with a warning", trial(function(t)
    local runner = shell(t, NOTIFY .. " i=1 >/dev/null 2>&1 & sleep 0.3; exit 4")
    -- Nobody looks before both are there.
    local worker = runner:_new_worker()
    runner._new_worker = function() return worker end
    os.execute "sleep 0.6"
    assert.equal(1, runner:train().i)
    assert.equal("warning", t.said "results before that come first")
    local _, text = runner:train()
    assert.is_truthy(text:find "exit code 4")
  end))

  it("[260] yields only the mark for a program that never reported", trial(function(t)
    local result = assert(shell(t, "exit 0"):train())
    assert.is_true(result.__duplicate__)
    assert.is_nil(result.i)
  end))

  it("[276] warns of results that come after the trial was told to stop", trial(function(t)
    local runner = shell(t, "notify i=1; notify i=2; notify i=3; exit 0")
    runner:train()
    assert.is_true(runner:stop())
    assert.equal("warning", t.said "after the trial was told to stop")
  end))

  it("[297 G] tells the program to stop by the answer to its report", trial(function(t)
    local runner = python(t, [[
answer = report(i=1)
open(os.environ["CKPT_DIR"] + "/answer", "w").write(answer["error"] + str(answer["stop"]))
sys.exit(3)
]])
    runner:train()
    assert.is_true(runner:stop())
    assert.equal("the trial was told to stopTrue", support.read(t.dir .. "/answer"))
    assert.is_nil(t.said "failed")
  end))

  it("[297 G] ends a program that does not care, and all that it has started", trial(function(t)
    local runner = shell(t, [[
      trap '' TERM
      sleep 1000 & echo $! >$CKPT_DIR/child
      echo $$ >$CKPT_DIR/pid
      notify i=1
      while :; do sleep 0.05; done]])
    runner.ERROR_REPORT_TIMEOUT = 0.3
    runner.STOP_GRACE = 0.3
    runner:train()
    local begun = ckpt.clock.monotonic()
    assert.is_true(runner:stop())
    assert(ckpt.clock.monotonic() - begun < 5)
    local pid, child = support.read(t.dir .. "/pid"), support.read(t.dir .. "/child")
    assert.is_false(is_alive(pid:match "%d+"))
    support.await("the child's end", function() return not is_alive(child:match "%d+") end)
  end))

  it("trains side by side with others, when tasks drive them", trial(function(t)
    -- Each waits until the other one has begun.
    local function waiting(own, other)
      return shell(t, ([[
        touch $CKPT_DIR/%s
        for i in $(seq 300); do [ -e $CKPT_DIR/%s ] && break; sleep 0.02; done
        notify met=$([ -e $CKPT_DIR/%s ] && echo true || echo false)]]):format(own, other, other))
    end
    local tasks = {}
    for i, runner in ipairs { waiting("a", "b"), waiting("b", "a") } do
      tasks[i] = ckpt.job.task(function() return assert(runner:train()) end)
    end
    for _, task in ipairs(tasks) do assert.is_true(assert(task:wait()).met) end
  end))

  it("passes on what the program prints, as it comes", trial(function(t)
    local got = {}
    local runner = shell(t, "echo a; notify i=1; echo b >&2; notify i=2; echo c; exit 1", nil,
      { output = function(text, which) got[#got + 1] = which .. text end })
    runner:train()
    assert.same({ "1a\n" }, got)
    runner:train()
    assert.same({ "1a\n", "2b\n" }, got)
    runner:train()
    assert.same({ "1a\n", "2b\n", "1c\n" }, got)
  end))

  it("shows what the program prints where it would print it itself", trial(function(t)
    support.write(t.dir .. "/s.lua", [[
      local runner = require "ckpt".wrap_command { "sh", "-c", "echo out; echo err >&2" } ()
      assert(runner:train())
      assert(runner:stop())]])
    assert.equal(0, os.execute(("cd '%s' && TMPDIR='%s' CKPT_LUADIR='%s/lua' "
      .. "'%s/libexec/ckpt-script' s.lua >out 2>err"):format(t.dir, t.dir, support.root,
      support.build)))
    assert.equal("out\n", support.read(t.dir .. "/out"))
    assert.equal("err\n", support.read(t.dir .. "/err"))
  end))

  it("marks no directory as a checkpoint that is not the trial's", trial(function(t)
    assert(ckpt.fs.mkdirs(t.dir .. "/logs"))
    assert(ckpt.fs.mkdirs(t.dir .. "/other"))
    assert(ckpt.fs.symlink("../other", t.dir .. "/logs/link"))
    local runner = t.make(ckpt.wrap_command({ "python3", "-c", PYTHON .. [[
paths = [".", "link", "../other", os.environ["CKPT_DIR"] + "../other", "a/../..", "/"]
report(all=all("error" in report(checkpoint=p) for p in paths))
]] }, { output = false }), nil, { logdir = t.dir .. "/logs" })
    assert.is_true(runner:train().all)
    assert.same({}, ckpt.fs.list(t.dir .. "/other"))
    assert.same({ "link" }, ckpt.fs.list(t.dir .. "/logs"))
  end))

  it("wants a config that JSON can hold", trial(function(t)
    assert.error_matches(function() shell(t, "true", { f = print }) end, "config as JSON")
  end))

  it("leaves nothing of its environment to the job of a run inside of it", trial(function(t)
    local runner = shell(t, ("mkdir $CKPT_DIR/out; %s run --dir $CKPT_DIR/out --to $CKPT_DIR/store "
      .. "-- sh -c 'echo $CKPT_DIR ${CKPT_ANSWER_WAIT-unset} >$CKPT_DIR/seen' 2>&1; true")
      :format(support.runner))
    assert(runner:train())
    assert.equal(t.dir .. "/out unset\n", support.read(t.dir .. "/out/seen"))
  end))

  it("refuses what is no JSON object, and questions that only a run can answer", trial(function(t)
    local runner = python(t, [[
answers = []
for line in ["text", "[1, 2]", "[]", "{", '{"$ckpt": "status"}', "7"]:
    lines.write(line + "\n")
    lines.flush()
    answers.append("error" in json.loads(lines.readline()))
report(all=all(answers), none=None, list=[1, {"a": None}])
]])
    local result = assert(runner:train())
    assert.is_true(result.all)
    assert.is_nil(result.none)
    assert.equal(1, result.list[1])
  end))

  it("leaves no socket behind, and no process", trial(function(t)
    local runner = shell(t, [[
      echo $CKPT_SOCKET >$CKPT_DIR/socket; echo $$ >$CKPT_DIR/pid; notify i=1]])
    runner:train()
    local socket = support.read(t.dir .. "/socket"):match "%S+"
    assert.is_true(ckpt.fs.exists(socket))
    runner:stop()
    assert.is_false(ckpt.fs.exists(ckpt.fs.parent(socket)))
    assert.is_false(is_alive(support.read(t.dir .. "/pid"):match "%d+"))
  end))

  it("refuses what is no command", function()
    for _, wrong in ipairs { 7, {}, { 7 } } do
      assert.error_matches(function() ckpt.wrap_command(wrong) end, "no list of texts")
    end
    assert.error_matches(function() ckpt.wrap_command({ "true" }, { stdin = "x" }) end,
      "no option `stdin`")
  end)
end)
