-- Whose a target is: the run id follows from the program and the directory, not from flags.

local place = require "place"
local support = require "support"
local has, lacks, ends, sh, must = place.has, place.lacks, place.ends, place.sh, place.must

local dir

-- A trainer that saves the checkpoints that the file `steps` names, and takes any flag.
local function trainer(name)
  support.write(dir .. "/" .. name, [[
    for n in $(cat steps); do
      mkdir -p out/.new; echo "$n" >out/.new/model.bin; mv out/.new out/checkpoint-$n; sleep 0.05
    done]])
end

local function run(code, command, saves, options)
  support.write(dir .. "/steps", saves)
  local _, err = ends(code, ("run --dir out --to store --settle 0 %s -- %s")
    :format(options or "", command))
  return err
end

local function steps()
  local list = {}
  for _, item in ipairs(place.objects(must "ls store --json")) do list[#list + 1] = item.step end
  return table.concat(list, " ")
end

place.with_directory(function(made)
  dir = made
  trainer "train.sh"
end)

describe("the default run id", function()
  it("stays the same when a flag, or the launcher, changes", function()
    run(0, "sh train.sh --lr 0.1", "1")
    has(run(0, "sh train.sh --lr 0.2", "2"), "resume from")
    has(run(0, "nice -n 1 env X=1 bash ./train.sh --lr 0.2", "3"), "resume from")
    assert.are.equal("1 2 3", steps())
  end)

  it("is another one for another program", function()
    trainer "other.sh"
    run(0, "sh train.sh", "1")
    local err = run(11, "sh other.sh", "2")
    has(err, "--continue-run once")
    has(err, "--run ")
    has(err, "another target (--to)")
  end)
end)

describe("a changed flag", function()
  it("is told, and what was saved before is kept until the user says that it is the same run",
    function()
      support.write(dir .. "/last.lua", "return { api = 1, keep = keep.last(1) }")
      local options = "-p ./last.lua --max-delete 100% --restore never"
      run(0, "sh train.sh --lr 1", "1 2 3", options)
      assert.are.equal("3", steps())
      lacks(run(0, "sh train.sh --lr 1", "4", options), "flags")
      assert.are.equal("4", steps())
      has(run(0, "sh train.sh --lr 2", "5 6", options), "the job's flags are not those")
      assert.are.equal("4 6", steps())
      lacks(run(0, "sh train.sh --lr 2", "7", options), "the job's flags are not those")
      assert.are.equal("4 7", steps())
      has(must("plan store -p ./last.lua"), "saved under other flags")
      run(0, "sh train.sh --lr 2", "8", options .. " --continue-run")
      assert.are.equal("8", steps())
      lacks(run(0, "sh train.sh --lr 2", "9", options), "flags")
      assert.are.equal("9", steps())
    end)

  it("is the user's word too where the run is called by its name", function()
    support.write(dir .. "/last.lua", "return { api = 1, keep = keep.last(1) }")
    local options = "-p ./last.lua --max-delete 100% --restore never --run mine"
    run(0, "sh train.sh --lr 1", "1 2", options)
    lacks(run(0, "sh train.sh --lr 2", "3", options), "flags are not")
    assert.are.equal("3", steps())
  end)
end)

describe("--continue-run", function()
  it("is needed once", function()
    trainer "other.sh"
    run(0, "sh train.sh", "1")
    run(11, "sh other.sh", "2")
    run(0, "sh other.sh", "2", "--continue-run")
    run(0, "sh other.sh", "3")
    run(0, "sh train.sh", "4")
    assert.are.equal("1 2 3 4", steps())
  end)

  it("and the id that 11 names are one", function()
    trainer "other.sh"
    run(0, "sh train.sh", "1")
    local id = run(11, "sh other.sh", "2"):match "%-%-run (%x+)"
    run(0, "sh other.sh", "2", "--run " .. id)
    assert.are.equal("1 2", steps())
  end)
end)

describe("a target in which nothing was committed", function()
  it("is the corrected command's", function()
    run(127, "pyhton nosuch.py", "")
    run(0, "sh train.sh", "1")
    run(0, "sh train.sh --lr 1", "2")
    assert.are.equal("1 2", steps())
  end)

  it("stays another's whose lease is alive", function()
    local go = dir .. "/go"
    sh(("mkfifo go; (cd '%s'; exec '%s' run --dir out2 --to store -- sh -c 'touch up; cat go' " ..
      ") >first.txt 2>&1 & echo $! >pid"):format(dir, support.runner))
    support.await("the first run", function() return support.read(dir .. "/up") end)
    has(run(11, "sh train.sh", "1"), "belongs to run")
    support.write(go, "on\n")
    local pid = support.read(dir .. "/pid"):match "%d+"
    support.await("its end", function() return not support.alive(pid) end)
    run(0, "sh train.sh", "1") -- it released its lease, and had committed nothing
  end)
end)
