-- That nothing of the object library's contract is left without a test, and no test without a
-- mutant that it catches. What the tests find is theirs to say: `make contract`; whether they catch
-- the mutants, `make contract-mutants` sees.

local items = require "contract.items"
local mutation = require "contract.mutation"

describe("the contract of the object library", function()
  local named, is_better, tests = {}, {}, {}

  setup(function()
    for _, path in ipairs(items.specs()) do
      for _, test in ipairs(items.tests_in(path)) do
        tests[#tests + 1] = test
        for _, item in ipairs(test.items) do
          named[item] = path
          if test.better then is_better[item] = true end
        end
      end
    end
  end)

  local function list(wanted)
    local found = {}
    for item = 1, items.COUNT do
      if wanted(item) then found[#found + 1] = item end
    end
    return table.concat(found, " ")
  end

  it("has a test for each item", function()
    assert.are.equal("", list(function(item) return not named[item] and not items.HOST[item] end))
  end)

  it("names no item that is not there", function()
    for item, path in pairs(named) do
      assert(item >= 1 and item <= items.COUNT and not items.HOST[item], path .. ": " .. item)
    end
  end)

  it("has no test whose name could be taken for that of an item without one", function()
    for _, test in ipairs(tests) do
      assert.is_nil(test.name:lower():find("missing", 1, true), test.name)
    end
    for _, text in pairs(items.better()) do assert.is_nil(text:find("missing", 1, true), text) end
  end)

  it("says of each item that is better here what is done instead, and shows it", function()
    local better = items.better()
    assert.are.equal("", list(function(item) return better[item] and not is_better[item] end))
    -- Such a test may name others beside: what it holds of them is as in the contract.
    for _, test in ipairs(tests) do
      local count = 0
      for _, item in ipairs(test.items) do count = count + (better[item] and 1 or 0) end
      assert(count > 0 or not test.better, test.name)
    end
  end)

  it("has a mutant for each item, and each can be applied", function()
    local of = mutation.load()
    assert.are.equal("", list(function(item) return not of[item] and not items.HOST[item] end))
    for _, mutants in pairs(of) do
      for _, mutant in ipairs(mutants) do
        local text, why = mutation.apply(mutant)
        assert(text, ("%s (item %d): %s"):format(mutant.name, mutant.item, tostring(why)))
      end
    end
  end)
end)
