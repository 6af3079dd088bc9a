--- The faults that `make test-sim` puts back into the engine: each still finds the text that it
--- edits, and the pages tell how many they are.

local support = require "support"

local names = {}
for name in support.sh("luajit spec/sim/faults.lua"):gmatch("%S+") do names[#names + 1] = name end

describe("the faults of the simulator", function()
  it("can each be put back", function()
    local dir = support.directory()
    assert.is_true(#names > 0)
    for _, name in ipairs(names) do
      local out, code = support.sh(("luajit spec/sim/faults.lua %s '%s'"):format(name, dir))
      assert.are.equal(0, code, out)
    end
    support.sh("rm -rf '" .. dir .. "'")
  end)

  it("are as many as the pages say", function()
    for _, page in ipairs { "README.md", "docs/testing.md" } do
      local said = support.read(page):match("(%d+) faults put back one at a time")
      assert.are.equal(#names, tonumber(said), page)
    end
  end)
end)
