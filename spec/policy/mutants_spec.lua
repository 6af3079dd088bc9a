--- Twenty mutants and more of each keep rule: another constant, another rule in its place, or one
--- more beside it. `diff` shows a list on which each decides otherwise, or says that it is equal
--- where it is; EQUIVALENT says why.
local library = require "policy.rules"
local mutants = require "policy.mutants"

local function verdict(a, b)
  local wrap = function(text) return "return { api = 1, keep = " .. text .. " }" end
  local M = library.load { { "a", wrap(a) }, { "b", wrap(b) } }
  local answer = M.check { what = "diff", first = true, hook = "keep" }
  while not answer.done do answer = M.check { what = "diff" } end
  return answer.verdict, answer.list
end

-- Each rule with other constants.
local CONSTANTS = {
  ["keep.all()"] = {
    "keep.last(100)", "keep.every_steps(2)", 'keep.within "365d"', 'keep.budget "900TB"',
  },
  ["keep.last(3)"] = { "keep.last(1)", "keep.last(2)", "keep.last(4)", "keep.last(300)" },
  ['keep.best("loss", 2, "min")'] = {
    'keep.best("loss", 1, "min")', 'keep.best("loss", 3, "min")', 'keep.best("loss", 20, "min")',
    'keep.best("loss", 2, "max")', 'keep.best("los", 2, "min")',
  },
  ["keep.every_steps(1000)"] = {
    "keep.every_steps(1)", "keep.every_steps(500)", "keep.every_steps(999)",
    "keep.every_steps(1001)", "keep.every_steps(2000)",
  },
  ["keep.hourly(24)"] = {
    "keep.hourly(1)", "keep.hourly(23)", "keep.hourly(25)", "keep.daily(24)",
  },
  ["keep.daily(7)"] = { "keep.daily(1)", "keep.daily(6)", "keep.daily(8)", "keep.hourly(7)" },
  ["keep.weekly(4)"] = { "keep.weekly(1)", "keep.weekly(3)", "keep.weekly(5)", "keep.daily(4)" },
  ["keep.monthly(12)"] = {
    "keep.monthly(1)", "keep.monthly(11)", "keep.monthly(13)", "keep.weekly(12)",
  },
  ["keep.yearly(5)"] = { "keep.yearly(1)", "keep.yearly(4)", "keep.yearly(6)", "keep.monthly(5)" },
  ['keep.within "30d"'] = {
    'keep.within "29d"', 'keep.within "30h"', "keep.within(30 * 86400 - 1)",
    "keep.within(30 * 86400 + 1)", 'keep.within "0s"',
  },
  ['keep.budget "500GB"'] = {
    "keep.budget(1)", "keep.budget(500e9 - 1)", "keep.budget(500e9 + 1)", 'keep.budget "500GiB"',
    'keep.budget "50GB"',
  },
  ["keep.spaced(2)"] = {
    "keep.spaced(1.1)", "keep.spaced(1.999)", "keep.spaced(2.001)", "keep.spaced(20)",
  },
}

-- What stands in the place of a rule, and beside it.
local OTHERS = {
  "keep.all()", "keep.last(5)", 'keep.best("loss", 5, "max")', 'keep.best("acc", 1, "max")',
  "keep.every_steps(70)", "keep.hourly(3)", "keep.daily(3)", "keep.weekly(3)", "keep.monthly(3)",
  "keep.yearly(3)", 'keep.within "3h"', 'keep.budget "3GB"', "keep.spaced(3)",
}

-- What decides as the rule does, and why.
local EQUIVALENT = {
  ["keep.all() | any { keep.all(), keep.last(5) }"] = "there is no more than all",
  ["keep.all() | any { keep.all(), keep.every_steps(70) }"] = "there is no more than all",
  ["keep.all() | any { keep.all(), keep.weekly(3) }"] = "there is no more than all",
  ['keep.all() | any { keep.all(), keep.within "3h" }'] = "there is no more than all",
  ["keep.last(3) | all { keep.last(3), keep.last(5) }"] = "the 3 newest are among the 5",
  ["keep.weekly(4) | any { keep.weekly(4), keep.weekly(3) }"] = "three weeks are among the four",
  ['keep.within "30d" | any { keep.within "30d", keep.within "3h" }'] = "3 hours are in 30 days",
}

-- True if a list shows that they decide otherwise.
local function is_told(rule, mutant)
  local said, list = verdict(rule, mutant)
  if said ~= "differ" then return said ~= "equal" and said end
  local differs = false
  for _, item in ipairs(list) do differs = differs or item.a ~= item.b end
  assert.is_true(differs, mutant)
  return true
end

describe("diff", function()
  for rule, constants in pairs(CONSTANTS) do
    it("tells twenty mutants from " .. rule .. ", or they are none", function()
      local told = mutants.told(rule, constants, OTHERS, EQUIVALENT, is_told)
      assert.is_true(told >= 20, told)
    end)
  end
end)
