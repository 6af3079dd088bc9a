-- What a policy does to a real run: what is saved, what is kept, what happens when it is broken.

local place = require "place"
local support = require "support"
local sh, has = place.sh, place.has
local CKPT = support.runner

local dir

-- A job of so many steps. Each makes a checkpoint with one rename, then runs `each`.
local function job(steps, each)
  support.write(dir .. "/job.sh", ([[
    for n in $(seq %d); do
      mkdir out/.new
      echo "weights $n" >out/.new/model.bin
      mv out/.new out/checkpoint-$n
      %s
    done]]):format(steps, each or "sleep 0.4"))
end

local function policy(name, text) support.write(dir .. "/" .. name .. ".lua", text) end

local function run(code, options)
  return place.says(code, ("run --dir out --to store %s -- sh job.sh"):format(options or ""))
end

-- Names of what is committed and not dropped, in the order of the log.
local function committed()
  local names = {}
  for name in place.ckpt("ls store --json"):gmatch('"name":"([^"]+)"') do
    names[#names + 1] = name
  end
  return table.concat(names, " ")
end

place.with_directory(function(made)
  dir = made
  sh("mkdir out")
end)

describe("a policy in a run", function()
  it("skips what its thresholds do not let through, but for the last", function()
    policy("slow", [[return { api = 1, sync = when.at_most_every "1h" }]])
    job(4)
    run(0, "-p ./slow.lua")
    -- The first is due, and the end of the job forces the last.
    assert.are.equal("checkpoint-1 checkpoint-4", committed())
  end)

  it("sees each result, and may save for it what it skipped before", function()
    policy("loss", [[
      return { api = 1, sync = function(e)
        if e.result and e.result.loss < 0.5 then return "sync", "good loss" end
        return "skip", "loss is not below 0.5"
      end }]])
    job(2, ([[
      sleep 0.5
      [ $n = 1 ] || exit 0
      '%s' notify loss=0.25 epoch=$n
      sleep 0.5]]):format(CKPT))
    local text = run(0, "-p ./loss.lua")
    has(text, "loss is not below 0.5")
    has(committed(), "checkpoint-1")
    local shown = place.ckpt("show store checkpoint-1 --json")
    has(shown, '"loss"')
    has(shown, "good loss")
  end)

  it("keeps what its rules keep: the others are dropped, and deleted after the grace", function()
    policy("keep", [[return { api = 1, keep = keep.last(2) }]])
    job(6, "sleep 0.6")
    run(0, "-p ./keep.lua --grace-delete 0s --max-delete 100%")
    assert.are.equal("checkpoint-5 checkpoint-6", committed())
    assert.is_nil(support.read(dir .. "/store/checkpoint-1/model.bin"))
    assert.is_truthy(support.read(dir .. "/store/checkpoint-6/model.bin"))
    place.must("verify store")
  end)

  it("deletes nothing with --no-delete, and nothing within the grace", function()
    policy("keep", [[return { api = 1, keep = keep.last(1) }]])
    job(4)
    run(0, "-p ./keep.lua --no-delete --max-delete 100% --grace-delete 0s")
    assert.are.equal("checkpoint-4", committed())
    assert.is_truthy(support.read(dir .. "/store/checkpoint-1/model.bin"))
    sh("rm -rf out store out.ckpt; mkdir out")
    run(0, "-p ./keep.lua --max-delete 100%")
    assert.are.equal("checkpoint-4", committed())
    assert.is_truthy(support.read(dir .. "/store/checkpoint-1/model.bin"))
  end)

  it("never saves what has the null marker, and the temporary only when it is named", function()
    job(1, ([[
      marked() {
        mkdir out/.new; touch out/.new/$1; echo $2 >out/.new/model.bin; mv out/.new out/$2
      }
      marked .null_marker checkpoint-7
      marked .temp_marker checkpoint-8
      marked .temp_marker checkpoint-9
      '%s' notify checkpoint=checkpoint-1 --wait
      '%s' notify checkpoint=checkpoint-8
      sleep 0.7]]):format(CKPT, CKPT))
    run(0)
    assert.are.equal("checkpoint-1 checkpoint-8", committed())
    -- It is permanent there, and gone here; so is the other one. The null one is the job's.
    assert.is_nil(support.read(dir .. "/store/checkpoint-8/.temp_marker"))
    assert.is_truthy(support.read(dir .. "/store/checkpoint-8/model.bin"))
    assert.is_nil(support.read(dir .. "/out/checkpoint-9/model.bin"))
    assert.is_truthy(support.read(dir .. "/out/checkpoint-7/.null_marker"))
  end)

  it("lets no temporary one go that was there before, or is named and not saved yet", function()
    sh("mkdir out/checkpoint-5; echo mine >out/checkpoint-5/w; touch out/checkpoint-5/.temp_marker")
    support.write(dir .. "/job.sh", ([[
      mkdir out/checkpoint-6; touch out/checkpoint-6/.temp_marker; echo w >out/checkpoint-6/w
      '%s' notify checkpoint=checkpoint-6
      sleep 0.5]]):format(CKPT))
    run(0)
    assert.are.equal("checkpoint-6", committed())
    assert.is_truthy(support.read(dir .. "/out/checkpoint-5/w"))
  end)

  it("that loops for ever costs a warning, and everything is saved", function()
    policy("loop", [[
      local function forever() while true do end end
      return { api = 1, sync = forever, keep = forever }]])
    job(2)
    local text = run(0, "-p ./loop.lua")
    has(text, "loop")
    assert.are.equal("checkpoint-1 checkpoint-2", committed())
    local outcome = support.read(dir .. "/out.ckpt/exit.json")
    has(outcome, '"policy_fallbacks":')
    assert.is_nil(outcome:find('"policy_fallbacks":0', 1, true))
  end)

  it("that does not load ends the run before the job starts, with 2 and the line", function()
    policy("broken", "return {\n  api = 1,\n  keeep = keep.last(1),\n}")
    job(1)
    local text = run(2, "-p ./broken.lua")
    has(text, "broken")
    has(text, "keep")
    assert.is_nil(support.read(dir .. "/out/checkpoint-1/model.bin"))
  end)

  it("says what it remembers to the next run", function()
    policy("count", [[
      return { api = 1, sync = function(e, memory)
        memory.count = (memory.count or 0) + 1
        return "sync", "number " .. memory.count
      end }]])
    job(1)
    run(0, "-p ./count.lua --run me")
    sh("rm -rf out out.ckpt; mkdir out")
    job(2)
    run(0, "-p ./count.lua --run me")
    local shown = place.ckpt("show store checkpoint-2 --json")
    has(shown, "number 2")
  end)

  it("lets go here what `keep_local` does not keep, once it is in the store", function()
    policy("small", [[return { api = 1, keep_local = keep.last(1) }]])
    job(3, "sleep 0.6")
    run(0, "-p ./small.lua")
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", committed())
    assert.is_nil(support.read(dir .. "/out/checkpoint-1/model.bin"))
    assert.is_truthy(support.read(dir .. "/out/checkpoint-3/model.bin"))
  end)

  it("brings back what its `restore` rule wants", function()
    policy("two", [[return { api = 1, restore = keep.last(2) }]])
    job(3)
    run(0, "-p ./two.lua --run me")
    sh("rm -rf out; mkdir out")
    support.write(dir .. "/job.sh", "ls out >seen")
    run(0, "-p ./two.lua --run me")
    assert.are.equal("checkpoint-2\ncheckpoint-3\n", support.read(dir .. "/seen"))
  end)
end)
