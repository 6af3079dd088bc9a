-- That no recording of the five systems is left out: each is replayed by a spec of the folder
-- oracle, which counts what it compares.

local support = require "support"

local function lines(command) return support.lines((support.sh(command))) end

describe("the recordings", function()
  it("are each replayed by a spec", function()
    local replays = {}
    for _, path in ipairs(lines "ls spec/contract/oracle/*_spec.lua") do
      replays[#replays + 1] = support.read(path)
    end
    local text = table.concat(replays)
    local files = lines "ls spec/data/oracle/*.json"
    assert.equal(10, #files)
    for _, path in ipairs(files) do
      local name = path:match "([^/]+)%.json$"
      assert(text:find(name, 1, true), path .. " is replayed by no spec")
    end
  end)
end)
