-- policy test: tests of policies, run by busted, and what they do not reach.

local place = require "place"
local support = require "support"
local ends, has, lacks = place.ends, place.has, place.lacks

local dir

place.with_directory(function(made) dir = made end)

local function write(name, text) support.write(dir .. "/" .. name, text) end

local function test(name, body)
  write(name, ('local testing = require("ckpt").testing\nit("is right", function()\n%s\nend)')
    :format(body))
end

describe("policy test", function()
  it("runs the files that are named, else those of the directory", function()
    write("p.lua", "return { api = 1, keep = keep.last(1) }")
    test("a_test.lua", 'assert.same({ "checkpoint-2" }, (testing.policy("p.lua"):keep(2)))')
    test("b_spec.lua", "assert.is_true(true)")
    test("other.lua", "assert.is_true(false)")
    has(ends(0, "policy test"), "2 successes / 0 failures")
    has(ends(0, "policy test a_test.lua"), "1 success / 0 failures")
    local text = ends(1, "policy test other.lua b_spec.lua")
    has(text, "1 success / 1 failure")
    has(text, "other.lua")
  end)

  it("tells lines and rules that no test has reached", function()
    write("p.lua", [[
return {
  api = 1,
  sync = any { when.at_most_every("10m"), when.iterations(3), function(e)
    if e.checkpoint.step == 7 then
      return true, "lucky"
    end
  end },
  keep = keep.last(2),
  restore = keep.last(1),
}]])
    test("p_test.lua", [[
      local policy = testing.policy "p.lua"
      assert.is_false((policy:sync { since = { seconds = 1 }, results = 1 }))
      policy:keep(1)]])
    local text = ends(0, "policy test --coverage")
    has(text, "p.lua: 7 of 8 lines; not reached: 5")
    has(text, "p.lua:3: when.at_most_every never said yes")
    has(text, "p.lua:8: keep.last never said no")
    has(text, "p.lua:9: keep.last was never asked")
    lacks(ends(0, "policy test"), "not reached")
    test("p_test.lua", [[
      local policy = testing.policy "p.lua"
      for seconds = 1, 1000, 999 do
        policy:sync { since = { seconds = seconds, results = 9 }, results = 9 }
      end
      policy:sync { since = { seconds = 1 }, results = 1, checkpoint = { step = 7 } }
      policy:keep(3)
      policy:keep(3, "restore")
      assert.is_true(false)]])
    text = ends(1, "policy test p_test.lua --coverage") -- also where a test fails
    has(text, "p.lua: 8 of 8 lines\n")
    lacks(text, "never")
  end)

  it("counts a policy that fails, and what `must` of it says", function()
    write("p.lua", [[
if 1 > 2 then
  note "never"
end
return {
  api = 1,
  sync = function(e)
    local loss = e.result.loss
    return loss < 1
  end,
  keep = keep.last(1),
  must = { never_fewer_than(1), function(before, after)
    if #before > 2 then
      return false, "too many"
    end
    return true
  end },
}]])
    test("p_test.lua", [[
      local policy = testing.policy "p.lua"
      assert.has_error(function() policy:sync() end)
      policy:keep(2)]])
    local text = ends(0, "policy test --coverage")
    has(text, "p.lua: 10 of 13 lines; not reached: 2, 8, 13\n")
    has(text, "p.lua:11: never_fewer_than(1) never said no")
    has(text, "p.lua:11: its function never said no")
    lacks(text, "keep.last")
  end)

  it("goes on with the next test where a policy loops, grows, or falls into C", function()
    write("loops.lua", "return { api = 1, sync = function() while true do end end }")
    write("grows.lua", "return { api = 1, sync = function()\n"
      .. "local t = {} while true do t[#t + 1] = {} end end }")
    write("falls.lua", "return { api = 1, sync = function()\n"
      .. "local function f() return (('x'):gsub('.', f)) end return f() end }")
    write("a_test.lua", [[
local testing = require("ckpt").testing
for _, name in ipairs { "loops", "grows", "falls" } do
  it(name, function() testing.policy(name .. ".lua"):sync() end)
end
it("goes on", function() end)]])
    for _, option in ipairs { "", " --coverage" } do
      local text, code, mib = place.measured("policy test" .. option)
      assert.are.equal(1, code, text)
      has(text, "1 success / 0 failures / 3 errors")
      has(text, "loops.lua:1: used up its ")
      has(text, "grows.lua: it holds more memory than it may")
      has(text, "falls.lua:2: gsub calls itself too often")
      assert.is_true(support.sanitized or mib < 200, mib .. " MiB")
    end
  end)

  it("says what is missing", function()
    local _, said = ends(4, "policy test")
    has(said, "no *_test.lua and no *_spec.lua is in this directory: name the FILE")
    test("a_test.lua", "")
    _, said = ends(127, "policy test", "LUA_PATH='/none/?.lua'")
    has(said, "busted is not there, which runs the tests: install it")
    ends(1, "policy test none.lua")
    write("a_test.lua", "this is no Lua")
    ends(1, "policy test a_test.lua")
    ends(2, "policy test --what")
  end)

  it("needs no program of ours but this one", function()
    write("p.lua", "return { api = 1 }")
    test("a_test.lua", [[assert.same({ "c" }, testing.simulate("p.lua", {
      { event = "checkpoint", checkpoint = { name = "c" } } }).saved)]])
    ends(0, "policy test", "PATH=/usr/bin:/bin")
  end)
end)
