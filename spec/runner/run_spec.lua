-- `ckpt-lua run` and `watch` as a user sees them: real processes, a real store, shell scripts as
-- training programs.

local place = require "place"
local support = require "support"
local has, has_not, sh, sh_ends = place.has, place.lacks, place.sh, place.sh_ends
local CKPT, read, write, await = support.runner, support.read, support.write, support.await
local alive, finish, await_file = support.alive, place.ended, place.await_file

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

local function run(code, job, args)
  return sh_ends(code, "( " .. command(job, args) .. " )")
end

-- In the background: its process id.
local function start(job, args, verb)
  os.remove(dir .. "/pid")
  place.background("echo $$ >pid.new; mv pid.new pid\n" .. command(job, args, verb))
  return tonumber(await("the start", function() return read(dir .. "/pid") end))
end

-- Until checkpoint N of the run in the background is committed.
local function await_commit(n)
  local line = ("committed checkpoint-%d "):format(n)
  await("the commit", function()
    return (read(dir .. "/err.log") or ""):find(line, 1, true)
  end)
end

place.with_directory(function(made) dir = made end)

describe("a run", function()
  it("commits each checkpoint, ends with 0, and says so in one last line", function()
    local text = run(0, "save 1; save 2; save 3")
    has(text, "committed checkpoint-3 (step 3, 2 files, ")
    has(text, "newest checkpoint-3 (step 3)")
    assert.are.equal("weights 3\n", read(dir .. "/store/checkpoint-3/model.bin"))
    local exit = read(dir .. "/out.ckpt/exit.json")
    has(exit, '"exit_code":0')
    has(exit, '"durable":true')
  end)

  it("gives the job its directory and its socket, and nothing to resume from at first", function()
    run(0, [[
      test "$CKPT_DIR" = "$PWD/out" && test -S "$CKPT_SOCKET" || exit 1
      test -z "${CKPT_RESUME+x}${CKPT_RESTORED_FROM+x}$1"]], "--resume-arg '--resume {}'")
  end)

  it("resumes from the newest commit when the directory is gone", function()
    run(0, "save 1; save 2")
    sh("rm -rf '" .. dir .. "/out'")
    local text = run(0, [[
      echo "$1 $2" >args; echo "$CKPT_RESUME" >resume; echo "$CKPT_RESTORED_FROM" >from
      cat "$CKPT_RESUME/model.bin"]], "--resume-arg '--resume {}'")
    has(text, "weights 2\n")
    local path = read(dir .. "/resume")
    assert.are.equal("checkpoint-2\n", path:match("[^/]*$"))
    assert.are.equal("--resume " .. path, read(dir .. "/args"))
    has(read(dir .. "/from"), "file://")
  end)

  it("leaves nothing of its own in the directory", function()
    run(0, "save 1")
    assert.are.equal("checkpoint-1\n", (sh("ls -A '" .. dir .. "/out'")))
  end)

  it("has the job's own code when that is not 0", function()
    local text = run(9, "save 1; exit 9")
    has(text, "newest checkpoint-1")
    run(137, "kill -KILL $$")
    has(read(dir .. "/out.ckpt/exit.json"), '"child":{"signal":9}')
  end)

  it("has the codes of shells when the command cannot be run", function()
    local plain = ("cd '%s' && '%s' run --dir out --to store "):format(dir, CKPT)
    local text = sh_ends(127, plain .. "no-such-command")
    has(text, "no-such-command")
    sh_ends(126, plain .. "--run id2 --continue-run /tmp")
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
    local text = run(0, 'cat "$CKPT_RESUME/model.bin"')
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
    local text = run(0, ([[
      case "$(cat /proc/%d/stat 2>/dev/null)" in "" | *") Z "*) exit 0 ;; esac
      exit 1]]):format(job), "--grace 0.3")
    assert.is_false(alive(job))
    has(text, ("process %d "):format(job))
    has(text, "of an earlier run is still alive")
  end)

  it("ends what the job leaves running", function()
    run(0, "(touch up; while :; do sleep 0.02; done) & echo $! >left; await up")
    assert.is_false(alive(tonumber(read(dir .. "/left"))))
  end)

  it("takes only checkpoints of --unit", function()
    local job = "save 1; mv out/checkpoint-1 out/snap_1; save 2"
    local text = run(0, job, "--unit 'snap_{step}/'")
    has(text, "committed snap_1 (step 1, ")
    has_not(text, "committed checkpoint-2")
  end)

  it("says at the end that files belong to no checkpoint; --require-commit makes it 4", function()
    local text = run(0, "echo x >out/notes.xyz")
    has(text, "notes.xyz")
    has(text, "--unit")
    run(4, "echo y >out/notes.xyz", "--require-commit")
  end)
end)

describe("a run is refused", function()
  it("where another one works in the same state directory", function()
    local pid = start("touch up; await go")
    await_file("up")
    run(11, "touch ran")
    assert.is_nil(read(dir .. "/ran"))
    assert.is_true(alive(pid))
    write(dir .. "/go", "")
    assert.are.equal(0, (finish()))
  end)

  it("at a target of another run, unless it is told to go on", function()
    run(0, "save 1", "--run first")
    local text = run(11, "touch ran", "--run second")
    has(text, "first")
    has(text, "second")
    has(text, "--continue-run")
    assert.is_nil(read(dir .. "/ran"))
    text = run(0, 'cat "$CKPT_RESUME/model.bin"', "--run second --continue-run")
    has(text, "weights 1\n")
  end)

  it("with code 4 when --restore required finds nothing", function()
    run(4, "touch ran", "--restore required")
    assert.is_nil(read(dir .. "/ran"))
  end)

  it("with code 2 for options that it does not know", function()
    local text = run(2, "true", "--unti x")
    has(text, "did you mean --unit?")
  end)
end)

describe("restore", function()
  it("never: takes the directory as it is", function()
    run(0, "save 1")
    sh("rm -rf '" .. dir .. "/out'")
    run(0, 'test -z "$CKPT_RESUME" && ! ls out/checkpoint-1', "--restore never")
  end)

  it("of a name: resumes from that one", function()
    run(0, "save 1; sleep 0.2; save 2")
    sh("rm -rf '" .. dir .. "/out'")
    local text = run(0, 'cat "$CKPT_RESUME/model.bin"', "--restore checkpoint-1")
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
    -- An empty directory is looked at once more, a second later, and evict.json two seconds after.
    os.execute("sleep 3.5")
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
