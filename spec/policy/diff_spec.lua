--- diff: the shortest list of checkpoints of which two policies keep different ones.
local library = require "policy.rules"

local function compared(a, b, hook)
  local wrap = function(text) return "return { api = 1, " .. text .. " }" end
  local M = library.load { { "a", wrap(a) }, { "b", wrap(b) } }
  local answer = M.check { what = "diff", first = true, hook = hook or "keep" }
  while not answer.done do answer = M.check { what = "diff" } end
  return answer, M
end

-- The same, with so much work.
local function begun(a, b, most)
  local wrap = function(text) return "return { api = 1, keep = " .. text .. " }" end
  local M = library.load { { "a", wrap(a) }, { "b", wrap(b) } }
  local answer, pieces = M.check { what = "diff", first = true, hook = "keep", most = most }, 1
  while not answer.done do answer, pieces = M.check { what = "diff" }, pieces + 1 end
  return answer, pieces
end

local function keeps(a, b) return compared("keep = " .. a, "keep = " .. b) end

-- How many checkpoints the list has on which they differ; their facts and both words as one text.
local function difference(a, b)
  local answer = keeps(a, b)
  assert.equal("differ", answer.verdict, a .. " | " .. b)
  local differs = false
  for _, item in ipairs(answer.list) do differs = differs or item.a ~= item.b end
  assert.is_true(differs)
  return #answer.list, answer
end

-- A rule, and its mutants with the length of the shortest list that tells them apart.
local MUTANTS = {
  ["keep.last(3)"] = {
    ["keep.last(2)"] = 3,
    ["keep.last(4)"] = 4,
    ["keep.all()"] = 4,
    ["none { keep.last(3) }"] = 1,
    ["keep.last(12)"] = 4,
  },
  ["keep.last(40)"] = { ["keep.last(41)"] = 41, ["keep.last(39)"] = 40 },
  ['keep.best("loss", 2, "min")'] = {
    ['keep.best("loss", 1, "min")'] = 2,
    ['keep.best("loss", 3, "min")'] = 3,
    ['keep.best("loss", 2, "max")'] = 3,
    ['keep.best("lost", 2, "min")'] = 2,
    ["keep.last(2)"] = 2,
    ["keep.all()"] = 2,
  },
  -- Each search as long as this one goes through all orders of 8, and takes seconds.
  ['keep.best("loss", 10, "min")'] = { ['keep.best("loss", 9, "min")'] = 10 },
  ["keep.every_steps(1000)"] = {
    ["keep.every_steps(999)"] = 1,
    ["keep.every_steps(1001)"] = 1,
    ["keep.every_steps(2000)"] = 1,
    ["keep.every_steps(500)"] = 1,
    ["keep.all()"] = 1,
  },
  ['keep.within "30d"'] = {
    ['keep.within "31d"'] = 2,
    ["keep.within(30 * 86400 + 1)"] = 2,
    ["keep.within(30 * 86400 - 1)"] = 2,
    ["keep.last(1)"] = 2,
    ['keep.within "0s"'] = 2,
  },
  ['keep.within "0s"'] = { ["keep.last(1)"] = 2 },
  ['keep.budget "500GB"'] = {
    ["keep.budget(500e9 + 1)"] = 2,
    ["keep.budget(500e9 - 1)"] = 2,
    ['keep.budget "500GiB"'] = 2,
    ["keep.all()"] = 2,
  },
  ["keep.spaced(2)"] = {
    ["keep.spaced(3)"] = 3,
    ["keep.spaced(1.9)"] = 3,
    ["keep.spaced(2.1)"] = 3,
    ["keep.all()"] = 3,
  },
  ["keep.hourly(3)"] = { ["keep.hourly(2)"] = 3, ["keep.hourly(4)"] = 4, ["keep.daily(3)"] = 3 },
  ["keep.daily(7)"] = { ["keep.daily(6)"] = 7, ["keep.daily(8)"] = 8, ["keep.weekly(7)"] = 3 },
  ["keep.weekly(4)"] = { ["keep.weekly(3)"] = 4, ["keep.weekly(5)"] = 5, ["keep.monthly(4)"] = 3 },
  ["keep.monthly(12)"] = {
    ["keep.monthly(11)"] = 12,
    ["keep.monthly(13)"] = 13,
    ["keep.yearly(12)"] = 3,
  },
  ["keep.yearly(5)"] = { ["keep.yearly(4)"] = 5, ["keep.yearly(6)"] = 6, ["keep.last(5)"] = 3 },
  -- The first example of docs/policies.md about what stays: a rule is missing, a constant wrong.
  -- keep.daily keeps the oldest while it has days left, so the second of five may be a best alone.
  ['any { keep.last(3), keep.best("e", 2, "min"), keep.every_steps(1000), keep.daily(7) }'] = {
    ['any { keep.best("e", 2, "min"), keep.every_steps(1000), keep.daily(7) }'] = 3,
    ["any { keep.last(3), keep.every_steps(1000), keep.daily(7) }"] = 5,
    ['any { keep.last(3), keep.best("e", 2, "min"), keep.daily(7) }'] = 5,
    ['any { keep.last(3), keep.best("e", 2, "min"), keep.every_steps(1000) }'] = 4,
    ['any { keep.last(2), keep.best("e", 2, "min"), keep.every_steps(1000), keep.daily(7) }'] = 4,
    ['any { keep.last(3), keep.best("e", 1, "min"), keep.every_steps(1000), keep.daily(7) }'] = 5,
    ['any { keep.last(3), keep.best("e", 2, "max"), keep.every_steps(1000), keep.daily(7) }'] = 5,
    ['any { keep.last(3), keep.best("e", 2, "min"), keep.every_steps(999), keep.daily(7) }'] = 5,
    ['any { keep.last(3), keep.best("e", 2, "min"), keep.every_steps(1000), keep.daily(6) }'] = 7,
    ['all { keep.last(3), keep.best("e", 2, "min"), keep.every_steps(1000), keep.daily(7) }'] = 1,
  },
}

-- Mutants that decide as the rule does, and why.
local EQUIVALENT = {
  { "keep.last(3)", "all { keep.last(3), keep.last(5) }", "the 3 newest are among the 5" },
  { "keep.last(3)", "any { keep.last(3), keep.last(1) }", "the newest is among the 3" },
  { "keep.all()", "keep.every_steps(1)", "each step is a multiple of 1" },
  { "keep.hourly(1)", "keep.daily(1)", "both are the newest" },
  { 'keep.within "1d"', 'any { keep.within "1d", keep.within "1h" }', "an hour is in the day" },
  { "keep.all()", "none { none { keep.all() } }", "none of none" },
}

describe("diff", function()
  for rule, mutants in pairs(MUTANTS) do
    it("finds a shortest list for each mutant of " .. rule, function()
      for mutant, size in pairs(mutants) do
        assert.equal(size, (difference(rule, mutant)), mutant)
      end
    end)
  end

  it("says equal of what is equal", function()
    for _, row in ipairs(EQUIVALENT) do
      assert.equal("equal", keeps(row[1], row[2]).verdict, row[3])
    end
  end)

  it("goes through every order of up to 8 by a metric before it says equal", function()
    local answer = keeps('keep.best("loss", 3, "min")',
      'any { keep.best("loss", 3, "min"), keep.best("loss", 2, "min") }')
    assert.equal("equal", answer.verdict)
    -- Of 1 to 7 with and without a number; of 8 with one.
    assert.equal(2 + 6 + 26 + 150 + 1082 + 9366 + 94586 + 545835, answer.lists)
    assert.truthy(answer.searched[1]:find("545,835 orders of 8 by loss", 1, true))
  end)

  it("looks at orders, steps, times and sizes together", function()
    local whole = 'all { keep.best("loss", 1, "min"), keep.every_steps(10), keep.within "1d", '
      .. 'keep.budget "1GB"'
    local count, answer = difference("any { keep.last(1), " .. whole .. " } }",
      "any { keep.last(1), " .. whole .. ", keep.every_steps(20) } }")
    assert.equal(2, count)
    local facts = answer.list[1].facts
    for _, word in ipairs { "loss = ", "step 10,", "s old", "bytes" } do
      assert.truthy(facts:find(word, 1, true), facts)
    end
  end)

  it("says equal of nothing that is nearly the same", function()
    local nearly = {
      { "all { keep.every_steps(6), keep.every_steps(10) }", "keep.every_steps(60)" },
      { "keep.every_steps(9007199254740990)", "keep.every_steps(9007199254740991)" },
      { "keep.budget(500e12)", "keep.budget(500e12 + 1)" },
    }
    for _, row in ipairs(nearly) do difference(row[1], row[2]) end
  end)

  it("says equal of more than 8 only where it looked at all, or the rules are the same", function()
    local answer = keeps("keep.hourly(9)", "any { keep.hourly(9), keep.hourly(8) }")
    assert.equal("none", answer.verdict)
    assert.truthy(answer.why:find("more than 8", 1, true))
    assert.equal("equal", keeps("any { keep.last(12), keep.every_steps(3) }",
      "any { keep.every_steps(3), keep.last(11), keep.last(12) }").verdict)
    assert.equal("equal", keeps("any { keep.last(12), keep.yearly(12) }",
      "any { keep.yearly(12), keep.last(12) }").verdict)
  end)

  it("says equal of no function, and finds where one differs", function()
    local last = [[function(list)
      local kept = {}
      for i = math.max(1, #list - 2), #list do kept[#kept + 1] = list[i] end
      return kept
    end]]
    local answer = keeps("keep.last(3)", last)
    assert.equal("none", answer.verdict)
    assert.truthy(answer.why:find("a function", 1, true))
    assert.equal(4, (difference("keep.last(4)", last)))
    assert.equal(1, (difference("keep.all()", [[function(list)
      local kept = {}
      for _, c in ipairs(list) do
        if c.step % 70 ~= 0 then kept[#kept + 1] = c end
      end
      return kept
    end]])))
  end)

  it("asks `must`, too, and says equal of none", function()
    local last = "keep = keep.last(1)"
    local two = last .. ", must = never_fewer_than(2)"
    local answer = compared(last, two)
    assert.equal("differ", answer.verdict)
    assert.equal(2, #answer.list)
    assert.truthy(answer.list[1].why_b:find("never_fewer_than(2)", 1, true))
    assert.equal("none", compared(two, two).verdict)
    local best = last .. [[, must = function(before, after)
      return after[1] == nil or after[1].metrics.loss ~= 2 or #before < 3
    end]]
    assert.equal("none", compared(best, best).verdict)
    assert.equal("equal", compared(last .. ", keep_local = keep.all()", two, "keep_local").verdict)
  end)

  it("does not say equal where more is counted than a list has", function()
    local answer = keeps("keep.last(5000)", "keep.last(5001)")
    assert.equal("none", answer.verdict)
  end)

  it("is bounded where there are very many rules, and says no more than it knows", function()
    local many, metrics = {}, {}
    for i = 1, 60 do many[i] = ("keep.every_steps(%d)"):format(i + 1) end
    for i = 1, 20 do metrics[i] = ("keep.best('m%d', 1, 'min')"):format(i) end
    local any = "any { " .. table.concat(many, ", ") .. " }"
    local answer = keeps(any, "any { " .. any .. ", keep.every_steps(4) }")
    assert.equal("none", answer.verdict)
    assert.truthy(answer.why:find("more than 40 rules", 1, true))
    any = "any { " .. table.concat(metrics, ", ") .. " }"
    answer = keeps(any, "all { " .. any .. ", " .. any .. " }")
    assert.equal("none", answer.verdict)
    assert.truthy(answer.why:find("too much to put it together", 1, true))
  end)

  it("ends after so much work, the same everywhere, and says how far it came", function()
    local a, b = 'keep.best("loss", 10, "min")', 'keep.best("loss", 9, "min")'
    local answer, pieces = begun(a, b, 60)
    assert.equal(60, pieces)
    assert.equal("none", answer.verdict)
    assert.equal("all lists are too many: it came to those of 8", answer.why)
    assert.equal("lists of 1 to 7 checkpoints, and a part of those of 8", answer.searched[2])
    assert.truthy(answer.searched[1]:find("all of up to 7 checkpoints", 1, true))
    local again = begun(a, b, 60)
    assert.same(answer, again)
    answer = begun(a, b, 1)
    assert.truthy(answer.why:find "it came to those of [1-7]$", answer.why)
    answer = begun("keep.last(2)", "keep.last(3)", 1)
    assert.equal("differ", answer.verdict)
  end)

  it("takes the core's answer where a policy has no such key", function()
    assert.equal("equal", compared("", "keep = keep.all()").verdict)
    assert.equal("equal", compared("", "keep_local = keep.all()", "keep_local").verdict)
    assert.equal("equal", compared("", "restore = keep.last(1)", "restore").verdict)
    assert.equal(2, #compared("", "restore = keep.last(2)", "restore").list)
  end)
end)
