local library = require "policy.rules"

--- What the engine is told of a policy with these keys.
local function data(text)
  local _, told = library.keys(text)
  return told
end

local function refused(text)
  local kind, why = library.refusal("return { api = 1,\n " .. text .. "\n}")
  assert.equal("syntax", kind, text)
  return why
end

describe("complete", function()
  for rule, tree in pairs {
    ["done.renamed()"] = { done = "renamed" },
    ["done.closed()"] = { done = "closed" },
    ["done.superset_of_previous()"] = { done = "superset" },
    ["done.sound()"] = { done = "sound" },
    ["done.quiet '1.5s'"] = { done = "quiet", ns = 1500000000 },
    ["done.quiet(0)"] = { done = "quiet", ns = 0 },
    ["done.marker 'DONE'"] = { done = "marker", name = "DONE", newer = false },
    ["done.marker('DONE', { newer = true })"] = { done = "marker", name = "DONE", newer = true },
    ["done.parts('shard-*', 8)"] = { done = "parts", name = "shard-*", count = 8 },
    ["done.known {}"] = { done = "known" },
    ["done.known { quiet = 30, marked = '5s', settled = '100ms', markers = {} }"] = {
      done = "known",
      quiet_ns = 30000000000,
      marked_ns = 5000000000,
      settled_ns = 100000000,
      markers = {},
    },
    ["done.known { markers = { { name = 'a', when = 'b*' }, { name = 'c', newer = true } } }"] = {
      done = "known",
      markers = {
        { name = "a", when = "b*", newer = false, final = false },
        { name = "c", newer = true, final = false },
      },
    },
    ["done.known { markers = { { name = 'a', final = true } } }"] = {
      done = "known",
      markers = { { name = "a", newer = false, final = true } },
    },
    ["any { done.renamed(), all { done.closed(), none { done.quiet(1) } } }"] = {
      any = {
        { done = "renamed" },
        { all = { { done = "closed" }, { none = { { done = "quiet", ns = 1000000000 } } } } },
      },
    },
    ["all { done.known {}, done.marker 'DONE' }"] = {
      all = { { done = "known" }, { done = "marker", name = "DONE", newer = false } },
    },
  } do
    it("is told as it is written: " .. rule, function()
      assert.same(tree, data("complete = " .. rule).complete)
    end)
  end

  it("is refused if it is none", function()
    for _, rule in ipairs {
      "done.quiet()",
      "done.quiet 'soon'",
      "done.quiet '2d'",
      "done.marker()",
      "done.marker 'a/b'",
      "done.marker('a', { newest = true })",
      "done.marker('a', true)",
      "done.parts('shard-*')",
      "done.parts(8, 'shard-*')",
      "done.parts('shard-*', 0)",
      "done.parts('shard-*', 1.5)",
      "done.parts('shard-*', math.huge)",
      "done.parts('shard-*', 1000001)",
      "done.parts('', 1)",
      "done.known { quite = 1 }",
      "done.known { markers = 'x' }",
      "done.known { markers = { 'x' } }",
      "done.known { markers = { { when = 'x' } } }",
      "done.known { markers = { { name = 'x', newest = true } } }",
      "keep.last(1)",
      "function() return true end",
      "any { done.closed(), function() end }",
      "'renamed'",
      "{ done.closed() }",
      "done.closed",
    } do
      refused("complete = " .. rule)
    end
  end)

  it("has at most 64 rules", function()
    local function closed(n) return "all { " .. ("done.closed(), "):rep(n) .. "}" end
    assert.equal(63, #data("complete = " .. closed(63)).complete.all)
    assert.truthy(refused("complete = " .. closed(64)):find("at most 64", 1, true))
  end)
end)

describe("metrics", function()
  it("are told as sources", function()
    local told = data [[metrics = {
      from.json("trainer_state.json", "log_history[-1]"),
      from.jsonl "result.json",
      from.json("m.json", "l[step=at]", { own = true }),
      from.name { key = "loss", after = "loss=" },
      from.name(),
      from.notify(),
    }]]
    assert.same({
      { from = "json", file = "trainer_state.json", path = "log_history[-1]" },
      { from = "jsonl", file = "result.json", path = "" },
      { from = "json", file = "m.json", path = "l[step=at]", own = true },
      { from = "name", key = "loss", after = "loss=" },
      { from = "names" },
      { from = "notify" },
    }, told.metrics)
    assert.same({ { from = "notify" } }, data("metrics = from.notify()").metrics)
  end)

  it("are refused where they leave the checkpoint, or are no source", function()
    for _, source in ipairs {
      "from.json()",
      "from.json '/etc/passwd'",
      "from.json '../x'",
      "from.json 'a/../../x'",
      "from.json('a', 5)",
      "from.json('a', 'b', 5)",
      "from.json('a', nil, { owm = true })",
      "from.name 'loss='",
      "from.name { key = 'loss' }",
      "from.name { key = 'loss', before = 'x' }",
      "{}",
      "{ 'loss' }",
      "done.closed()",
      "function() end",
    } do
      refused("metrics = " .. source)
    end
  end)
end)

describe("names", function()
  it("are one glob or a list of them", function()
    assert.same({ "model-{step}/" }, data("unit = 'model-{step}/'").unit)
    local told = data [[unit = { "a-{step}/", proven "{step}/" }, exclude = "*.log",
      with = { "latest", "runs/**" }]]
    assert.same({ "a-{step}/", { glob = "{step}/", proven = true } }, told.unit)
    assert.same({ "*.log" }, told.exclude)
    assert.same({ "latest", "runs/**" }, told.with)
  end)

  it("may be Lua patterns where a glob says the same", function()
    for pattern, glob in pairs {
      ["^model%-(%d+)$"] = "model-{step}",
      ["^model%-%d+%.bin$"] = "model-{step}.bin",
      ["^tmp%w%w$"] = "tmp[a-zA-Z0-9][a-zA-Z0-9]",
      ["log"] = "*log*",
      ["%.log$"] = "*.log",
      ["^a.-b.*c"] = "a*b*c*",
      ["^[a-f_]x[^0-9]$"] = "[a-f_]x[!0-9]",
      ["^a%*%?b$"] = "a[*][?]b",
      ["^.$"] = "?",
    } do
      assert.same({ glob }, data(("unit = pattern %q"):format(pattern)).unit, pattern)
    end
    for _, pattern in ipairs {
      "a+",
      "^a?$",
      "%d*",
      "(a)",
      "[%a]",
      "a%",
      "%bxy",
      "%d+-%d+",
      "[a-z]+",
      "a$b",
      "[]x]",
      "[x",
    } do
      refused(("exclude = pattern %q"):format(pattern))
    end
  end)

  it("are refused if they are none", function()
    for _, text in ipairs {
      "unit = {}",
      "unit = ''",
      "unit = 5",
      "unit = { 'a', 5 }",
      "unit = { x = 'a' }",
      "unit = '/abs/'",
      "unit = 'a\\nb'",
      "unit = ('x'):rep(256)",
      "unit = function() end",
      "unit = proven ''",
      "unit = keep.last(1)",
      "exclude = proven 'x/'",
      "exclude = '{step}'",
      "exclude = pattern '%d+'",
      "with = true",
      "markers = { nul = 'x' }",
      "markers = { null = 'a/b' }",
      "markers = { null = '' }",
      "markers = { null = true }",
      "markers = '.null_marker'",
    } do
      refused(text)
    end
  end)

  it("of markers are told", function()
    local told = data "markers = { null = '.n', temp = '.t' }"
    assert.same({ null = ".n", temp = ".t" }, told.markers)
    assert.same({ temp = ".t" }, data("markers = { temp = '.t' }").markers)
  end)
end)
