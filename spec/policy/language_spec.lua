--- What a policy file may say, and what it is told when it says something else.
local library = require "policy.rules"

describe("a policy file", function()
  for text, message in pairs {
    ["return { api = 1, kepe = keep.last(3) }"] = 'mine.lua: unknown key "kepe"'
      .. ' (did you mean "keep"?)',
    ["return { api = 1, keep = keep.lst(3) }"] = 'mine.lua:1: keep has no "lst"'
      .. ' (did you mean "last"?)',
    ["\nreturn { api = 1, sync = wen.bytes(3) }"] = 'mine.lua:2: nothing is called "wen"'
      .. ' (did you mean "when"?)',
    ["return { keep = keep.last(3) }"] = "mine.lua: `api` is missing: return { api = 1, ... }",
    ["return { api = 2 }"] = "mine.lua: `api` is 1, the version of the vocabulary that is meant, "
      .. "not 2",
    ["local x = 1"] = "mine.lua: it returns nothing; a policy ends with: return { api = 1, ... }",
    ["return keep.last(1)"] = "mine.lua: it returns keep.last; a policy ends with: "
      .. "return { api = 1, ... }",
    ["\n\nx = 1\nreturn { api = 1 }"] = 'mine.lua:3: write `local` before "x"',
    ["return { api = 1, keep = keep.last }"] = "mine.lua: `keep` is a keep rule or a function, "
      .. "not keep.last without its ( )",
    ["os.exit(1)"] = "mine.lua:1: a policy has no os: it is handed a table and answers, "
      .. "and can do no more",
    ["return { api = 1, queue = 'newst' }"] = 'mine.lua: `queue` is "all", "block", "newest", '
      .. '"skip", or a function, not "newst"',
    ["return { api = 1, ready = true }"] = "mine.lua: `ready` is a function, not true",
  } do
    it("is told: " .. message, function()
      local kind, why = library.refusal(text)
      assert.same({ "syntax", message }, { kind, why })
    end)
  end

  it("is told each forbidden thing by its name", function()
    for _, name in ipairs { "io", "os", "pcall", "load", "require", "debug", "print", "_G" } do
      local kind, why = library.refusal(("local x = %s return { api = 1 }"):format(name))
      assert.equal("syntax", kind)
      assert.truthy(why:find("a policy has no " .. name, 1, true), why)
    end
  end)

  it("cannot change what it is given", function()
    for _, text in ipairs {
      "keep.last = nil",
      "keep.mine = 1",
      "string.format = nil",
      "math.huge = 0",
      "any = 5",
      "local o = options { a = { type = 'integer', default = 1 } } o.a = 2",
      "local r = keep.last(1) r.n = 2",
      "local r = keep.last(1) local n = r.n",
      "local r = keep.last(1) r()",
    } do
      local kind = library.refusal(text .. " return { api = 1 }")
      assert.equal("syntax", kind, text)
    end
  end)

  it("has the harmless part of the standard libraries", function()
    local M = library.keys [[sync = function(e)
      local n = 0
      for _, v in ipairs { 1, 2 } do n = n + math.max(v, tonumber "1") end
      return n == 3 and ("x"):rep(2) == string.rep("x", 2) and select("#", unpack { 1, 2 }) == 2
    end]]
    assert.equal("sync", (M.ask("sync", library.event())))
  end)

  it("reads times and sizes", function()
    local M = library.one [[
      local a, b = duration "1h30m", size "1.5KiB"
      local c = duration "2 min"
      return { api = 1, sync = function() return true, a .. " " .. b .. " " .. c end }
    ]]
    local _, reason = M.ask("sync", library.event())
    assert.equal("5400 1536 120", reason)
    assert.equal("syntax", (library.refusal "local a = duration 'x' return { api = 1 }"))
    assert.equal("syntax", (library.refusal "local a = size(-1) return { api = 1 }"))
  end)

  it("may say something at the start", function()
    local _, data = library.one 'note "all is\\nwell" return { api = 1 }'
    assert.same({ "mine: all is well" }, data.notes)
  end)
end)

describe("a rule that is made", function()
  for text, line in pairs {
    ["local a = keep.last(1)\nreturn { api = 1 }"] = 1,
    ["local a\n= any { keep.last(1), keep.all() }\nreturn { api = 1 }"] = 2,
    ["return { api = 1,\n keep = keep.last(3) and keep.all() }"] = 2,
    ["local r = done.closed()\nreturn { api = 1, sync = function() return r end }"] = 1,
    ["return { api = 1,\n keep = keep.last(3) or keep.best('x', 1, 'min') }"] = 2,
    ["return { api = 1,\n complete = done.closed() or\n done.renamed() }"] = 2,
    ["-- a comment\nfrom.notify()\nreturn { api = 1 }"] = 2,
  } do
    it("has to be used: " .. text:gsub("\n", " "), function()
      local kind, why = library.refusal(text)
      assert.equal("syntax", kind)
      assert.truthy(why:find(("^mine.lua:%d: "):format(line)), why)
    end)
  end

  it("may be chosen with and, or", function()
    library.one "local x = true return { api = 1, keep = x and keep.last(3) or keep.all() }"
    library.one "local x = false return { api = 1, keep = x and keep.last(3) or keep.all() }"
  end)

  it("is not seen in comments and strings", function()
    library.one [==[
      -- keep.last(3) or keep.all()
      --[[ keep.last(3) or
      ]]
      local a = "keep.last(3) or \" keep.last(3) or x" .. [=[ keep.last(1) or ]=]
      local b = 'it\'s keep.last(3) or'
      return { api = 1, sync = function(e) return e.a or e.b or #a + #b > 0 end }
    ]==]
  end)

  it("may be used twice", function()
    library.one "local a = keep.last(1) return { api = 1, keep = a, restore = any { a } }"
  end)

  it("cannot be made later, when the policy is asked", function()
    local M = library.keys "sync = function() return when.each_checkpoint() end"
    local ok, why = pcall(M.ask, "sync", library.event())
    assert.is_false(ok)
    assert.truthy(why:find("mine.lua: when.each_checkpoint makes a rule", 1, true), why)
  end)
end)

describe("options", function()
  local all = [[
    local set = options {
      n = { type = "integer", default = 3, min = 1, max = 9 },
      x = { type = "number", default = 0.5 },
      s = { type = "string", default = "min", values = { "min", "max" } },
      b = { type = "boolean", default = false },
      t = { type = "duration", default = "5m", min = "1s" },
      z = { type = "size", default = "1KiB", help = "how much" },
      u = { type = "string" },
    }
    return { api = 1, sync = function()
      return true, table.concat({ set.n, set.x, set.s, tostring(set.b), set.t, set.z,
        tostring(set.u) }, " ")
    end }
  ]]

  local function values(settings)
    local M, data = library.one(all, settings)
    local _, reason = M.ask("sync", library.event())
    return reason, data
  end

  it("have their defaults", function()
    assert.equal("3 0.5 min false 300 1024 nil", (values {}))
  end)

  it("take what the user sets", function()
    local set = { n = "9", x = "-1e3", s = "max", b = "yes", t = "1h", z = "2", u = "a b" }
    assert.equal("9 -1000 max true 3600 2 a b", (values(set)))
    assert.equal("3 0.5 min false 300 1024 nil", (values { b = "off" }))
  end)

  it("are reported with type, default, value and help", function()
    local _, data = values { z = "5MB" }
    local row = data.options[#data.options]
    assert.same({
      policy = "mine",
      name = "z",
      type = "size",
      default = 1024,
      value = 5000000,
      help = "how much",
    }, row)
    assert.equal(7, #data.options)
  end)

  for _, row in ipairs {
    { "n", "x", 'option "n" of mine: a whole number, not "x"' },
    { "n", "1.5", 'option "n" of mine: a whole number, not "1.5"' },
    { "n", "0", 'option "n" of mine: at least 1, not 0' },
    { "n", "10", 'option "n" of mine: at most 9, not 10' },
    { "n", "nan", 'option "n" of mine: a whole number, not "nan"' },
    { "n", "", 'option "n" of mine: a whole number, not ""' },
    { "s", "mix", 'option "s" of mine: "min" or "max", not "mix"' },
    { "b", "maybe", 'option "b" of mine: true or false, not "maybe"' },
    { "t", "0.5s", 'option "t" of mine: at least "1s", not 0.5' },
    { "t", "5x", 'option "t" of mine: a time as "5m", "1h30m" or seconds, not "5x"' },
    { "z", "-1", 'option "z" of mine: a size as "10MB", "1GiB" or bytes, not "-1"' },
    { "m", "1", 'no policy has an option "m" (did you mean "n"?)' },
  } do
    it(("refuse %s=%s"):format(row[1], row[2]), function()
      local kind, why = library.refusal(all, { [row[1]] = row[2] })
      assert.equal("setting", kind)
      assert.equal(row[3]:gsub(" %(did.*", ""), (why:gsub(" %(did.*", "")))
    end)
  end

  it("are refused if they are described wrongly", function()
    for _, spec in ipairs {
      "5",
      "{}",
      "{ type = 'int' }",
      "{ type = 'integer', default = 'x' }",
      "{ type = 'integer', default = 0, min = 1 }",
      "{ type = 'string', min = 1 }",
      "{ type = 'string', default = 'a', values = { 'b' } }",
      "{ type = 'integer', values = { 'b' } }",
      "{ type = 'integer', defualt = 1 }",
      "{ type = 'integer', help = 5 }",
    } do
      local text = ("local s = options { a = %s } return { api = 1 }"):format(spec)
      assert.equal("syntax", (library.refusal(text)), spec)
    end
    assert.equal("syntax", (library.refusal "options() return { api = 1 }"))
    assert.equal("syntax", (library.refusal "options { [1] = {} } return { api = 1 }"))
    local twice = "options { a = { type = 'integer' } } "
    assert.equal("syntax", (library.refusal(twice .. twice .. "return { api = 1 }")))
  end)

  it("that are not there are an error where they are read", function()
    local text = "local s = options { keep = { type = 'integer' } }\nlocal a = s.kep "
    local _, why = library.refusal(text .. "return { api = 1 }")
    assert.equal('mine.lua:2: the table of options has no "kep" (did you mean "keep"?)', why)
  end)
end)
