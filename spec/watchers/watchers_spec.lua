-- Several watchers of one directory, each with a state and a target of its own: all get every
-- checkpoint, one of them owns the directory, and nothing is freed that one of them has not saved.

package.path = "./spec/?.lua;" .. package.path
local support = require "support"
local place = require "place"
local at, has, lacks, needs = place.at, place.has, place.lacks, place.needs
local CKPT, sh, read, write, await =
  support.runner, support.sh, support.read, support.write, support.await

local dir, begun

-- The job writes checkpoint N when it is told to, and ends when it is told to.
local JOB = [[
echo $$ >@/job.new; mv @/job.new @/job.pid
for n in 1 2 3 4 5 6; do
  until [ -e @/go.$n ]; do [ -e @/end ] && exit 0; sleep 0.02; done
  mkdir $CKPT_DIR/.new; echo "weights $n" >$CKPT_DIR/.new/model.bin
  echo '{}' >$CKPT_DIR/.new/trainer_state.json
  mv $CKPT_DIR/.new $CKPT_DIR/checkpoint-$n
done
until [ -e @/end ]; do sleep 0.02; done
]]

-- Nothing outlives its test, a stopped process neither.
after_each(function()
  write(dir .. "/end", "")
  for name in pairs(begun) do
    local pid = (read(dir .. "/" .. name .. ".pid") or ""):match "%d+"
    if pid then sh(("kill -CONT %s; kill -TERM %s"):format(pid, pid)) end
  end
  for name in pairs(begun) do
    await("the end of " .. name, function() return read(dir .. "/" .. name .. ".rc") end)
  end
end)

place.with_directory(function(made)
  dir, begun = made, {}
  sh(at("mkdir @/out"))
  write(at("@/job.sh"), at(JOB))
  write(at("@/frees.lua"), "return { api = 1, keep_local = keep.last(1) }")
end)

-- Begins a watcher in the background: what it says goes to NAME.txt, its exit code to NAME.rc.
local function begin(name, args, wrap)
  local function named(text) return (at(text):gsub("NAME", name)) end
  begun[name] = true
  for _, ending in ipairs { "pid", "rc", "txt" } do os.remove(named("@/NAME." .. ending)) end
  write(named "@/NAME.sh", named(("echo $$ >@/NAME.pid.new; mv @/NAME.pid.new @/NAME.pid\n" ..
    "exec '%s' %s"):format(CKPT, args)))
  os.execute(named(("{ %s sh @/NAME.sh; echo $? >@/NAME.rc.new; mv @/NAME.rc.new @/NAME.rc; } " ..
    "</dev/null >@/NAME.txt 2>&1 &"):format(wrap or "")))
end

local function said(name) return read(dir .. "/" .. name .. ".txt") or "" end
local function pid(name)
  return await(name .. "'s process", function() return read(dir .. "/" .. name .. ".pid") end)
    :match "%d+"
end

local function await_said(name, part)
  local ok, why = pcall(await, ("%s says %q"):format(name, part), function()
    return said(name):find(part, 1, true) or read(dir .. "/" .. name .. ".rc")
  end)
  assert(ok and said(name):find(part, 1, true), ("%s\n%s"):format(why, said(name)))
end

local function ended(name)
  local code = await("the end of " .. name, function() return read(dir .. "/" .. name .. ".rc") end)
  begun[name] = nil
  return tonumber(code)
end

local function stop(name)
  sh("kill -TERM " .. pid(name))
  return ended(name)
end

local function kill(name)
  sh("kill -9 " .. pid(name))
  ended(name)
end

-- Each watcher has a state and a target of its own, which have its name.
local function run(name, more) -- the job is part of it
  begin(name, ("run --dir @/out --to @/to-%s --settle 0 -v %s -- sh @/job.sh")
    :format(name, more or ""))
  await_said(name, "fresh start")
end

local function watch(name, more, wrap)
  begin(name, ("watch --dir @/out --state @/state-%s --to @/to-%s --settle 0 -v %s")
    :format(name, name, more or ""), wrap)
  -- Its socket listens from then on.
  await(name, function()
    return place.sh(("'%s' status --state state-%s"):format(CKPT, name)):find("target", 1, true)
  end)
end

local function save(n) write(dir .. "/go." .. n, "") end
local function await_saved(name, n)
  await_said(name, "committed checkpoint-" .. n)
end

local function here(n) return place.there(("out/checkpoint-%d/model.bin"):format(n)) end
local function await_gone(n)
  await("checkpoint-" .. n .. " is freed", function() return not here(n) end)
end

local function files() return place.sh("ls out.ckpt/watchers 2>/dev/null"):gsub("%s+$", "") end

describe("a directory with several watchers", function()
  it("is saved to the target of each, by a run and watchers that came before and after", function()
    watch "early"
    run "main"
    watch "late"
    for n = 1, 3 do
      save(n)
      for _, name in ipairs { "early", "main", "late" } do await_saved(name, n) end
    end
    write(dir .. "/end", "")
    assert.are.equal(0, ended "main", said "main")
    assert.are.equal(0, stop "early", said "early")
    assert.are.equal(0, stop "late", said "late")
    for _, name in ipairs { "early", "main", "late" } do
      assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", place.listed("to-" .. name))
      place.must("verify to-" .. name)
    end
  end)

  it("is saved elsewhere by a sync beside the run", function()
    run "main"
    save(1)
    await_saved("main", 1)
    place.must "sync out --state other --to second --settle 0"
    assert.are.equal("checkpoint-1", place.listed "second")
    assert.are.equal("", place.sh("ls -d out.ckpt/quarantine 2>/dev/null"):gsub("%s", ""))
  end)

  it("refuses a second run whatever its state and target are, and names the owner", function()
    run "main"
    for _, more in ipairs { "", "--restore never", "--owns-dir" } do
      local text = place.says(11, "run --dir out --state other --to second " .. more ..
        " -- touch started")
      has(text, "process " .. pid "main")
      has(text, "to file://" .. dir .. "/to-main")
    end
    assert.is_false(place.there "started")
    assert.is_nil(read(dir .. "/second/.ckpt/log/00000000000000000000.json"))
    save(1)
    await_saved("main", 1)
  end)

  it("refuses a second watcher with the same state", function()
    watch "one"
    has(place.says(11, "watch --dir out --state state-one --to second"), "state-one")
  end)

  it("passes to the next run when its owner was killed", function()
    run "main"
    local job = await("the job", function() return read(dir .. "/job.pid") end):match "%d+"
    kill "main"
    write(dir .. "/end", "")
    await("the job's end", function() return not support.alive(job) end)
    local text = place.says(0, "run --dir out --state other --to second --settle 0 -- true")
    lacks(text, "another process")
  end)

  it("is asked by its path: the run, else the one that watches", function()
    watch "one"
    has(place.must "status out", "to-one")
    watch "two"
    has(place.says(1, "status out"), dir .. "/state-two")
    run "main"
    has(place.must "status out", "to-main")
    has(place.must "status --state state-two", "to-two")
  end)

  it("tells a watcher that may not say what it has saved", function()
    if not needs("setpriv --reuid 1234 --clear-groups true") then return end
    sh(at("chmod 755 @/ && mkdir -m 777 @/theirs"))
    run "main"
    local text = sh(at("setpriv --reuid 1234 --clear-groups CKPT sync @/out " ..
      "--state @/theirs/state --to @/theirs/to --settle 0"))
    has(text, "may free there what this one has not saved")
    save(1)
    await_saved("main", 1)
  end)

  it("does not pass while a job that a killed owner left may write there", function()
    write(at("@/job.sh"), at("trap '' TERM; echo $$ >@/job.new; mv @/job.new @/job.pid\n" ..
      "until [ -e @/end ]; do sleep 0.02; done"))
    run "main"
    local job = await("the job", function() return read(dir .. "/job.pid") end):match "%d+"
    kill "main"
    for _ = 1, 2 do -- a refusal changes nothing
      local text = place.says(11, "run --dir out --state other --to second -- touch started")
      has(text, "process " .. job)
      has(text, dir .. "/out.ckpt")
    end
    assert.is_false(place.there "started")
    write(dir .. "/end", "")
    await("the job's end", function() return not support.alive(job) end)
    place.says(0, "run --dir out --state other --to second --settle 0 -- touch started")
  end)

  it("is not owned by who only watches: it restores and quarantines nothing", function()
    sh(at("mkdir @/out/checkpoint-7; printf cut >@/out/checkpoint-7/model.safetensors"))
    watch "one"
    assert.is_true(place.there "out/checkpoint-7/model.safetensors")
    run "main"
    await_said("main", "quarantine")
    assert.is_false(place.there "out/checkpoint-7/model.safetensors")
  end)
end)

describe("what keep_local lets go", function()
  it("stays until the slower watcher has saved it, too", function()
    watch "slow"
    sh("kill -STOP " .. pid "slow")
    run("main", "-p @/frees.lua")
    save(1)
    await_saved("main", 1)
    save(2)
    await_said("main", at "checkpoint-1 stays until the watcher with the state @/state-slow")
    assert.is_true(here(1))
    sh("kill -CONT " .. pid "slow")
    await_saved("slow", 2)
    await_gone(1)
    assert.is_true(here(2))
  end)

  it("stays while a killed watcher is registered, which is named, until it saved it", function()
    watch "other"
    kill "other"
    local file = dir .. "/out.ckpt/watchers/" .. files()
    run("main", "-p @/frees.lua")
    save(1)
    await_saved("main", 1)
    save(2)
    await_said("main", "remove " .. file)
    has(said "main", "warning")
    has(said "main", dir .. "/to-other")
    assert.is_true(here(1))
    watch "other"
    await_gone(1)
    has(place.listed "to-other", "checkpoint-2")
  end)

  it("goes when the user has removed the file of the one that does not come back", function()
    watch "other"
    kill "other"
    local file = dir .. "/out.ckpt/watchers/" .. files()
    run("main", "-p @/frees.lua")
    save(1)
    await_saved("main", 1)
    save(2)
    await_said("main", "remove " .. file)
    os.remove(file)
    save(3)
    await_gone(2)
    assert.is_false(here(1))
  end)

  it("does not wait for a killed one whose target another one has taken over", function()
    watch "other"
    kill "other"
    begin("heir", "watch --dir @/out --state @/state-heir --to @/to-other --take-over --settle 0")
    run("main", "-p @/frees.lua")
    save(1)
    await_saved("main", 1)
    await_saved("heir", 1)
    save(2)
    await_gone(1)
    lacks(said "main", "does not live")
  end)

  it("does not wait for one that has ended with all saved", function()
    watch "other"
    assert.are.equal(0, stop "other", said "other")
    assert.are.equal("", files())
    run("main", "-p @/frees.lua")
    save(1)
    await_saved("main", 1)
    save(2)
    await_gone(1)
    lacks(said "main", "stays")
  end)

  it("is freed by a lone watcher, and by none beside a run", function()
    watch("alone", "-p @/frees.lua")
    run "main"
    save(1)
    await_saved("alone", 1)
    await_saved("main", 1)
    save(2)
    await_said("alone", "this watcher frees nothing here")
    has(said "alone", "process " .. pid "main")
    assert.is_true(here(1))
    write(dir .. "/end", "")
    assert.are.equal(0, ended "main", said "main")
    sh(at("mkdir @/new; echo w >@/new/model.bin; mv @/new @/out/checkpoint-3"))
    await_gone(1)
    await_gone(2)
    assert.is_true(here(3))
  end)

  it("stays when the owner was frozen, and finds its term over", function()
    watch "slow"
    sh("kill -STOP " .. pid "slow")
    run("main", "-p @/frees.lua --grace 1")
    save(1)
    await_saved("main", 1)
    save(2)
    await_said("main", "checkpoint-1 stays until")
    sh("kill -STOP " .. pid "main")
    -- Somebody takes the target over from elsewhere; then nobody but the owner's term hinders it.
    sh(at("mkdir @/elsewhere"))
    place.says(0, "run --dir elsewhere --to to-main --continue-run --take-over --restore never " ..
      "-- true")
    sh("kill -CONT " .. pid "slow")
    await_saved("slow", 2)
    sh("kill -CONT " .. pid "main")
    await_said("main", "a newer run")
    write(dir .. "/end", "")
    ended "main"
    assert.is_true(here(1))
  end)
end)

-- As hosts are told apart: by the boot and the machine. The file system is one of a network as far
-- as is known.
describe("a directory on a network file system", function()
  local OTHER = [[unshare -m -u sh -c '
    mount --bind @/boot /proc/sys/kernel/random/boot_id && hostname elsewhere && exec "$@"' sh]]

  local function network()
    local what = "/usr/bin/python3 -c 'import fusepy' && test -w /dev/fuse && unshare -m -u true"
    if not needs(what) then return false end
    write(dir .. "/boot", "11111111-2222-4333-8444-555555555555\n")
    sh(at("mkdir @/below @/net"))
    os.execute(at("/usr/bin/python3 spec/fs/plain_fuse.py @/below @/net " ..
      "</dev/null >/dev/null 2>&1 &"))
    await("the mount", function() return sh(at("mountpoint -q @/net; echo $?")):match "0" end)
    sh(at("mkdir @/net/out"))
    return true
  end

  after_each(function() if dir then sh(at("umount -l @/net 2>/dev/null")) end end)

  local function elsewhere(state, to, more)
    return sh(at(OTHER .. (" CKPT run --run one --dir @/net/out --state @/%s --to @/%s " ..
      "--settle 0 --poll %s -- touch @/started"):format(state, to, more or "")))
  end

  it("passes from a dead host by a new term of its log alone", function()
    if not network() then return end
    begin("main", "run --run one --dir @/net/out --state @/state-main --to @/to-main " ..
      "--settle 0 --poll -- sh @/job.sh")
    await_said("main", "fresh start")
    save(1)
    await_said("main", "committed checkpoint-1")
    kill "main"
    local text, code = elsewhere("other", "second")
    assert.are.equal(11, code, text)
    has(text, "may be frozen")
    has(text, "host " .. sh("hostname"):match "%S+")
    assert.is_false(place.there "started")
    text, code = elsewhere("other", "to-main", "--take-over")
    assert.are.equal(0, code, text)
    assert.is_true(place.there "started")
    -- That one has given it up.
    text, code = sh(at("CKPT run --run one --dir @/net/out --state @/third --to @/second " ..
      "--settle 0 --poll -- true"))
    assert.are.equal(0, code, text)
  end)
end)

describe("where the directory can have nothing beside it", function()
  local MOUNT = "mount -t tmpfs none @/out || exit 77\n"

  local function in_a_mount(args)
    write(at("@/mount.sh"), at(MOUNT .. "mkdir @/out/checkpoint-1; cd @/ || exit 77\n" ..
      "printf cut >out/checkpoint-1/model.safetensors\n'" .. CKPT .. "' " .. args ..
      "; code=$?; ls out; exit $code"))
    return sh(at("unshare -m sh @/mount.sh"))
  end

  it("a run says whose word it needs, and restores on that", function()
    if not needs("unshare -m true") then return end
    local run_there = "run --dir out --state state --to to --settle 0"
    local text, code = in_a_mount(run_there .. " -- touch started")
    assert.are.equal(2, code, text)
    has(text, "--owns-dir")
    has(text, "mount point")
    has(text, "checkpoint-1")
    assert.is_false(place.there "started")
    text, code = in_a_mount(run_there .. " --owns-dir -- touch started")
    assert.are.equal(0, code, text)
    has(text, "quarantine")
    assert.is_true(place.there "started")
  end)

  it("one that only watches needs nobody's word", function()
    if not needs("unshare -m true") then return end
    local text, code = in_a_mount("sync out --state state --to to --settle 0")
    assert.is_truthy(code == 3 or code == 4, text)
    lacks(text, "--owns-dir")
  end)
end)
