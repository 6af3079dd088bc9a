-- why --at: a past question is asked again, with the facts of its time.

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

local function why(name, at, asked)
  return place.objects(ends(0, ("why %s --at %s --to store --json --max-delete 100%% -p ./%s.lua")
    :format(name, at, asked)))[1]
end

-- The number of each checkpoint's commit, by its name: one that keeps all differs in what went.
local function numbers()
  policy("all", "keep = keep.all()")
  local found = {}
  local text = ends(0, "policy replay store --json -p ./all.lua") .. ends(0, "ls store --json")
  for _, row in ipairs(place.objects(text)) do
    if row.name then found[row.name] = row.number end
  end
  return found
end

describe("why --at", function()
  it("gives the answer that the run got, to each question that it has asked", function()
    policy("two", "keep = keep.last(2)")
    run("1 2 3 4", "-p ./two.lua")
    local number = numbers()
    for n = 1, 4 do
      for at = 1, 4 do
        local past = why("checkpoint-" .. n, number["checkpoint-" .. at], "two")
        local verdict = n > at and "to-come" or n > at - 2 and "keep" or n == at - 2 and "drop"
          or "gone"
        assert.equal(verdict, past.verdict, n .. " at " .. at)
        assert.equal(number["checkpoint-" .. at], past.asked_after)
        assert.equal(math.min(at, 3), past.stood)
        if verdict == "drop" then
          assert.same({ past.drop_policy, past.drop_reason }, { past.by, past.why })
        end
      end
    end
  end)

  it("asks another policy about what stood then, not what it would have left itself", function()
    policy("two", "keep = keep.last(2)")
    policy("best", 'keep = keep.best("loss", 1, "min")')
    run("1 2 3 4", "-p ./two.lua") -- losses .7 .4 .1 .8
    local at = numbers()["checkpoint-4"]
    local third, second = why("checkpoint-3", at, "best"), why("checkpoint-2", at, "best")
    assert.same({ "keep", "best", 3 }, { third.verdict, third.by, third.stood })
    has(third.why, "best by loss")
    assert.same({ "drop", "best", "dropped", "two" },
      { second.verdict, second.by, second.life, second.drop_policy })
  end)

  it("asks behind the last commit until then, and says when that was", function()
    place.save("out", 1, 2)
    must "sync out --to store --settle 0"
    policy("all", "keep = keep.all()")
    local second = place.objects(must "ls store --json")[2]
    local past = why("checkpoint-1", second.number + 100, "all")
    assert.same({ second.number, second.committed, 2 },
      { past.asked_after, past.asked_at, past.stood })
    assert.is_nil(why("checkpoint-1", 0, "all").asked_after)
  end)

  it("says what no log tells, and writes nothing", function()
    place.save("out", 1, 2)
    must "sync out --to store --settle 0"
    local before = place.must_sh "find store | sort"
    local text = must "why checkpoint-1 --at 1000 --to store"
    has(text, "checkpoint-1: keep\n")
    has(text, "of 2 that stood then\n  since then: it is kept\n")
    has(text, "not known of that time: pins, what was verified")
    has(must "why checkpoint-1 --at 0 --to store",
      "checkpoint-1: to-come\n  it was committed later")
    assert.equal(before, place.must_sh "find store | sort")
  end)

  it("names no time and no policy for what went without a decision", function()
    policy("all", "keep = keep.last(9)")
    run("1", "-p ./all.lua")
    must "gc store --remove-run --yes"
    local text = ends(0, "why checkpoint-1 --at 99 --to store -p ./all.lua")
    has(text, "since then: it is gone, and the log has no decision on it: its run was removed")
    assert.is_nil(text:find("1970", 1, true))
  end)

  it("is an error where the question is none", function()
    place.save("out", 1)
    must "sync out --to store --settle 0"
    for _, case in ipairs { { 4, "nope --at 5 --to store", "nothing of that name" },
      { 2, "checkpoint-1 --at x --to store", "the number of an entry" },
      { 2, "checkpoint-1 --at -1 --to store", "the number of an entry" },
      { 2, "checkpoint-1 --at 99999999999999999999 --to store", "the number of an entry" },
      { 2, "checkpoint-1 --at 5", "--to" },
      { 2, "checkpoint-1 --at 5 --to store --dir out", "--dir" },
      { 2, "checkpoint-1 --to store -p builtin", "--at" },
      { 2, "checkpoint-1 --at 5 --to store -p ./none.lua", "none.lua" },
      { 10, "checkpoint-1 --at 5 --to nowhere", "nowhere" } } do
      has(place.says(case[1], "why " .. case[2]), case[3])
    end
  end)
end)
