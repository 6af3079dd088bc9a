--- newest_only: files that only the newest checkpoints keep.
local library = require "policy.rules"

local function data(text)
  local _, told = library.keys(text)
  return told.newest_only
end

local function chain(a, b)
  local wrap = function(text) return "return { api = 1, " .. text .. " }" end
  local _, told = library.load({ { "a", wrap(a) }, { "b", wrap(b) } }, {})
  return told.newest_only
end

describe("newest_only", function()
  it("is one glob or a list of them, with the two newest", function()
    assert.same(
      { files = { "optimizer.pt" }, newest = 2, by = { "mine" } },
      data "newest_only = 'optimizer.pt'"
    )
    assert.same(
      { files = { "optimizer.pt", "states/" }, newest = 2, by = { "mine" } },
      data "newest_only = { 'optimizer.pt', 'states/' }"
    )
  end)

  it("says with how many, if it is to be another number", function()
    assert.same(
      { files = { "optimizer.pt" }, newest = 1, by = { "mine" } },
      data "newest_only = { files = 'optimizer.pt', newest = 1 }"
    )
    assert.equal(2, data("newest_only = { files = { 'a', 'b' } }").newest)
    assert.same({ "*log*" }, data("newest_only = pattern 'log'").files)
  end)

  it("is nothing where it names no files", function()
    assert.is_nil(data "newest_only = {}")
    assert.is_nil(data "newest_only = { files = {}, newest = 5 }")
    assert.is_nil(data "exclude = 'x'")
  end)

  it("is united along a chain, and the largest number counts", function()
    assert.same(
      { files = { "a", "b", "c" }, newest = 3, by = { "a", "b" } },
      chain("newest_only = { 'a', 'b' }", "newest_only = { files = { 'b', 'c' }, newest = 3 }")
    )
    assert.same(
      { files = { "c" }, newest = 2, by = { "b" } },
      chain("newest_only = { files = {}, newest = 9 }", "newest_only = 'c'")
    )
  end)

  it("is refused where it is no data of that kind", function()
    for _, value in ipairs {
      "function() return 'a' end",
      "{ files = function() return 'a' end }",
      "{ function() return 'a' end }",
      "keep.last(3)",
      "5",
      "{ newest = 2 }",
      "{ files = 'a', newest = 0 }",
      "{ files = 'a', newest = 1.5 }",
      "{ files = 'a', newest = '2' }",
      "{ files = 'a', newest = 1 / 0 }",
      "{ files = 'a', newest = 1001 }",
      "{ files = 'a', newst = 2 }",
      "{ 'a', newest = 2 }",
      "{ 5 }",
      "''",
      "'/abs'",
      "'{step}.pt'",
    } do
      local kind, why = library.refusal("return { api = 1, newest_only = " .. value .. " }")
      assert.equal("syntax", kind, value)
      assert.truthy(why, value)
    end
  end)

  it("says of what is refused which member is wrong, and what it may be", function()
    for value, word in pairs {
      ["{ files = 'a', newest = 1001 }"] = "from 1 to 1000 }; here newest is 1001",
      ["{ files = 'a', newest = '2' }"] = 'here newest is "2"',
      ["{ files = 'a', newst = 2 }"] = 'here "newst" is neither',
      ["{ 'a', newest = 2 }"] = "here a glob stands beside a name: it belongs into files",
      ["{ newest = 2 }"] = "here files is missing",
    } do
      local _, why = library.refusal("return { api = 1, newest_only = " .. value .. " }")
      assert.truthy(why:find(word, 1, true), value .. ": " .. why)
    end
  end)
end)
