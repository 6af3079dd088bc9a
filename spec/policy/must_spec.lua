--- must: what an answer of `keep` may not break.
local library = require "policy.rules"
local items, kept = library.items, library.kept

local function refused(must)
  local kind, text = library.refusal("return { api = 1,\nmust = " .. must .. " }")
  assert.equal("syntax", kind)
  return text
end

local function says(text, part) assert.truthy(text:find(part, 1, true), text) end

-- Losses that the list gets, the oldest first; false: it has none.
local function losses(list)
  return items(#list, function(item, i) item.metrics.loss = list[i] or nil end)
end

describe("must", function()
  it("lets everything stay where it is broken, and says which, of whom and why", function()
    local M = library.keys "\nkeep = keep.last(1),\nmust = never_fewer_than(2)"
    local names, rows = kept(M, items(3))
    assert.equal("c1 c2 c3", names)
    says(rows[1].reason, "`must` of mine (never_fewer_than(2)) is broken")
    says(rows[1].reason, "of 3 only 1 would be left")
    M = library.keys "\nkeep = keep.last(1),\nmust = never_fewer_than(2)"
    local _, _, by, _, warnings = M.ask("keep", { list = items(3) })
    assert.equal("mine", by)
    says(warnings[1], "mine.lua:3: `must`: never_fewer_than(2) is broken")
    local _, _, _, _, more = M.ask("keep", { list = items(3) })
    assert.same({}, more)
  end)

  it("changes nothing where it holds", function()
    local M = library.keys "keep = keep.last(2), must = { never_fewer_than(2), survives.last(2) }"
    assert.equal("c2 c3", (kept(M, items(3))))
    assert.equal("c1", (kept(M, items(1))))
  end)

  it("looks at what the whole chain keeps, whoever's it is", function()
    local function chain(a, b)
      local wrap = function(text) return "return { api = 1, " .. text .. " }" end
      return library.load { { "a", wrap(a) }, { "b", wrap(b) } }
    end
    local M = chain("keep = keep.last(1)", "must = never_fewer_than(2)")
    local names, rows = kept(M, items(3))
    assert.equal("c1 c2 c3", names)
    says(rows[1].reason, "`must` of b")
    assert.equal("b", rows[1].by)
    M = chain("keep = keep.last(1), must = never_fewer_than(2)", "keep = keep.every_steps(100)")
    assert.equal("c1 c2 c3", (kept(M, items(3))))
    M = chain("keep = keep.last(1), must = never_fewer_than(2)", "keep = keep.every_steps(200)")
    assert.equal("c2 c3", (kept(M, items(3))))
  end)

  it("survives.best: one with the best score is left", function()
    local M = library.keys [[keep = keep.last(1), must = survives.best("loss", "min")]]
    assert.equal("c1 c2 c3", (kept(M, losses { 0.1, 0.3, 0.2 })))
    assert.equal("c3", (kept(M, losses { 0.3, 0.2, 0.1 })))
    assert.equal("c3", (kept(M, losses { 0.1, 0.2, 0.1 })))
    assert.equal("c3", (kept(M, losses { 0 / 0, false, 5 })))
    assert.equal("c3", (kept(M, losses { false, false, false })))
    M = library.keys [[keep = keep.last(1), must = survives.best("acc", "max")]]
    local list = items(2, function(item, i) item.metrics.acc = 3 - i end)
    local names, rows = kept(M, list)
    assert.equal("c1 c2", names)
    says(rows[1].reason, "c1 would not be left, the best with acc = 2")
  end)

  it("survives.every_steps and survives.last: these are left", function()
    local M = library.keys [[keep = keep.last(1), must = survives.every_steps(200)]]
    assert.equal("c1 c2 c3", (kept(M, items(3))))
    local list = items(2, function(item) item.step = nil end)
    assert.equal("c2", (kept(M, list)))
    M = library.keys [[keep = keep.every_steps(100000), must = survives.last(5)]]
    local names, rows = kept(M, items(5))
    assert.equal("c1 c2 c3 c4 c5", names)
    says(rows[1].reason, "c1, c2, c3 and 2 more would not be left")
  end)

  it("asks a function with what is there and what would be left", function()
    local M, data = library.keys [[keep = keep.last(2), must = function(before, after)
      return #before == 3 and #after == 2 and after[1] == before[2], "not so"
    end]]
    assert.is_true(data.written.keep)
    assert.equal("c2 c3", (kept(M, items(3))))
    local names, rows = kept(M, items(4))
    assert.equal("c1 c2 c3 c4", names)
    says(rows[1].reason, "its function) is broken: not so")
  end)

  it("takes nothing but true and false of a function, and says so with its line", function()
    local M = library.keys "keep = keep.last(2),\nmust = function(before) return before end"
    local ok, why = pcall(M.ask, "keep", { list = items(3) })
    assert.is_false(ok)
    assert.equal("answer", why.kind)
    says(why.text, "mine.lua:2: `must` returned a table: true or false")
  end)

  it("lets no function change the list", function()
    local M = library.keys [[keep = keep.last(1), must = function(before)
      for _, c in ipairs(before) do c.name, c.metrics = "x", nil end
      return true
    end]]
    local list = items(2)
    assert.equal("c2", (kept(M, list)))
    assert.same(items(2), list)
  end)

  it("is tested on 10,000 checkpoints in a moment", function()
    local list = items(10000, function(item, i) item.metrics.loss = (i * 7919) % 10007 end)
    local M = library.keys [[keep = any { keep.last(3), keep.best("loss", 2, "min") },
      must = { never_fewer_than(2), survives.best("loss", "min"), survives.last(3),
        survives.every_steps(10000000) }]]
    local steps = 0
    jit.off()
    jit.flush() -- what earlier tests had compiled counts no step
    debug.sethook(function() steps = steps + 1000 end, "", 1000)
    local names = kept(M, list)
    debug.sethook()
    jit.on()
    assert.truthy(names:find("c10000", 1, true))
    assert.is_true(steps < 7e6, "instructions: " .. steps) -- a request may use 10 million
  end)

  it("is not asked about what is restored, or stays here", function()
    local M = library.keys [[keep_local = keep.last(1), restore = keep.last(1),
      must = never_fewer_than(2)]]
    assert.equal("c3", (kept(M, items(3), "keep_local")))
    assert.equal("c3", (kept(M, items(3), "restore")))
  end)

  it("refuses what is no rule of it, and says what is", function()
    says(refused "5", "mine.lua: `must` is a list of rules as never_fewer_than(2)")
    says(refused "{}", "`must` is a list of rules")
    says(refused "{ never_fewer_than(1), keep.last(2) }", "entry 2 is keep.last")
    says(refused "{ survives.best }", "entry 1 is survives.best without its ( )")
    says(refused "{ never_fewer_than }", "entry 1 is never_fewer_than without its ( )")
    says(refused "{ 'x' }", 'entry 1 is "x"')
    says(refused "{ never_fewer_than(0) }", "mine.lua:2: never_fewer_than: a whole number")
    says(refused "survives.best('loss')", 'mine.lua:2: survives.best: say "min" or "max"')
    says(refused "survives.beast('loss')", 'did you mean "best"?')
    says(refused "any { never_fewer_than(2) }", "never_fewer_than(2) is no rule of yes or no")
    local _, text = library.refusal "return { api = 1, keep = never_fewer_than(2) }"
    says(text, "`keep` is a keep rule or a function, not never_fewer_than(2)")
    _, text = library.refusal "local m = survives.last(2)\nreturn { api = 1 }"
    says(text, "mine.lua:1: survives.last(2) is made here and not used")
    _, text = library.refusal "return { api = 1, msut = never_fewer_than(2) }"
    says(text, 'did you mean "must"?')
  end)
end)
