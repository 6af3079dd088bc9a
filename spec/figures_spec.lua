--- Holds the figures of docs/testing.md to what there is: a parser that came later is not among
--- "all of them" by saying nothing.

local support = require "support"

describe("the figures of make fuzz", function()
  it("name each target once: with what it has run, or as not measured yet", function()
    local targets, told = {}, {}
    local list = support.read("spec/fuzz/targets.h"):match "#define FUZZ_TARGETS%(X%)(.-)\n\n"
    local row = support.read("docs/testing.md"):match "\n| `make fuzz` |[^|\n]*|([^|\n]*)|"
    local later = row:match "not measured yet: (.*)" or ""
    for name in list:gmatch "X%((%w+)%)" do targets[#targets + 1] = name end
    for name in (";" .. row):gmatch ";%s*(%l%w*) %d" do told[#told + 1] = name end
    for name in later:gmatch "%l%w*" do told[#told + 1] = name end
    table.sort(targets)
    table.sort(told)
    assert.same(targets, told)
  end)
end)
