-- Who may go on with a target whose last writer was killed: the same state directory on the same
-- boot at once; the same machine after a reboot when the lease is over; another container with
-- equal host name and path not at all, unless it is told to take over.

local support = require "support"
local place = require "place"
local at, has, needs, sh_ends = place.at, place.has, place.needs, place.sh_ends
local sh, read, write, await = support.sh, support.read, support.write, support.await

local RUN = " CKPT run --run one --dir @/w/out --to @/store --settle 0 --grace 1 "

-- A run that commits a checkpoint and is killed with its job: its lease stays. `in_front` of it
-- stands what gives it a space of processes of its own; then it is ended with that.
local function kill_one(in_front)
  sh(at("mkdir -p @/w/out"))
  write(at("@/job.sh"), at([[
    mkdir $CKPT_DIR/.new; echo w >$CKPT_DIR/.new/model.bin; mv $CKPT_DIR/.new $CKPT_DIR/checkpoint-1
    echo $PPID >@/runner.new; mv @/runner.new @/runner
    exec sleep 60]]))
  local begin = in_front and "echo $$ >@/space; exec " .. in_front or ""
  os.execute(at("(" .. begin .. RUN .. "-- sh @/job.sh) </dev/null >@/first.txt 2>&1 &"))
  await("the commit", function()
    return (read(at("@/first.txt")) or ""):find("committed checkpoint-1", 1, true)
  end)
  support.kill((read(at("@/space")) or read(at("@/runner"))):match("%d+"))
end

-- A start of the same run in another directory, behind `in_front`.
local function elsewhere(in_front, args)
  sh(at("mkdir -p @/other/out"))
  return sh(at(in_front .. " CKPT run --run one --dir @/other/out --to @/store --settle 0 " ..
    "--grace 1 " .. (args or "") .. " -- true"))
end

-- Below a mount namespace in which `mounts` were made.
local function run(args, mounts)
  write(at("@/again.sh"), at((mounts or "true") .. ' || exit 77\nexec "$@"'))
  local begin = os.time()
  local text, code = sh(at((mounts and "unshare -m " or "") .. "sh @/again.sh" .. RUN .. args ..
    " -- true"))
  return text, code, os.time() - begin
end

-- The lease was renewed so many seconds ago, by the store's own clock: the times of its files.
local function renewed(seconds)
  sh(at("touch -d '" .. seconds .. " seconds ago' @/store/.ckpt/lease"))
end

place.with_directory()

describe("the target of a run that was killed", function()
  it("is gone on with at once by the same state directory", function()
    kill_one()
    local text, code = run("")
    assert.are.equal(0, code, text)
    has(text, "resume from")
  end)

  it("is refused to another container with the same host name and path", function()
    if not needs("unshare -m true") then return end
    kill_one()
    sh(at("mkdir -p @/other/out"))
    local text, code = run("", "mount --bind @/other @/w")
    assert.are.equal(11, code, text)
    has(text, "--take-over")
    text, code = run("--take-over", "mount --bind @/other @/w")
    assert.are.equal(0, code, text)
    has(text, "restored from")
  end)

  it("is refused to a copy of the state directory at its very path", function()
    kill_one()
    sh(at("cp -a @/w @/copy && rm -r @/w && mv @/copy @/w"))
    local text, code = run("")
    assert.are.equal(11, code, text)
  end)

  it("is waited for on another boot of the same machine, until the lease is over", function()
    if not needs("unshare -m true && grep -q '^[0-9a-f]\\{32\\}$' /etc/machine-id") then return end
    kill_one()
    write(at("@/boot"), "11111111-2222-4333-8444-555555555555\n")
    renewed(900 - 4)
    local text, code, took =
      run("", "mount --bind @/boot /proc/sys/kernel/random/boot_id")
    assert.are.equal(0, code, text)
    has(text, "started anew")
    has(text, "resume from")
    assert.is_true(took >= 2, "it did not wait: " .. took .. " s")
  end)

  -- Each would give up after six seconds, and the lease stands for longer.
  it("is waited for by the first of several, and the others are told, and wait as long", function()
    if not needs("unshare -m true && grep -q '^[0-9a-f]\\{32\\}$' /etc/machine-id") then return end
    write(at("@/boot"), "11111111-2222-4333-8444-555555555555\n")
    write(at("@/reboot.sh"), at('mount --bind @/boot /proc/sys/kernel/random/boot_id\nexec "$@"'))
    write(at("@/all.sh"), at("touch @/begun.$1\n" ..
      "until [ ! -e @/w -o -e @/begun.0 -a -e @/begun.1 -a -e @/begun.2 ]; do sleep 0.05; done"))
    local REBOOTED = "unshare -m sh @/reboot.sh "

    -- Task n of four on two nodes: 0 and 2 watch, 1 stands by.
    local function start(n, out)
      os.execute(at(("{ env -u SLURM_STEP_ID TORCHELASTIC_RUN_ID=again RANK=%d WORLD_SIZE=4 " ..
        "LOCAL_RANK=%d LOCAL_WORLD_SIZE=2 %s CKPT run --run one --to @/store --settle 0 " ..
        "--rank-wait 6s --dir-is local --dir @/%s -- sh @/all.sh %d; " ..
        "echo $? >@/%d.code; } </dev/null >@/%d.txt 2>&1 &"):format(n, n % 2, REBOOTED, out,
        n, n, n)))
    end

    local function said(n) return read(at("@/" .. n .. ".txt")) or "" end

    local function await_said(n, part)
      await(part, function()
        return said(n):find(part, 1, true) or (read(at("@/" .. n .. ".code")) and error(said(n)))
      end)
    end

    kill_one()
    renewed(900 - 12)
    start(0, "w/out")
    await_said(0, "waiting for up to")
    start(1, "w/out")
    start(2, "other")
    await_said(1, "the first one waits for the lease")
    await_said(2, "rank 0 waits for the lease")
    local text = sh_ends(0, at(REBOOTED .. "CKPT status @/w/out"))
    has(text, "waits for the lease")
    text = sh_ends(0, at(REBOOTED .. "CKPT status --json @/w/out"))
    has(text, '"waits":"the lease')
    for n = 0, 2 do
      local ended = function() return read(at("@/" .. n .. ".code")) end
      assert.are.equal("0\n", await("the end of " .. n, ended, 30), said(n))
    end
  end)

  it("is refused elsewhere, and it is said that its process is gone, and what goes on", function()
    kill_one()
    local text, code = elsewhere ""
    assert.are.equal(11, code, text)
    has(text, "the last writer's process is gone, and its lease stands")
    has(text, at "its state @/w/out.ckpt")
    place.lacks(text, "is alive")
    text, code = elsewhere("", "--wait-lease 1s")
    assert.are.equal(11, code, text)
    place.lacks(text, "is alive")
    text, code = elsewhere("", "--take-over")
    assert.are.equal(0, code, text)
  end)

  -- Its number is nobody's, or another one's, in each other space: that tells nothing.
  it("is not called gone by who does not see its process", function()
    local APART = "unshare -p -f --kill-child --mount-proc"
    if not needs(APART .. " true") then return end
    kill_one()
    for _, in_front in ipairs { APART, "unshare -p -f --kill-child" } do
      local text, code = elsewhere(in_front)
      assert.are.equal(11, code, text)
      has(text, "another writer is alive")
    end
    sh(at("rm -r @/w @/store @/runner @/first.txt"))
    kill_one(APART)
    local text, code = elsewhere ""
    assert.are.equal(11, code, text)
    has(text, "another writer is alive")
  end)

  it("is refused to another machine, which does not wait", function()
    if not needs("unshare -m true && test -e /etc/machine-id") then return end
    kill_one()
    write(at("@/boot"), "11111111-2222-4333-8444-555555555555\n")
    write(at("@/machine"), "0123456789abcdef0123456789abcdef\n")
    renewed(900 - 20)
    local text, code, took = run("", "mount --bind @/boot /proc/sys/kernel/random/boot_id && " ..
      "mount --bind @/machine /etc/machine-id")
    assert.are.equal(11, code, text)
    assert.is_true(took < 15, took)
  end)
end)
