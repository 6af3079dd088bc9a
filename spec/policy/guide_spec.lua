--- Each Lua block of docs/policies.md is a policy, or keys of one, and loads.
local library = require "policy.rules"
local support = require "support"

local page = support.read(support.root .. "/docs/policies.md")

local function as_policy(block)
  if block:find "^return" or block:find "\nreturn" then return block end
  return "return { api = 1,\n" .. block .. "\n}"
end

describe("docs/policies.md", function()
  local count = 0
  for block in page:gmatch "\n```lua\n(.-)\n```" do
    count = count + 1
    it(("has a policy that loads: %d (%s)"):format(count, block:match "[^\n]+"), function()
      local _, data = library.one(as_policy(block))
      assert.is_table(data.has)
    end)
  end

  it("names each key and each rule, and has an example of it", function()
    local M = library.one "return { api = 1 }"
    local examples = {}
    for block in page:gmatch "\n```lua\n(.-)\n```" do examples[#examples + 1] = block end
    for block in page:gmatch "<<'END'\n(.-)\nEND\n" do examples[#examples + 1] = block end
    local shown = table.concat(examples, "\n")
    assert.is_true(count >= 15)
    for key in pairs(M.keys) do
      assert.truthy(page:find(("`%s[`( ]"):format(key)), key)
      assert.truthy(shown:find(("%%f[%%w_]%s%%s+="):format(key)), key)
    end
    for _, word in ipairs { "when", "keep", "done", "from", "survives" } do
      for name in pairs(M[word]) do
        local rule = word .. "." .. name
        assert.truthy(page:find(rule, 1, true) or page:find("`" .. name .. "`", 1, true), rule)
        assert.truthy(shown:find(rule .. "%f[^%w_]"), rule)
      end
    end
  end)

  it("shows a must that holds, and is broken where it says so", function()
    local block
    for text in page:gmatch "\n```lua\n(.-)\n```" do
      if text:find "never_fewer_than" then block = text end
    end
    local function kept(length, text)
      local list = library.items(length, function(item, i) item.metrics.loss = i end)
      return library.kept(library.one(as_policy(text)), list)
    end
    assert.equal("c1 c7 c8 c9", (kept(9, block)))
    assert.equal("c1 c8 c9 c10", (kept(10, block)))
    local names, rows = kept(10, (block:gsub(">= 3", ">= 5")))
    assert.equal("c1 c2 c3 c4 c5 c6 c7 c8 c9 c10", names)
    assert.truthy(rows[1].reason:find("of ten, three", 1, true))
    local wrong = block:gsub("keep%.best%b()", 'keep.best("loss", 1, "max")')
    names, rows = kept(9, wrong)
    assert.equal("c1 c2 c3 c4 c5 c6 c7 c8 c9", names)
    assert.truthy(rows[1].reason:find("c1 would not be left", 1, true))
  end)

  it("shows functions that answer as it says", function()
    local block
    for text in page:gmatch "\n```lua\n(.-)\n```" do
      if text:find "on_error = function" then block = text end
    end
    local M = library.one(as_policy(block))
    local function ask(hook, more) return (M.ask(hook, library.event(more), {})) end
    assert.is_false(ask("ready", { checkpoint = { names = { "a" } } }))
    assert.is_true(ask("ready", { checkpoint = { names = { "a", "optimizer.pt" } } }))
    assert.equal("skip", ask("queue", { queue = { waiting = 4 } }))
    assert.equal("newest", ask("queue", { queue = { waiting = 0 } }))
    assert.equal("c1 c2", (library.kept(M, library.items(2))))
    assert.same({ action = "abort" }, ask("on_error", { error = { code = "ACCESS", tries = 1 } }))
    local later = ask("on_error", { error = { code = "EIO", tries = 1 } })
    assert.same({ action = "retry", seconds = 30 }, later)
    assert.equal("none", ask("on_preempt", { grace = 5 }))
    local _, _, _, memory = M.ask("on_committed", library.event(), {})
    assert.same({ user = { mine = { last = "checkpoint-3" } } }, memory)
  end)
end)
