-- Hostile policies through the verbs that try a policy: check, simulate, diff and test. Beside the
-- files of the directory above, each attack below is made from each function that it can have.
local place = require "place"
local support = require "support"

local attacks = {
  loop = "while true do end",
  rows = "local rows = {} for i = 1, math.huge do rows[i] = {} end",
  text = 'local text = "x" while true do text = text .. text end',
  letters = 'local t = (("x"):rep(60000):gsub(".", ("y"):rep(60000)))',
  depth = "local function deep(n) return 1 + deep(n + 1) end deep(1)",
  pattern = 'local t = (("a"):rep(30000)):find(("a-"):rep(20) .. "b")',
  raised = "error(setmetatable({}, { __tostring = function() while true do end end }))",
  answer = "local a = {} a[1] = a do return a end",
  sorted = "local list = {} for i = 1, 10000 do list[i] = i end "
    .. "table.sort(list, function() while true do end end)",
}

local from = {
  chunk = "%s return { api = 1 }",
  sync = "return { api = 1, sync = function(e, memory) %s end }",
  keep = "return { api = 1, keep = function(list, memory) %s end }",
  must = "return { api = 1, keep = keep.last(1), must = { function(before, after) %s end } }",
  would_keep = "return { api = 1, would_keep = function(list, memory) %s end }",
  ready = "return { api = 1, ready = function(e) %s end }",
  queue = "return { api = 1, queue = function(e) %s end }",
  on_committed = "return { api = 1, on_committed = function(e) %s end }",
  on_preempt = "return { api = 1, on_preempt = function(e) %s end }",
}

local run = [[
{"t":0,"event":"start"}
{"t":1,"event":"checkpoint","checkpoint":{"name":"c-1","step":1,"bytes":1000,"metrics":{"loss":2}}}
{"t":2,"event":"result","metrics":{"loss":3},"training_iteration":2}
{"t":3,"event":"checkpoint","checkpoint":{"name":"c-2","step":2,"bytes":1000,"metrics":{"loss":3}}}
{"t":4,"event":"error"}
{"t":5,"event":"checkpoint","checkpoint":{"name":"c-3","step":3,"bytes":1000,"metrics":{"loss":1}}}
{"t":6,"event":"preempt"}
{"t":7,"event":"end"}
]]

local asked = [[
local testing = require("ckpt").testing
local path = os.getenv "HOSTILE"
local loads, policy = pcall(testing.policy, path)
it("loads", function() if not loads then error(policy, 0) end end)
for _, hook in ipairs { "ready", "sync", "queue", "on_error", "on_preempt", "on_committed" } do
  it(hook, function()
    return loads and policy:ask(hook, testing.event { checkpoint = { step = 7 } })
  end)
end
for _, hook in ipairs { "keep", "keep_local", "restore" } do
  it(hook, function()
    return loads and policy:keep({ { metrics = { loss = 2 } }, { metrics = { loss = 3 } } }, hook)
  end)
end
it("plays", function() testing.simulate(path, "run.jsonl") end)
]]

local policies = {}

-- What ends by itself has a code of its own; a signal's is over 128, and 124 is out of time.
local function each(verb, args, codes)
  for _, path in ipairs(policies) do
    local text, code, mib = place.measured(
      ("policy %s %s"):format(verb, (args:gsub("PATH", path))),
      ("HOSTILE='%s' timeout 120"):format(path))
    assert(codes[code], ("%s of %s ended with %d:\n%s"):format(verb, path, code, text:sub(-2000)))
    assert(support.sanitized or mib < 512, ("%s of %s took %d MiB"):format(verb, path, mib))
  end
end

describe("a hostile policy", function()
  place.with_directory(function(dir)
    policies = {}
    for path in support.sh(("ls '%s'/spec/hostile/[0-9]*.lua"):format(support.root))
      :gmatch "[^\n]+" do
      policies[#policies + 1] = path
    end
    for where, text in pairs(from) do
      for what, attack in pairs(attacks) do
        local path = ("%s/%s_%s.lua"):format(dir, where, what)
        support.write(path, text:format(attack))
        policies[#policies + 1] = path
      end
    end
    support.write(dir .. "/run.jsonl", run)
    support.write(dir .. "/asked_test.lua", asked)
    support.write(dir .. "/plain.lua", "return { api = 1, keep = keep.last(2) }\n")
  end)

  it("is one of 200", function() assert.is_true(#policies >= 200) end)

  it("is checked, in bounded time and memory", function()
    each("check", "PATH", { [0] = true, [2] = true })
  end)

  it("is played through a run that is told, in bounded time and memory", function()
    each("simulate", "run.jsonl -p PATH", { [0] = true, [2] = true })
  end)

  it("is held against another one, in bounded time and memory", function()
    each("diff", "PATH plain.lua", { [0] = true, [2] = true })
  end)

  it("is asked by a test, in bounded time and memory", function()
    each("test", "asked_test.lua", { [0] = true, [1] = true })
  end)
end)
