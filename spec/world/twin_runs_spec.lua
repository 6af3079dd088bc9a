-- Whose process: two runs of one user that share no file never touch one another, whatever their
-- paths, mounts, containers and host names say. What a killed run of the very same state directory
-- left alive is ended.

local support = require "support"
local place = require "place"
local at, has, has_not, needs = place.at, place.has, place.lacks, place.needs
local CKPT, sh, read, write, await =
  support.runner, support.sh, support.read, support.write, support.await

local dir

-- A job that tells the name it has, reports to its run, saves when it is let go on, and says how it
-- came to its end. It works in the directory that the run was started in.
local JOB = [[
echo $$ >pid.new && mv pid.new "$CTL/$1.pid"
trap 'echo "terminated" >"$CTL/$1.end"; exit 143' TERM
"$CKPT" notify loss="$2" >"$CTL/$1.notify" 2>&1; echo $? >>"$CTL/$1.notify"
touch "$CTL/$1.up"
until [ -e "$CTL/$1.go" ]; do sleep 0.05; done
"$CKPT" notify loss="$2" name="$1" >>"$CTL/$1.notify" 2>&1; echo $? >>"$CTL/$1.notify"
mkdir "$CKPT_DIR/.new" && echo "$1" >"$CKPT_DIR/.new/model.bin" &&
  mv "$CKPT_DIR/.new" "$CKPT_DIR/checkpoint-1"
echo "finished" >"$CTL/$1.end"
]]

-- A policy that writes into its reasons what it was told.
local TELLS = [[
  return {
    api = 1,
    sync = function(e)
      local r = e.result
      if not r then return "skip", "no result yet" end
      return "sync", "told by " .. tostring(r.name)
    end,
  }]]

before_each(function()
  dir = place.begin()
  sh(at("mkdir @/ctl"))
  write(at("@/job.sh"), JOB)
  write(at("@/tells.lua"), TELLS)
end)

after_each(function()
  sh("touch " .. dir .. "/ctl/A.go " .. dir .. "/ctl/B.go")
  for _, name in ipairs { "A", "B" } do
    if read(dir .. "/ctl/" .. name .. ".up") then
      for _ = 1, 200 do
        if read(dir .. "/ctl/" .. name .. ".rc") then break end
        os.execute("sleep 0.05")
      end
    end
  end
  sh("rm -rf '" .. dir .. "'")
end)

-- Starts job `name` in the background below `wrap` (a command that runs a script), after `before`.
-- `args` are the run's own.
local function start(name, wrap, before, args)
  local text = at([[
    export CKPT=$RUNNER CTL=@/ctl
    $BEFORE
    "$CKPT" run $ARGS -p @/tells.lua --settle 0 -- sh @/job.sh $NAME $LOSS >@/ctl/$NAME.out 2>&1
    echo $? >@/ctl/$NAME.new; mv @/ctl/$NAME.new @/ctl/$NAME.rc]])
  local values = { RUNNER = CKPT, BEFORE = at(before), ARGS = at(args), NAME = name,
    LOSS = name == "A" and "1" or "2" }
  write(at("@/" .. name .. ".sh"), (text:gsub("%$(%u+)", values)))
  os.execute(("%s sh '%s/%s.sh' </dev/null >/dev/null 2>&1 &"):format(wrap, dir, name))
  await("job " .. name, function()
    return read(at("@/ctl/" .. name .. ".up")) or read(at("@/ctl/" .. name .. ".rc"))
  end)
end

local function out(name) return read(dir .. "/ctl/" .. name .. ".out") or "" end
local function let_go(name) write(dir .. "/ctl/" .. name .. ".go", "") end

local function finish(name)
  let_go(name)
  return tonumber((await("the end of " .. name, function()
    return read(dir .. "/ctl/" .. name .. ".rc")
  end)))
end

-- Both end well, both committed, each was told by its own job alone.
local function must_both_live(store_a, store_b)
  for _, name in ipairs { "A", "B" } do
    assert.is_nil(read(dir .. "/ctl/" .. name .. ".end"), "job " .. name .. " has ended: " ..
      out("A") .. out("B"))
    has_not(out(name), "ending it")
  end
  assert.are.equal(0, finish("A"), out("A"))
  assert.are.equal(0, finish("B"), out("B"))
  for name, store in pairs { A = store_a, B = store_b } do
    assert.are.equal("finished\n", read(dir .. "/ctl/" .. name .. ".end"))
    assert.are.equal("0\n0\n", read(dir .. "/ctl/" .. name .. ".notify"))
    local text = place.sh_ends(0, ("'%s' show '%s'"):format(CKPT, store))
    has(text, "told by " .. name)
  end
end

describe("two runs of one user that share no file", function()
  local BOUND = { A = "mount --bind @/A @/w && cd @/w || exit 1",
    B = "mount --bind @/B @/w && cd @/w || exit 1" }

  it("live side by side with one path in two mount namespaces, bound there", function()
    if not needs("unshare -m true") then return end
    sh(at("mkdir -p @/A/out @/B/out @/w"))
    start("A", "unshare -m", BOUND.A, "--dir out --to @/w/store")
    start("B", "unshare -m", BOUND.B, "--dir out --to @/w/store")
    must_both_live(at("@/A/store"), at("@/B/store"))
  end)

  it("live side by side with one path on a private tmpfs each", function()
    if not needs("unshare -m true") then return end
    sh(at("mkdir @/scratch"))
    local before = [[
      mount -t tmpfs -o size=16m none @/scratch && cd @/scratch && mkdir out || exit 1]]
    start("A", "unshare -m", before, "--dir out --to @/store-A")
    start("B", "unshare -m", before, "--dir out --to @/store-B")
    must_both_live(at("@/store-A"), at("@/store-B"))
  end)

  it("live side by side when one of them has a process namespace of its own", function()
    if not needs("unshare -m -p -f --mount-proc true") then return end
    sh(at("mkdir -p @/A/out @/B/out @/w"))
    start("A", "unshare -m -p -f --mount-proc", BOUND.A, "--dir out --to @/w/store")
    start("B", "unshare -m", BOUND.B, "--dir out --to @/w/store")
    must_both_live(at("@/A/store"), at("@/B/store"))
  end)

  it("live side by side when the state of the second is a copy of the first's", function()
    sh(at("mkdir -p @/A/out @/B"))
    start("A", "", "cd @/A", "--dir out --to @/store-A")
    sh(at("cp -a @/A/. @/B/"))
    start("B", "", "cd @/B", "--dir out --to @/store-B")
    must_both_live(at("@/store-A"), at("@/store-B"))
    has(out("B"), "left alone")
  end)

  it("live side by side when the copy stands at the first's own path in another mount", function()
    if not needs("unshare -m true") then return end
    sh(at("mkdir -p @/A/out @/B"))
    start("A", "", "cd @/A", "--dir out --to @/store-A")
    sh(at("cp -a @/A/. @/B/"))
    start("B", "unshare -m", "mount --bind @/B @/A && cd @/A || exit 1",
      "--dir out --to @/store-B")
    must_both_live(at("@/store-A"), at("@/store-B"))
  end)
end)

describe("what a killed run left alive", function()
  -- Ignores the signal that it gets when its run dies.
  local STAYS = [[
    trap '' TERM
    echo $$ >"$CTL/stays.new"; mv "$CTL/stays.new" "$CTL/stays"
    while :; do sleep 0.1; done]]

  -- A run that is killed with SIGKILL; its job stays. Returns the job's pid.
  local function leave_one(wrap)
    sh(at("mkdir -p @/w/out"))
    write(at("@/stays.sh"), STAYS)
    write(at("@/killed.sh"), at([[
      cd @/w; export CTL=@/ctl; echo $$ >@/ctl/runner
      exec ]] .. CKPT .. [[ run --run one --dir out --to @/store -- ]] .. (wrap or "") ..
      " sh @/stays.sh"))
    os.execute(at("sh @/killed.sh </dev/null >/dev/null 2>&1 &"))
    local pid = await("the job", function() return read(at("@/ctl/stays")) end):match("%d+")
    support.kill(read(at("@/ctl/runner")):match("%d+"))
    assert.is_true(support.alive(pid))
    return pid
  end

  local function run_again(args, before)
    return sh(at("cd @/w && " .. (before or "") .. " " .. CKPT ..
      " run --run one --dir out --to @/store --grace 1 " .. (args or "") .. " -- true"))
  end

  it("is ended by the next run of that state directory", function()
    local pid = leave_one()
    local text, code = run_again()
    assert.are.equal(0, code, text)
    has(text, "process " .. pid)
    has(text, "ending it")
    assert.is_false(support.alive(pid))
  end)

  it("is ended though the directory was renamed, or is reached by another path", function()
    local pid = leave_one()
    sh(at("mv @/w @/moved && ln -s moved @/w"))
    local text, code = run_again("--take-over")
    assert.are.equal(0, code, text)
    assert.is_false(support.alive(pid), text)
  end)

  -- The next run ends well and leaves the job alone. Returns what it said.
  local function must_leave(pid, ...)
    local text, code = run_again(...)
    local lives = support.alive(pid)
    sh("kill -9 " .. pid)
    assert.are.equal(0, code, text)
    assert.is_true(lives, text)
    has(text, "left alone")
    return text
  end

  it("is left, and named, when the state is a copy", function()
    local pid = leave_one()
    sh(at("mv @/w/out.ckpt @/first && cp -a @/first @/w/out.ckpt"))
    has(must_leave(pid, "--take-over"), "process " .. pid)
  end)

  it("is left, and named, when it is another user's", function()
    if not needs("setpriv --reuid 1234 --clear-groups true") then return end
    sh(at("chmod 755 @/; chmod 777 @/ctl"))
    local pid = leave_one("setpriv --reuid 1234 --clear-groups")
    has(must_leave(pid), "process " .. pid)
  end)

  it("is left on another boot of the machine", function()
    if not needs("unshare -m true") then return end
    local pid = leave_one()
    write(dir .. "/boot", "11111111-2222-4333-8444-555555555555\n")
    must_leave(pid, "--take-over", [[unshare -m sh -c '
      mount --bind @/boot /proc/sys/kernel/random/boot_id && exec "$@"' sh]])
  end)
end)
