-- Hostile policies through `policy check`: each ends by itself, with a code that says what was
-- found.
local place = require "place"
local support = require "support"

describe("policy check", function()
  place.with_directory(function() end)

  it("comes back from each hostile policy, with code 0 or 2, and never by a signal", function()
    local list = support.sh(("ls '%s'/spec/hostile/[0-9]*.lua"):format(support.root))
    local count = 0
    for path in list:gmatch "[^\n]+" do
      local _, code, said = place.apart(("policy check '%s'"):format(path))
      assert.is_true(code == 0 or code == 2, ("%s: %s\n%s"):format(path, code, said))
      count = count + 1
    end
    assert.is_true(count > 120)
  end)
end)
