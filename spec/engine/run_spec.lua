-- `ckpt-lua run` and `watch` as a user sees them: real processes, a real store, shell scripts as
-- training programs.

package.path = "./spec/?.lua;" .. package.path
local support = require "support"
local CKPT, sh, read, write, await =
  support.runner, support.sh, support.read, support.write, support.await

local dir

-- Shell functions for jobs. `save N`: as the frameworks do it, under another name and renamed.
local JOB = [[
save() {
  mkdir "$CKPT_DIR/.new" && echo "weights $1" >"$CKPT_DIR/.new/model.bin" &&
  echo "$1" >"$CKPT_DIR/.new/state" && mv "$CKPT_DIR/.new" "$CKPT_DIR/checkpoint-$1"
}
await() { until [ -e "$1" ]; do sleep 0.02; done; }
]]

-- Writes a job and returns the shell text that runs it under ckpt-lua.
local function command(job, args, verb)
  write(dir .. "/job.sh", JOB .. job)
  return ("cd '%s' && exec '%s' %s --dir out --to store %s %s"):format(
    dir, CKPT, verb or "run", args or "", verb and "" or "-- sh job.sh")
end

local function run(job, args)
  return sh("( " .. command(job, args) .. " )")
end

-- In the background: its process id; what it says goes to err.log, its code to rc.
local function start(job, args, verb)
  os.remove(dir .. "/rc")
  os.remove(dir .. "/pid")
  write(dir .. "/background.sh",
    "sh start.sh >out.log 2>err.log </dev/null; echo $? >rc.new; mv rc.new rc\n")
  write(dir .. "/start.sh", "echo $$ >pid.new; mv pid.new pid\n" .. command(job, args, verb))
  os.execute(("cd '%s' && sh background.sh &"):format(dir))
  return tonumber(await("the start", function() return read(dir .. "/pid") end))
end

local function finish()
  local code = await("the end", function() return read(dir .. "/rc") end)
  return tonumber(code), read(dir .. "/err.log")
end

-- A file that the job writes; an end before that tells why.
local function await_file(name)
  await(name, function()
    if read(dir .. "/" .. name) then return true end
    if read(dir .. "/rc") then error("it ended too early: " .. read(dir .. "/err.log")) end
  end)
end

-- Until checkpoint N of the run in the background is committed.
local function await_commit(n)
  local line = ("committed checkpoint-%d "):format(n)
  await("the commit", function()
    return (read(dir .. "/err.log") or ""):find(line, 1, true)
  end)
end

local function alive(pid)
  local stat = read("/proc/" .. pid .. "/stat")
  return stat ~= nil and not stat:find(") Z ", 1, true)
end

local function has(text, part)
  assert.is_truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

local function has_not(text, part)
  assert.is_nil(text:find(part, 1, true), ("%q is in:\n%s"):format(part, text))
end

before_each(function() dir = support.directory() end)
after_each(function() sh("rm -rf '" .. dir .. "'") end)

describe("a run", function()
  it("commits each checkpoint, ends with 0, and says so in one last line", function()
    local text, code = run("save 1; save 2; save 3")
    assert.are.equal(0, code, text)
    has(text, "committed checkpoint-3 (step 3, 2 files, ")
    has(text, "newest checkpoint-3 (step 3)")
    assert.are.equal("weights 3\n", read(dir .. "/store/checkpoint-3/model.bin"))
    local exit = read(dir .. "/out.ckpt/exit.json")
    has(exit, '"exit_code":0')
    has(exit, '"durable":true')
  end)

  it("gives the job its directory and its socket, and nothing to resume from at first", function()
    local text, code = run([[
      test "$CKPT_DIR" = "$PWD/out" && test -S "$CKPT_SOCKET" || exit 1
      test -z "${CKPT_RESUME+x}${CKPT_RESTORED_FROM+x}$1"]], "--resume-arg '--resume {}'")
    assert.are.equal(0, code, text)
  end)

  it("resumes from the newest commit when the directory is gone", function()
    assert.are.equal(0, (select(2, run("save 1; save 2"))))
    sh("rm -rf '" .. dir .. "/out'")
    local text, code = run([[
      echo "$1 $2" >args; echo "$CKPT_RESUME" >resume; echo "$CKPT_RESTORED_FROM" >from
      cat "$CKPT_RESUME/model.bin"]], "--resume-arg '--resume {}'")
    assert.are.equal(0, code, text)
    has(text, "weights 2\n")
    local path = read(dir .. "/resume")
    assert.are.equal("checkpoint-2\n", path:match("[^/]*$"))
    assert.are.equal("--resume " .. path, read(dir .. "/args"))
    has(read(dir .. "/from"), "file://")
  end)

  it("leaves nothing of its own in the directory", function()
    assert.are.equal(0, (select(2, run("save 1"))))
    assert.are.equal("checkpoint-1\n", (sh("ls -A '" .. dir .. "/out'")))
  end)

  it("has the job's own code when that is not 0", function()
    local text, code = run("save 1; exit 9")
    assert.are.equal(9, code)
    has(text, "newest checkpoint-1")
    assert.are.equal(137, (select(2, run("kill -KILL $$"))))
    has(read(dir .. "/out.ckpt/exit.json"), '"child":{"signal":9}')
  end)

  it("has the codes of shells when the command cannot be run", function()
    local plain = ("cd '%s' && '%s' run --dir out --to store "):format(dir, CKPT)
    local text, code = sh(plain .. "no-such-command")
    assert.are.equal(127, code)
    has(text, "no-such-command")
    assert.are.equal(126, (select(2, sh(plain .. "--run id2 --continue-run /tmp"))))
  end)

  it("passes TERM on once, lets the job save, and makes that durable", function()
    local pid = start([[
      trap 'echo TERM >>got; save 7; exit 143' TERM
      save 1; touch up; while :; do sleep 0.02; done]])
    await_file("up")
    sh("kill -TERM " .. pid .. "; kill -TERM " .. pid)
    local code, err = finish()
    assert.are.equal(143, code, err)
    assert.are.equal("TERM\n", read(dir .. "/got"))
    assert.are.equal("weights 7\n", read(dir .. "/store/checkpoint-7/model.bin"))
    has(read(dir .. "/out.ckpt/exit.json"), '"durable":true')
  end)

  it("kills a job that ignores TERM before the grace is over", function()
    local pid = start("trap '' TERM; touch up; while :; do sleep 0.02; done", "--grace 0.5")
    await_file("up")
    sh("kill -TERM " .. pid)
    assert.are.equal(137, (finish()))
  end)

  it("takes the job along when it is killed itself", function()
    local pid = start("echo $$ >job; save 1; while :; do sleep 0.02; done")
    await_commit(1)
    sh("kill -KILL " .. pid)
    local job = tonumber(read(dir .. "/job"))
    await("the job's end", function() return not alive(job) end)
    finish()
    local text, code = run('cat "$CKPT_RESUME/model.bin"')
    assert.are.equal(0, code, text)
    has(text, "weights 1\n")
  end)

  it("ends a trainer of a killed run, which ignores TERM, before it starts another", function()
    local pid = start("trap '' TERM; echo $$ >job; touch up; while :; do sleep 0.02; done")
    await_file("up")
    local job = tonumber(read(dir .. "/job"))
    sh("kill -KILL " .. pid)
    finish()
    assert.is_true(alive(job))
    -- Where nobody reaps orphans it stays as a zombie.
    local text, code = run(([[
      case "$(cat /proc/%d/stat 2>/dev/null)" in "" | *") Z "*) exit 0 ;; esac
      exit 1]]):format(job), "--grace 0.3")
    assert.are.equal(0, code, text)
    assert.is_false(alive(job))
    has(text, ("process %d "):format(job))
    has(text, "of an earlier run is still alive")
  end)

  it("ends what the job leaves running", function()
    local text, code = run("(touch up; while :; do sleep 0.02; done) & echo $! >left; await up")
    assert.are.equal(0, code, text)
    assert.is_false(alive(tonumber(read(dir .. "/left"))))
  end)

  it("takes only checkpoints of --unit", function()
    local job = "save 1; mv out/checkpoint-1 out/snap_1; save 2"
    local text, code = run(job, "--unit 'snap_{step}/'")
    assert.are.equal(0, code, text)
    has(text, "committed snap_1 (step 1, ")
    has_not(text, "committed checkpoint-2")
  end)

  it("says at the end that files belong to no checkpoint; --require-commit makes it 4", function()
    local text, code = run("echo x >out/notes.xyz")
    assert.are.equal(0, code, text)
    has(text, "notes.xyz")
    has(text, "--unit")
    assert.are.equal(4, (select(2, run("echo y >out/notes.xyz", "--require-commit"))))
  end)
end)

describe("a run is refused", function()
  it("where another one works in the same state directory", function()
    local pid = start("touch up; await go")
    await_file("up")
    local text, code = run("touch ran")
    assert.are.equal(11, code, text)
    assert.is_nil(read(dir .. "/ran"))
    assert.is_true(alive(pid))
    write(dir .. "/go", "")
    assert.are.equal(0, (finish()))
  end)

  it("at a target of another run, unless it is told to go on", function()
    assert.are.equal(0, (select(2, run("save 1", "--run first"))))
    local text, code = run("touch ran", "--run second")
    assert.are.equal(11, code, text)
    has(text, "first")
    has(text, "second")
    has(text, "--continue-run")
    assert.is_nil(read(dir .. "/ran"))
    text, code = run('cat "$CKPT_RESUME/model.bin"', "--run second --continue-run")
    assert.are.equal(0, code, text)
    has(text, "weights 1\n")
  end)

  it("with code 4 when --restore required finds nothing", function()
    local text, code = run("touch ran", "--restore required")
    assert.are.equal(4, code, text)
    assert.is_nil(read(dir .. "/ran"))
  end)

  it("with code 2 for options that it does not know", function()
    local text, code = run("true", "--unti x")
    assert.are.equal(2, code)
    has(text, "did you mean --unit?")
  end)
end)

describe("restore", function()
  it("never: takes the directory as it is", function()
    assert.are.equal(0, (select(2, run("save 1"))))
    sh("rm -rf '" .. dir .. "/out'")
    local text, code = run('test -z "$CKPT_RESUME" && ! ls out/checkpoint-1', "--restore never")
    assert.are.equal(0, code, text)
  end)

  it("of a name: resumes from that one", function()
    assert.are.equal(0, (select(2, run("save 1; sleep 0.2; save 2"))))
    sh("rm -rf '" .. dir .. "/out'")
    local text, code = run('cat "$CKPT_RESUME/model.bin"', "--restore checkpoint-1")
    assert.are.equal(0, code, text)
    has(text, "weights 1\n")
  end)
end)

describe("an idle run", function()
  local function sum(pid, field)
    local total = 0
    for n in sh("cat /proc/" .. pid .. "/task/*/status"):gmatch(field .. ":%s*(%d+)") do
      total = total + tonumber(n)
    end
    return total
  end

  it("does not wake up and is small", function()
    local pid = start("save 1; touch up; await go")
    await_file("up")
    await_commit(1)
    os.execute("sleep 1.5") -- an empty directory is looked at once more, a second later
    local before = sum(pid, "\nvoluntary_ctxt_switches")
    os.execute("sleep 1")
    local woken = sum(pid, "\nvoluntary_ctxt_switches") - before
    local dirty = tonumber(read("/proc/" .. pid .. "/smaps_rollup"):match("Private_Dirty:%s*(%d+)"))
    write(dir .. "/go", "")
    assert.are.equal(0, (finish()))
    assert.are.equal(0, woken)
    if (os.getenv("SANITIZE") or "") == "" then assert.is_true(dirty < 8192, dirty .. " KiB") end
  end)
end)

describe("watch", function()
  it("commits what another job writes, until it is told to end", function()
    sh("mkdir '" .. dir .. "/out'")
    local pid = start("", "", "watch")
    await("the watch", function()
      local said = sh(("cd '%s' && '%s' status --json out 2>&1"):format(dir, CKPT))
      return said:find('"alive":true', 1, true)
    end)
    sh(("cd '%s' && mkdir out/.new && echo w >out/.new/model.bin && mv out/.new out/checkpoint-4")
      :format(dir))
    await_commit(4)
    sh("kill -TERM " .. pid)
    local code, err = finish()
    assert.are.equal(0, code, err)
    has(err, "newest checkpoint-4 (step 4)")
  end)
end)
