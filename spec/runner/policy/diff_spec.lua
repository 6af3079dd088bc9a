-- policy diff: with which checkpoints two policies keep different ones, as the command says it.

local place = require "place"
local support = require "support"
local ends, has, lacks = place.ends, place.has, place.lacks

local dir

place.with_directory(function(made) dir = made end)

local function policy(name, keys)
  place.must_sh("mkdir -p '" .. (dir .. "/" .. name):match "(.*)/" .. "'")
  support.write(("%s/%s.lua"):format(dir, name), "return { api = 1, " .. keys .. " }")
end

describe("policy diff", function()
  it("shows the shortest list, who keeps what of it and why, and what was searched", function()
    policy("a", 'keep = keep.best("loss", 2, "min")')
    policy("b", 'keep = keep.best("loss", 3, "min")')
    local text = ends(0, "policy diff a.lua b.lua")
    has(text, "keep: they differ with 3 checkpoints, the oldest first:\n")
    has(text, "*  c2 (loss = 1)  goes: not among the 2 best by loss  kept: among the 3 best by ")
    has(text, "\nsearched: 34 lists: orders by loss, with equal ones, NaN and missing ones: all of "
      .. "up to 3 checkpoints; ")
    has(text, "\nheld constant: steps count up; ")
    lacks(text, "keep_local")
  end)

  it("tells policies of one name apart, and compares each key that one has", function()
    policy("old/mine", "keep = keep.last(2), restore = keep.last(2)")
    policy("new/mine", "keep = keep.last(3)")
    local text = ends(0, "policy diff old/mine.lua new/mine.lua")
    has(text, "keep: they differ with 3 checkpoints")
    has(text, "restore: they differ with 2 checkpoints")
    has(ends(0, "policy diff old/mine.lua old/mine.lua"), "keep: they are equal on all")
  end)

  it("says that what only the newest keep is not compared", function()
    policy("a", "keep = keep.last(2)")
    policy("b", "keep = keep.last(2), newest_only = { 'optim*' }")
    has(ends(0, "policy diff a.lua b.lua"), "newest_only takes nothing")
    lacks(ends(0, "policy diff a.lua a.lua"), "newest_only")
  end)

  it("sets an option of both", function()
    policy("o", "keep = any { keep.last(5), keep.daily(7), keep.weekly(4) }")
    has(ends(0, "policy diff o.lua retention"), "keep: they differ with 5 checkpoints")
    has(ends(0, "policy diff o.lua retention -o last=5"), "keep: they are equal on all")
  end)

  it("has the verdict in JSON", function()
    policy("a", "keep = keep.last(1)")
    policy("b", "keep = any { keep.last(1), keep.last(1) }")
    policy("f", "keep = function(list) return { list[#list] } end")
    local rows = place.objects(ends(0, "policy diff a.lua b.lua --json"))
    assert.are.equal(1, #rows)
    assert.are.equal("equal", rows[1].verdict)
    rows = place.objects(ends(0, "policy diff a.lua f.lua --json"))
    assert.are.equal("none found", rows[1].verdict)
    has(rows[1].why, "a function")
  end)

  it("ends with 2 where one does not load, or fails on a list, and says which", function()
    policy("a", "keep = keep.last(1)")
    policy("w", "keep = keep.lasst(1)")
    policy("f", "keep = function(list) return { list[5].name } end")
    has(select(2, ends(2, "policy diff a.lua w.lua")), "w.lua:1: keep has no \"lasst\"")
    has(select(2, ends(2, "policy diff a.lua f.lua")), "f.lua:1: ")
    ends(2, "policy diff a.lua")
    ends(2, "policy diff a.lua missing.lua")
  end)

  it("is bounded where a function never ends", function()
    policy("a", "keep = keep.last(1)")
    policy("l", "keep = function() while true do end end")
    has(select(2, ends(2, "policy diff a.lua l.lua")), "it ran too long")
  end)
end)
