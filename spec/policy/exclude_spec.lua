--- `exclude` where it has functions: what one checkpoint alone is saved without.
local library = require "policy.rules"
local event = library.event

local function asked(M, more, memory) return M.ask("exclude", event(more), memory) end

describe("a function of exclude", function()
  it("is asked about a checkpoint, and gives its globs and a reason", function()
    local M, data = library.keys [[exclude = function(e)
      if e.checkpoint.step % 2 == 0 then return { "optim*", "*.log" }, "even" end
    end]]
    assert.is_nil(data.exclude)
    assert.same({ "mine" }, data.has.exclude)
    assert.is_true(data.written.exclude)
    local globs, reason, by = asked(M, { checkpoint = { step = 4 } })
    assert.same({ { "optim*", "*.log" }, "even", "mine" }, { globs, reason, by })
    assert.is_nil((asked(M, { checkpoint = { step = 3 } })))
  end)

  it("may give one glob, or none", function()
    assert.same({ "a" }, (asked(library.keys "exclude = function() return 'a' end")))
    assert.is_nil((asked(library.keys "exclude = function() return {} end")))
  end)

  it("stands among globs, which are for all checkpoints", function()
    local M, data = library.keys "exclude = { '*.log', function() return 'a' end, 'tmp/' }"
    assert.same({ "*.log", "tmp/" }, data.exclude)
    assert.same({ "a" }, (asked(M)))
  end)

  it("is put together with those of other policies", function()
    local M, data = library.load {
      { "a", "return { api = 1, exclude = function() return { 'x', 'y' }, 'one' end }" },
      { "b", "return { api = 1, exclude = 'z' }" },
      { "c", "return { api = 1, exclude = function() return { 'y', 'w' }, 'two' end }" },
      { "d", "return { api = 1, exclude = function() end }" },
    }
    assert.same({ "z" }, data.exclude)
    assert.same({ "a", "c", "d" }, data.has.exclude)
    local globs, reason, by = asked(M)
    assert.same({ { "x", "y", "w" }, "one, two", "a, c" }, { globs, reason, by })
  end)

  it("remembers", function()
    local M = library.keys [[exclude = function(_, memory)
      memory.n = (memory.n or 0) + 1
      return memory.n % 2 == 0 and "optim*" or nil
    end]]
    local globs, _, _, memory = asked(M)
    assert.is_nil(globs)
    assert.same({ "optim*" }, (asked(M, nil, memory)))
  end)

  for what, row in pairs {
    ["a number"] = { "5", "mine: `exclude` returned 5: globs of 1 to 255 bytes" },
    ["true"] = { "true", "mine: `exclude` returned true: globs" },
    ["a table of names"] = { "{ a = 'b' }", "a glob or a list of globs" },
    ["an empty text"] = { "''", "globs of 1 to 255 bytes" },
    ["a step"] = { "'a-{step}'", 'globs without "{"' },
    ["a path of the machine"] = { "'/etc'", "begins with a slash" },
    ["more than 64"] = {
      "(function() local t = {} for i = 1, 65 do t[i] = 'f' .. i end return t end)()",
      "65 globs for one checkpoint: at most 64",
    },
  } do
    it("has no answer with " .. what, function()
      local M = library.keys(("exclude = function() return %s end"):format(row[1]))
      local ok, why = pcall(asked, M)
      assert.is_false(ok)
      assert.truthy(why.text:find(row[2], 1, true), why.text)
    end)
  end

  it("is no rule, and stands in no table of names", function()
    local _, why = library.refusal "return { api = 1, exclude = { a = function() end } }"
    assert.equal("mine.lua: `exclude` is a glob, a function, or a list of them", why)
    _, why = library.refusal "return { api = 1, exclude = keep.last }"
    assert.truthy(why:find("globs of 1 to 255 bytes, one of which is keep.last", 1, true))
  end)
end)
