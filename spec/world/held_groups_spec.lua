-- Groups (subdirectories with logs of their own) whose lease a writer still holds: a job that has
-- lost its machine never begins fresh beside them. It is as with the log of the top.

local support = require "support"
local place = require "place"
local at, has, lacks = place.at, place.has, place.lacks
local sh, read, write, await = support.sh, support.read, support.write, support.await

local RUN = " CKPT run --run one --settle 0 --grace 1 --to @/store "

-- Starts host NAME: a job that saves a checkpoint of each trial, and lives until it is ended.
local function start(name, trials, options)
  sh(at("mkdir -p @/" .. name .. "/out"))
  write(at("@/" .. name .. "/job.sh"), at([[
    for t in ]] .. trials .. [[; do
      mkdir -p $CKPT_DIR/exp/$t/.new; echo $t >$CKPT_DIR/exp/$t/.new/model.bin
      mv $CKPT_DIR/exp/$t/.new $CKPT_DIR/exp/$t/checkpoint-1
    done
    echo $PPID >@/runner.new; mv @/runner.new @/]] .. name .. [[/runner
    exec sleep 60]]))
  os.execute(at(RUN .. (options or "") .. " --dir @/" .. name .. "/out -- sh @/" .. name ..
    "/job.sh </dev/null >@/" .. name .. ".txt 2>&1 &"))
  for t in trials:gmatch "%S+" do
    await("the commit of " .. t, function()
      return (read(at("@/" .. name .. ".txt")) or ""):find("committed exp/" .. t, 1, true)
    end)
  end
  await("its name", function() return read(at("@/" .. name .. "/runner")) end)
  return (read(at("@/" .. name .. "/runner")):match "%d+")
end

-- Its machine is gone, with the directory and the state.
local function lose(name, trials, options)
  support.kill(start(name, trials, options))
  sh(at("rm -r @/" .. name))
end

-- The leases of these groups were renewed so many seconds ago, by the store's own clock.
local function renewed(seconds, ...)
  for _, group in ipairs { ... } do
    sh(at("touch -d '" .. seconds .. " seconds ago' @/store/" .. group .. "/.ckpt/lease"))
  end
end

local function run(args, name)
  local begin = os.time()
  local dir = "@/" .. (name or "new") .. "/out"
  sh(at("mkdir -p " .. dir))
  local text, code =
    sh(at(RUN .. "--dir " .. dir .. " " .. args .. " -- touch @/began 2>&1"))
  return text, code, os.time() - begin
end

local function restored()
  return sh(at("cat @/new/out/exp/T1/checkpoint-1/* @/new/out/exp/T2/checkpoint-1/*"))
end

local function refused(text, code, because)
  assert.are.equal(11, code, text)
  assert.is_nil(read(at("@/began")), text)
  has(text, because or "the last writer's process is gone")
end

local function refused_beside_a_live_one(text, code)
  refused(text, code, "another writer is alive")
end

place.with_directory()

describe("groups whose writer was lost with its machine", function()
  it("are no fresh start: it is refused, and says who holds them and what helps", function()
    lose("a", "T1 T2")
    local text, code = run("")
    refused(text, code)
    for _, part in ipairs { "exp/T1", "1 more", "--wait-lease", "--take-over" } do
      has(text, part)
    end
    has(text, "pid ")
    has(text, "--restore never")
    assert.are.equal("", (sh(at("ls @/new/out"))))
  end)

  it("are taken over by the user's word, and gone on with", function()
    lose("a", "T1 T2")
    local text, code = run("--take-over")
    assert.are.equal(0, code, text)
    has(text, "restored from")
    assert.are.equal("T1\nT2\n", (restored()))
  end)

  it("are waited for, all of them, and gone on with", function()
    lose("a", "T1 T2")
    renewed(900 - 5, "exp/T1")
    renewed(900 - 8, "exp/T2")
    local text, code, took = run("--wait-lease 1m")
    assert.are.equal(0, code, text)
    has(text, "Its end is waited for, for up to 60 s")
    has(text, "restored from")
    assert.are.equal("T1\nT2\n", (restored()))
    assert.is_true(took >= 5, "it did not wait: " .. took .. " s")
  end)

  it("are refused when the time to wait is over", function()
    lose("a", "T1")
    refused(run("--wait-lease 2s"))
  end)

  it("are refused where only one of them is free yet: the same writer had them all", function()
    lose("a", "T1 T2")
    renewed(1000, "exp/T1")
    local text, code = run("")
    refused(text, code)
    has(text, "exp/T2")
    renewed(1000, "exp/T2")
    text, code = run("")
    assert.are.equal(0, code, text)
    has(text, "restored from")
  end)

  it("are refused where the directory is there, and the state is not", function()
    support.kill(start("a", "T1"))
    sh(at("rm -r @/a/out.ckpt"))
    refused(run("", "a"))
  end)

  it("are gone on with at once by the same state directory", function()
    support.kill(start("a", "T1"))
    local text, code = run("", "a")
    assert.are.equal(0, code, text)
    has(text, "resume from")
  end)

  it("are begun beside by the user's word", function()
    lose("a", "T1")
    local text, code = run("--restore never")
    assert.are.equal(0, code, text)
    assert.are.equal("", (sh(at("ls @/new/out"))))
  end)

  it("stop no watch and no sync, which begin no job", function()
    lose("a", "T1")
    sh(at("mkdir -p @/new/out/exp/T3/checkpoint-3"))
    write(at("@/new/out/exp/T3/checkpoint-3/model.bin"), "w")
    local text, code = sh(at("CKPT sync @/new/out --run one --to @/store --trust 2>&1"))
    assert.are.equal(0, code, text)
    has((sh(at("CKPT ls @/store 2>&1"))), "exp/T3")
  end)
end)

describe("groups of a writer that lives", function()
  local a
  after_each(function() if a then sh("kill -9 " .. a) end a = nil end)

  it("stay its own, and another host goes on with what it has", function()
    a = start("a", "T1", "--restore never")
    local b = start("b", "T2", "--restore never")
    support.kill(b)
    local text, code = run("", "b")
    assert.are.equal(0, code, text)
    has(text, "exp/T2/checkpoint-1")
    lacks(text, "exp/T1/checkpoint-1")
    assert.is_true(support.alive(a))
  end)

  it("stay its own where another host has lost its machine, once its own lease is over", function()
    a = start("a", "T1", "--restore never")
    lose("b", "T2", "--restore never")
    refused_beside_a_live_one(run(""))
    renewed(900 - 4, "exp/T2")
    local text, code = run("--wait-lease 1m")
    assert.are.equal(0, code, text)
    has(text, "exp/T2/checkpoint-1")
    assert.is_nil(read(at("@/new/out/exp/T1/checkpoint-1/model.bin")))
    lacks((read(at("@/a.txt"))), "newer")
  end)
end)
