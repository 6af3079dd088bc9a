-- policy replay: what a policy would have kept of what a target has seen.

local place = require "place"
local support = require "support"
local ends, has, must = place.ends, place.has, place.must

local dir

place.with_directory(function(made) dir = made end)

local function policy(name, keys)
  support.write(("%s/%s.lua"):format(dir, name), "return { api = 1, " .. keys .. " }")
end

-- The job waits after each step: each checkpoint is saved, and what it lets go is gone.
local function run(steps, more)
  place.must_sh("rm -rf out; mkdir out")
  support.write(dir .. "/job.sh", ([[
    for n in %s; do
      mkdir out/.new; echo "weights $n" >out/.new/model.bin
      mv out/.new out/checkpoint-$n
      '%s' notify checkpoint=checkpoint-$n loss=0.$(((n * 7) %% 10)) --wait
      sleep 0.3
    done]]):format(steps, support.runner))
  must("run --dir out --to store --max-delete 100% " .. more .. " -- sh job.sh")
end

-- The differences, and the sum behind them.
local function replay(args)
  local rows = place.objects(ends(0, "policy replay store --json --max-delete 100% " .. args))
  return rows, table.remove(rows)
end

local function all(rows, key)
  local words = {}
  for i, row in ipairs(rows) do words[i] = tostring(row[key]) end
  return table.concat(words, " ")
end

describe("policy replay", function()
  it("finds no difference to the policy that governed the run", function()
    policy("two", "keep = keep.last(2)")
    run("1 2 3 4 5", "-p ./two.lua")
    local rows, sum = replay "-p ./two.lua"
    assert.same({}, rows)
    assert.same({ "summary", 1, 5, 0, 0, 0 },
      { sum.difference, sum.logs, sum.commits, sum.would_keep, sum.would_drop, sum.moved })
    assert.same({ 2, 2 }, { sum.was_kept, sum.kept })
    assert.same({ sum.was_bytes, sum.was_most }, { sum.bytes, sum.most })
  end)

  it("tells each difference with its moment, its bytes and both reasons", function()
    policy("two", "keep = keep.last(2)")
    policy("best", 'keep = keep.best("loss", 1, "min")')
    run("1 2 3 4 5", "-p ./two.lua") -- losses .7 .4 .1 .8 .5
    local rows, sum = replay "-p ./best.lua"
    assert.equal("checkpoint-1 checkpoint-2 checkpoint-3 checkpoint-4", all(rows, "name"))
    assert.equal("earlier earlier would keep would drop", all(rows, "difference"))
    assert.equal(rows[4].would_drop, rows[4].would_drop:match "^%d+%-%d%d%-%d%dT[%d:]+Z$")
    assert.equal(10, rows[4].bytes)
    has(rows[4].why, "loss")
    assert.equal("best", rows[4].by)
    assert.equal("live", rows[4].life)
    assert.is_nil(rows[4].was_dropped)
    has(rows[3].why, "best by loss") -- why it would stay
    has(rows[3].was_why, "last 2")
    assert.equal("two", rows[3].was_by)
    assert.is_nil(rows[3].would_drop)
    assert.same({ 1, 1, 2 }, { sum.would_keep, sum.would_drop, sum.moved })
    assert.same({ 20, 20, 30 }, { sum.was_bytes, sum.bytes, sum.was_most })
  end)

  it("plays each log of a place for itself, and passes over what a removed run had", function()
    policy("one", "keep = keep.last(1)")
    place.must_sh "mkdir -p tree/a tree/b"
    place.save("tree/a", 1, 2, 3)
    place.save("tree/b", 1, 2)
    must "sync tree --to store --settle 0"
    local rows, sum = replay "-p ./one.lua"
    assert.same({ 2, 5, 3 }, { sum.logs, sum.commits, sum.would_drop })
    assert.equal("a a b", all(rows, "group"))
    must "gc store --remove-run --yes --grace-delete 0"
    place.must_sh "rm -rf tree/a/* tree/b/*"
    place.save("tree/b", 7)
    must "sync tree --to store --settle 0 --continue-run"
    rows, sum = replay "-p ./one.lua"
    assert.same({}, rows)
    assert.same({ 1, 1 }, { sum.commits, sum.was_kept })
  end)

  it("shows it to people, and writes nothing", function()
    policy("one", "keep = keep.last(1)")
    place.save("out", 1, 2, 3)
    must "sync out --to store --settle 0"
    local before = place.must_sh "find store | sort"
    local text = must "policy replay store -p ./one.lua --max-delete 100%"
    has(text, "would drop  checkpoint-1")
    has(text, "older than the last 1")
    has(text, "2 that are kept would be dropped")
    assert.equal(before, place.must_sh "find store | sort")
  end)

  it("ends with 2 where the policy does not load, and with 10 where there is no target", function()
    policy("wrong", "keep = nonsense")
    place.save("out", 1)
    must "sync out --to store --settle 0"
    has(place.says(2, "policy replay store -p ./wrong.lua"), "nonsense")
    place.says(10, "policy replay nowhere")
  end)
end)
