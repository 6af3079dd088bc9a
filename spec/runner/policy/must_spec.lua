-- must: a live run drops nothing where what would be left breaks a rule of the policy.

local place = require "place"
local support = require "support"
local ends, has, lacks = place.ends, place.has, place.lacks

local dir

place.with_directory(function(made) dir = made end)

local function policy(name, keys)
  support.write(("%s/%s.lua"):format(dir, name), "return { api = 1,\n" .. keys .. "\n}\n")
end

-- Three checkpoints, of which the first has the best loss; each is saved before the next.
local function run(more)
  place.must_sh("rm -rf out; mkdir out")
  support.write(dir .. "/job.sh", ([[
    for n in 1 2 3; do
      mkdir out/.new; echo "weights $n" >out/.new/model.bin
      mv out/.new out/checkpoint-$n
      '%s' notify checkpoint=checkpoint-$n loss=0.$n --wait
      sleep 0.3
    done]]):format(support.runner))
  local options = "run --dir out --to store --max-delete 100% --grace-delete 0s "
  return select(2, ends(0, options .. more .. " -- sh job.sh"))
end

local function kept()
  local names = {}
  for _, row in ipairs(place.objects(ends(0, "ls store --json"))) do
    if row.life == nil or row.life == "live" then names[#names + 1] = row.name end
  end
  table.sort(names)
  return table.concat(names, " ")
end

describe("must", function()
  it("lets a run drop nothing while it is broken, and says which rule, of which policy", function()
    policy("hasty", 'keep = keep.last(1),\nmust = survives.best("loss", "min")')
    local said = run "-p ./hasty.lua"
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", kept())
    assert.is_truthy(support.read(dir .. "/store/checkpoint-1/model.bin"))
    has(said, 'hasty.lua:3: `must`: survives.best("loss", "min") is broken by what `keep` would '
      .. "leave: "
      .. "checkpoint-1 would not be left, the best with loss = 0.1; all are kept")
    local shown = ends(0, "plan store -p ./hasty.lua --max-delete 100%")
    has(shown, '`must` of hasty (survives.best("loss", "min")) is broken')
  end)

  it("drops as ever where it holds", function()
    policy("well", 'keep = any { keep.last(1), keep.best("loss", 1, "min") },\n'
      .. 'must = { survives.best("loss", "min"), never_fewer_than(2) }')
    lacks(run "-p ./well.lua", "must")
    assert.are.equal("checkpoint-1 checkpoint-3", kept())
  end)

  it("holds for all policies of a run, and one that fails lets nothing go", function()
    policy("one", "keep = keep.last(1)")
    policy("guard", "must = function(before, after) return #after > before.x end")
    local said = run "-p ./one.lua -p ./guard.lua"
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", kept())
    has(said, "guard.lua:2: attempt to compare nil with number")
    has(said, "all are kept")
    policy("loop", "must = function() while true do end end")
    local shown, why = ends(0, "plan store -p ./one.lua -p ./loop.lua --max-delete 100%")
    has(why, "it ran too long: loop.lua:2: ")
    has(shown, "3 stay, 0 would be dropped")
  end)
end)
