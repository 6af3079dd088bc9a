--- The store of format 1 that is kept in spec/data is read, restored, verified and gone on with by
--- the programs as they are now. What is in it, and how it was made: spec/commit/test_fixtures.c.
local place = require "place"
local support = require "support"

local sh, run = place.sh, place.says

describe("a store of format 1", function()
  local dir, store

  place.with_directory(function(made)
    dir = made
    store = dir .. "/store"
    sh(("cp -r '%s/spec/data/format1/store' '%s'"):format(support.root, store))
  end)

  it("lists what is there, and says what is bad", function()
    local text = run(0, ("ls '%s'"):format(store))
    for _, name in ipairs {
      "last%.ckpt%.~6 ", "ckpt%-3 ", "checkpoint%-20 ", "checkpoint%-40 ",
      "checkpoint%-50 .*did not load", "exp/T1/checkpoint%-10%.~6 ", "ranks/checkpoint%-7 ",
    } do
      assert.truthy(text:find(name), name .. "\n" .. text)
    end
    assert.falsy(text:find("\nlast%.ckpt "), text) -- dropped
    assert.falsy(text:find("\ncheckpoint%-10 "), text) -- deleted
  end)

  it("shows one with what was said of it", function()
    local text = run(0, ("show --json '%s' checkpoint-40"):format(store))
    assert.truthy(text:find('"metrics":{"eval_loss":0.25,"step":3}', 1, true), text)
    assert.truthy(text:find('"reason":"each checkpoint"', 1, true), text)
  end)

  it("verifies, all of it", function()
    local text = run(0, ("verify '%s'"):format(store))
    assert.equal(7, select(2, text:gsub("ok ", "")))
  end)

  it("finds a byte that differs", function()
    sh(("printf x >>'%s/checkpoint-20/model.bin'"):format(store))
    run(5, ("verify '%s'"):format(store))
  end)

  it("restores one by its name, a generation too, with what was saved beside it", function()
    for _, name in ipairs { "checkpoint-40", "ckpt-3", "last.ckpt.~6", "ranks/checkpoint-7" } do
      run(0, ("restore '%s' '%s' --dir '%s/out'"):format(store, name, dir))
    end
    local text = sh(("cd '%s/out' && cat latest && ls -R"):format(dir))
    for _, name in ipairs {
      "checkpoint-40", "link", "eval.json", "ckpt-3.part-2", "last.ckpt", "shard-1.bin",
    } do
      assert.truthy(text:find(name, 1, true), name .. "\n" .. text)
    end
  end)

  it("is gone on with by the run whose it is, and by no other", function()
    local job = [[sh -c 'sleep 0.1; echo x >w/next.pt; sleep 0.3']]
    run(11, ("run --dir w --to '%s' --run other -- %s"):format(store, job))
    run(0, ("run --dir w --to '%s' --run format1 -- %s"):format(store, job))
    local text = run(0, ("ls '%s'"):format(store))
    assert.truthy(text:find("next%.pt"), text)
    assert.truthy(text:find("checkpoint%-40 "), text)
    run(0, ("verify '%s'"):format(store))
  end)
end)
