-- The order of commits: the last one of a log is the newest, so none that was complete before it
-- follows it, whatever its name, and what is left here for that is named.

local json = require "cjson"
local place = require "place"
local support = require "support"
local has, lacks, sh = place.has, place.lacks, place.must_sh
local read, write = support.read, support.write

local dir

place.with_directory(function(made)
  dir = made
  sh "mkdir out"
end)

--- A whole checkpoint whose last byte was written so many seconds ago.
local function made(name, ago)
  sh(("mkdir -p out/.new && echo 'weights of %s' >out/.new/model.bin && " ..
    "echo '{}' >out/.new/trainer_state.json && mv out/.new out/%s && " ..
    "find out/%s -exec touch -h -d '-%d seconds' {} +"):format(name, name, name, ago))
end

local function sync(code, args)
  return place.says(code, "sync out --to store --settle 0 --trust " .. (args or ""))
end

local function log()
  local names = {}
  for _, item in ipairs(place.objects(place.must "ls store --json")) do
    names[#names + 1] = item.name
  end
  return table.concat(names, " ")
end

local function ended() return json.decode(read(dir .. "/out.ckpt/exit.json")) end

describe("what is older than the newest commit", function()
  it("is not committed after it, though that one is gone from the directory", function()
    made("checkpoint-20", 100)
    sync(0)
    sh "rm -r out/checkpoint-20"
    made("checkpoint-10", 200)
    local text = sync(3)
    assert.are.equal("checkpoint-20", log())
    has(text, "not saved: newer is committed: checkpoint-20")
    assert.are.same("checkpoint-10", ended().not_durable[1].unit)
    has(ended().not_durable[1].reason, "newer is committed: checkpoint-20")
    has(ended().summary, "checkpoint-10")
    has(place.must "latest store", "checkpoint-20")
    has(place.must "why out/checkpoint-10", "newer is committed: checkpoint-20")
    assert.is_truthy(read(dir .. "/out/checkpoint-10/model.bin"))
  end)

  it("is told by the times of files alone: a directory changes when a copy is made", function()
    made("checkpoint-10", 100)
    sh "mkdir out/checkpoint-10/parts"
    sync(0)
    sh "rm -r out/checkpoint-10"
    made("checkpoint-20", 50)
    sync(0)
    assert.are.equal("checkpoint-10 checkpoint-20", log())
  end)

  it("is not committed after one of another kind either", function()
    write(dir .. "/out/last.pt", "the last state")
    sh "touch -d '-50 seconds' out/last.pt"
    sync(0)
    made("checkpoint-10", 200)
    has(sync(3), "newer is committed: last.pt")
    assert.are.equal("last.pt", log())
    made("checkpoint-30", 20)
    sync(3)
    has(place.must "latest store", "checkpoint-30")
  end)

  it("is foreseen so", function()
    made("checkpoint-20", 100)
    sync(0)
    sh "rm -r out/checkpoint-20"
    made("checkpoint-10", 200)
    local text = sync(0, "--dry-run")
    has(text, "newer is committed: checkpoint-20")
    lacks(text, "would save checkpoint-10")
  end)

  it("stays with a run, which ends as durable and names it", function()
    made("checkpoint-20", 100)
    sync(0)
    sh "rm -r out/checkpoint-20"
    made("checkpoint-10", 200)
    write(dir .. "/free.lua", "return { api = 1, keep_local = keep.last(1) }\n")
    local text = place.says(0, "run --dir out --to store --continue-run -p ./free.lua -- true")
    assert.are.equal("checkpoint-20", log())
    has(text, "checkpoint-10 (newer is committed: checkpoint-20)")
    assert.is_true(ended().durable)
    assert.is_truthy(read(dir .. "/out/checkpoint-10/model.bin"))
  end)
end)

describe("what completes after a way back", function()
  it("is newer than what was left, here and in the store", function()
    for i = 1, 3 do made("checkpoint-" .. 10 * i, 400 - 100 * i) end
    sync(0)
    sh "rm -r out/checkpoint-20 out/checkpoint-30"
    write(dir .. "/job.sh", [[
mkdir out/.new && echo fifteen >out/.new/model.bin && echo '{}' >out/.new/trainer_state.json
mv out/.new out/checkpoint-15
]])
    place.must "run --dir out --to store --continue-run --restore checkpoint-10 -- sh job.sh"
    has(place.must "latest store", "checkpoint-15")
  end)

  it("is restored, and not a higher step that was complete before it and never saved", function()
    made("checkpoint-40", 300)
    sync(0)
    sh "cp -a out before"
    made("checkpoint-45", 100)
    sync(0)
    -- Another machine died with a step that went further before all that.
    sh "rm -r out out.ckpt && mv before out"
    made("checkpoint-50", 200)
    local text = place.must(
      "run --dir out --to store --continue-run -- sh -c 'echo from $CKPT_RESUME'")
    has(text, "checkpoint-45")
    lacks(text, "from " .. dir .. "/out/checkpoint-50")
    has(place.must "latest store", "checkpoint-45")
  end)
end)
