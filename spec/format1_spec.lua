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

--- Of its checkpoints two have lost files since newer ones were there.
describe("a store of format 1 with thin checkpoints", function()
  local dir, store
  local cjson = require "cjson"
  local odd = "sub/odd %name \195\169"

  place.with_directory(function(made)
    dir = made
    store = dir .. "/store"
    sh(("cp -r '%s/spec/data/format1/thin' '%s'"):format(support.root, store))
  end)

  it("lists and shows what is left of them, and who took the rest", function()
    local rows = {}
    for line in run(0, ("ls --json '%s'"):format(store)):gmatch "[^\n]+" do
      rows[#rows + 1] = cjson.decode(line)
    end
    assert.equal(4, #rows)
    for i, row in ipairs(rows) do
      assert.equal(i <= 2 or nil, row.thin)
      assert.equal(i <= 2 and 1 or nil, row.left_out)
      assert.equal(i <= 2 and 3 or 4, row.files)
    end
    local shown = cjson.decode(run(0, ("show --json '%s' checkpoint-0"):format(store)))
    assert.same({ globs = { "odd*" }, newest = 2, policy = "test", reason = "two are newer" },
      shown.taken)
    assert.equal(1, #shown.left_names)
    local text = run(0, ("show '%s' checkpoint-0"):format(store))
    assert.truthy(text:find("by excludes, or taken since newer ones are there", 1, true), text)
    assert.truthy(text:find("taken      by test: two are newer", 1, true), text)
    text = run(0, ("show '%s' checkpoint-3"):format(store))
    assert.falsy(text:find("taken", 1, true), text)
  end)

  it("verifies, and finds what else is missing", function()
    local text = run(0, ("verify '%s'"):format(store))
    assert.equal(4, select(2, text:gsub("ok ", "")))
    sh(("rm '%s/checkpoint-0/model.bin'"):format(store))
    run(5, ("verify '%s'"):format(store))
  end)

  it("restores their rest, and says that some is not there", function()
    for i = 0, 1 do
      local text = run(0, ("restore '%s' checkpoint-%d --dir '%s/out' 2>&1"):format(store, i, dir))
      assert.truthy(text:find("without 1 file that was left out of it when it was saved, or " ..
        "taken since newer ones are there", 1, true), text)
    end
    run(0, ("restore '%s' checkpoint-3 --dir '%s/out'"):format(store, dir))
    sh(("cd '%s/out' && test ! -e 'checkpoint-0/%s' && test ! -e 'checkpoint-1/%s' && " ..
      "test -s 'checkpoint-3/%s' && test -s checkpoint-0/model.bin"):format(dir, odd, odd, odd))
  end)

  it("has copies that say themselves what is gone", function()
    sh(("cp -r '%s/checkpoint-0' '%s/copy'"):format(store, dir))
    run(0, ("verify '%s/copy'"):format(dir))
    sh(("rm '%s/copy/.ckpt-thin.json'"):format(dir))
    run(5, ("verify '%s/copy'"):format(dir))
  end)

  it("is repaired by their notes where the entry is lost", function()
    sh(("cd '%s/.ckpt/log' && grep -q thin *10.json && rm *10.json *11.json"):format(store))
    run(0, ("repair '%s' --take-over"):format(store))
    run(0, ("verify '%s'"):format(store))
    local shown = cjson.decode(run(0, ("show --json '%s' checkpoint-0"):format(store)))
    assert.same({ "odd*" }, shown.taken.globs)
  end)

  it("is gone on with by its run", function()
    local job = [[sh -c 'sleep 0.1; echo x >w/next.pt; sleep 0.3']]
    run(0, ("run --dir w --to '%s' --run format1 -- %s"):format(store, job))
    assert.truthy(run(0, ("ls '%s'"):format(store)):find("next%.pt"))
    run(0, ("verify '%s'"):format(store))
  end)

  it("starts a job from one as from what it has, and takes a whole one here for it", function()
    local function start()
      return run(0, ("run --dir w --to '%s' --run format1 -- true 2>&1"):format(store))
    end
    for i = 2, 3 do run(0, ("mark bad '%s' checkpoint-%d"):format(store, i)) end
    local text = start()
    assert.truthy(text:find("checkpoint-1 lacks 1 file that was left out of it when it was " ..
      "saved, or taken since newer ones are there: the job goes on without it", 1, true), text)
    assert.truthy(text:find("resume from .*checkpoint%-1, restored"), text)
    assert.truthy(start():find "durable in")
    -- The state of this machine is lost, and the copy here has all that the checkpoint ever had.
    sh(("cp '%s/checkpoint-1/%s' w/checkpoint-1/sub/ && " ..
      "touch -d @1700000002.123456789 'w/checkpoint-1/%s' && rm -r w.ckpt"):format(store, odd, odd))
    text = start()
    assert.truthy(text:find("resume from .*checkpoint%-1\n"), text)
    assert.truthy(text:find("0 committed", 1, true), text)
    sh(("test -s 'w/checkpoint-1/%s'"):format(odd))
    -- When they are gone in the store it is no lost one: it is restored as before.
    sh(("rm -r '%s/checkpoint-1/%s' w w.ckpt"):format(store, odd))
    text = start()
    assert.truthy(text:find("resume from .*checkpoint%-1, restored"), text)
    assert.truthy(text:find "durable in", text)
  end)

  it("deletes one with its note", function()
    run(0, ("rm '%s' checkpoint-0 --grace-delete 0"):format(store))
    sh(("test ! -e '%s/checkpoint-0'"):format(store))
  end)

  it("is refused by name by 1.0, which calls nothing damage", function()
    local old = sh(("cd '%s' && spec/older/v1.0.sh path || true"):format(support.root)):match "%S+"
    if not old or old:sub(1, 1) ~= "/" then return end
    for _, words in ipairs { "ls", "verify", "latest", "gc" } do
      local text = sh(("%s %s '%s' 2>&1; echo ended with $?"):format(old, words, store))
      assert.truthy(text:find("needs a newer ckpt-lua", 1, true), words .. ": " .. text)
      assert.falsy(text:find("ended with 0", 1, true), text)
    end
  end)
end)
