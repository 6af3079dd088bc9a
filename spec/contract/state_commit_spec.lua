-- What makes a save the newest checkpoint: items 87-92, 95-97, 100.

local ckpt = require "ckpt"
local states = require "contract.state_support"
local support = require "support"

local fs, rooted = ckpt.fs, states.rooted

describe("the commit of a save", function()
  local registry

  before_each(function() registry = ckpt.Registry() end)
  after_each(function() registry:close() end)

  local function two(calls)
    return states.Text("model", "M", registry, calls), states.Text("opt", "O", registry, calls)
  end

  local function warned(log, text)
    local count = 0
    for _, line in ipairs(log) do
      if line.level == "warning" and line.text:find(text, 1, true) then count = count + 1 end
    end
    return count
  end

  it("[87] shows nothing before all is written, then all at once", rooted(function(root)
    local seen = {}
    two()
    local last = states.Text("last", "L", registry)
    last.save = function(_, file)
      for name in pairs(states.tree(root)) do seen[#seen + 1] = name:match "^[^/]+" end
      file:write "L"
    end
    local publish, moved = fs.publish, {}
    fs.publish = function(from, to)
      assert.is_nil(fs.lstat(to))
      for _, name in ipairs(assert(fs.list(from))) do moved[#moved + 1] = name end
      return publish(from, to)
    end
    local fine, why = pcall(registry.save_all_states, registry)
    fs.publish = publish
    assert(fine, why)
    for _, name in ipairs(seen) do assert.equal("_checkpoint.?", name) end
    assert.same({ ".commit", "last", "model", "opt" }, moved)
    assert.equal("L", states.tree(root)["checkpoint-0/last"])
  end))

  it("[88] removes every other checkpoint-*: older, newer, numeric or not",
    rooted(function(root, log)
      states.lay(root, { ["checkpoint-1/model"] = "old", ["checkpoint-9/deep/er"] = "new",
        ["checkpoint-best/model"] = "b", ["checkpoint-/x"] = "", ["checkpoint-03/"] = true,
        ["checkpoint-2.tmp/x"] = "" })
      two()
      states.job(root, 2)
      registry:save_all_states()
      assert.same({ ["checkpoint-2/"] = true, ["checkpoint-2/model"] = "M",
        ["checkpoint-2/opt"] = "O" }, states.tree(root))
      assert.same({}, log)
    end))

  it("[89] leaves entries without that exact prefix alone", rooted(function(root)
    local others = { ["checkpoint_1/model"] = "u", ["Checkpoint-9/model"] = "c",
      ["keep.txt"] = "k", ["checkpoint"] = "f", [".checkpoint-8/x"] = "d",
      ["x-checkpoint-1/x"] = "" }
    states.lay(root, others)
    two()
    registry:save_all_states()
    local tree = states.tree(root)
    for path, data in pairs(others) do assert.equal(data, tree[path], path) end
    assert.equal("M", tree["checkpoint-0/model"])
  end))

  it("[90 G] passes over what has the prefix but is no directory, with one warning",
    rooted(function(root, log)
      states.lay(root, { ["checkpoint-old"] = "file", ["checkpoint-1/model"] = "x",
        ["aside/model"] = "kept", ["checkpoint-7"] = "file too" })
      assert(fs.symlink(root .. "/aside", root .. "/checkpoint-link"))
      two()
      states.job(root, 2)
      assert.equal(root, registry:save_all_states())
      local tree = states.tree(root)
      assert.equal("file", tree["checkpoint-old"])
      assert.equal("kept", tree["aside/model"])
      assert.is_nil(tree["checkpoint-1/"])
      assert.equal("M", tree["checkpoint-2/model"])
      assert.equal(1, #log)
      assert.equal(1, warned(log, "checkpoint-7, checkpoint-link, checkpoint-old"))
    end))

  it("[91] removes after the commit: a death in between leaves both", rooted(function(root)
    states.lay(root, { ["checkpoint-1/model"] = "old" })
    local model = two()
    states.job(root, 2)
    local rename = fs.rename
    fs.rename = function(from)
      -- What is there when the first of the old ones is about to go.
      assert.equal(root .. "/checkpoint-1", from)
      local tree = states.tree(root)
      assert.equal("M", tree["checkpoint-2/model"])
      assert.equal("old", tree["checkpoint-1/model"])
      error("died", 0)
    end
    local fine, why = pcall(registry.save_all_states, registry)
    fs.rename = rename
    assert.is_false(fine)
    assert.equal("died", why)
    states.job(root, 3)
    assert.is_true(registry:load_state(model))
    assert.equal("M", model.value)
  end))

  it("[91] without a record the highest number is loaded of two that stand side by side",
    rooted(function(root)
      states.lay(root, { ["checkpoint-1/model"] = "old", ["checkpoint-2/model"] = "new" })
      local model = two()
      states.job(root, 3)
      assert.is_true(registry:load_state(model))
      assert.equal("new", model.value)
    end))

  it("[92 G] orders by the commit record, though the counter went backwards", function()
    for _, with_record in ipairs { true, false } do
      states.with_root(function(root, log)
        registry = ckpt.Registry()
        local model = two()
        states.job(root, 9)
        registry:save_all_states()
        if not with_record then assert(fs.remove(root .. "/checkpoint-9/.commit")) end
        -- As if the next save had died before it removed the older one.
        assert(fs.copy_tree(root .. "/checkpoint-9", root .. "/aside"))
        states.job(root, 0)
        model.value = "newer"
        registry:save_all_states()
        assert(fs.rename(root .. "/aside", root .. "/checkpoint-9"))
        states.job(root, 1)
        model.value = "?"
        assert.is_true(registry:load_state(model))
        assert.equal("newer", model.value)
        assert.same({}, log)
        -- The next save removes it.
        registry:save_all_states()
        assert.is_nil(states.tree(root)["checkpoint-9/"])
      end)
    end
  end)

  it("[92 G] a checkpoint that AdaptDL wrote later, without a record, is the newest",
    rooted(function(root)
      local model = two()
      states.job(root, 4)
      registry:save_all_states()
      states.lay(root, { ["checkpoint-5/model"] = "theirs" })
      states.job(root, 6)
      assert.is_true(registry:load_state(model))
      assert.equal("theirs", model.value)
    end))

  it("[92 G] a record that cannot be read leaves the number, and says so", function()
    for _, junk in ipairs { "", "{", "[]", '{"sequence": 1e99, "replaced": []}',
      '{"sequence": 1}', '{"sequence": "9", "replaced": []}', ("x"):rep(2 ^ 20 + 1) } do
      states.with_root(function(root, log)
        registry = ckpt.Registry()
        local model = two()
        states.lay(root, { ["checkpoint-8/model"] = "8", ["checkpoint-8/.commit"] = junk,
          ["checkpoint-3/model"] = "3",
          ["checkpoint-3/.commit"] = '{"sequence": 5, "replaced": []}' })
        states.job(root, 9)
        assert.is_true(registry:load_state(model))
        assert.equal("8", model.value)
        assert.equal(1, warned(log, "checkpoint-8"))
        assert.equal(1, #log)
        assert.equal(root, registry:save_all_states())
      end)
    end
  end)

  it("[95 G] a second save under one number replaces the first in one step", rooted(function(root)
    local model = two()
    registry:save_all_states()
    model.value = "second"
    local replace = fs.replace_tree
    local calls = 0
    fs.replace_tree = function(from, to)
      calls = calls + 1
      assert.equal("M", support.read(to .. "/model"))
      return replace(from, to)
    end
    local fine, path = pcall(registry.save_all_states, registry)
    fs.replace_tree = replace
    assert(fine, path)
    assert.equal(root, path)
    assert.equal(1, calls)
    assert.same({ ["checkpoint-0/"] = true, ["checkpoint-0/model"] = "second",
      ["checkpoint-0/opt"] = "O" }, states.tree(root))
  end))

  it("[96] replaces an empty target; a target that is a file is refused, and stays",
    rooted(function(root)
      two()
      states.lay(root, { ["checkpoint-3/"] = true })
      states.job(root, 3)
      assert.equal(root, registry:save_all_states())
      assert.equal("M", states.tree(root)["checkpoint-3/model"])
      states.lay(root, { ["checkpoint-4"] = "f" })
      states.job(root, 4)
      local path, text, name = registry:save_all_states()
      assert.is_nil(path)
      assert.truthy(text:find("checkpoint-4 is not a directory", 1, true), text)
      assert.equal("EEXISTS", name)
      local tree = states.tree(root)
      assert.equal("f", tree["checkpoint-4"])
      assert.equal("M", tree["checkpoint-3/model"])
      assert.equal("O", tree["_checkpoint.?/states/opt"])
    end))

  it("[97 G] begins empty: what a dead save has left is removed", rooted(function(root)
    local model = two()
    local ghost = states.Text("ghost", "stale", registry)
    ghost.save = function(_, file)
      file:write "stale"
      error "no"
    end
    assert.is_false((pcall(registry.save_all_states, registry)))
    assert.equal("stale", states.tree(root)["_checkpoint.?/states/ghost"])
    states.lay(root, { ["_checkpoint/ghost"] = "of AdaptDL" })
    registry:close()
    registry = ckpt.Registry()
    states.Text("model", "new", registry)
    assert.equal(root, registry:save_all_states())
    -- What AdaptDL has left may be AdaptDL's that still lives.
    assert.same({ ["checkpoint-0/"] = true, ["checkpoint-0/model"] = "new",
      ["_checkpoint/"] = true, ["_checkpoint/ghost"] = "of AdaptDL" }, states.tree(root))
    assert.equal("M", model.value)
  end))

  it("[97 G] what another registry is writing is not touched", rooted(function(root)
    local other = ckpt.Registry()
    local slow = states.Text("slow", "S", other)
    assert.is_true(other:save_state(slow, root))
    local model = two()
    assert.equal(root, registry:save_all_states())
    assert.equal("S", states.tree(root)["_checkpoint.?/states/slow"])
    states.job(root, 1)
    assert.equal(root, other:save_all_states())
    assert.same({ ["checkpoint-1/"] = true, ["checkpoint-1/slow"] = "S" }, states.tree(root))
    assert.same({ "sync", "save" }, model.calls)
    other:close()
  end))

  it("[100 G] flushes files and directories before the commit, and the commit itself",
    rooted(function(root)
      two()
      local order = {}
      local mine = {}
      for _, name in ipairs { "sync_tree", "publish", "replace_tree", "rename", "remove_tree" } do
        mine[name] = fs[name]
        fs[name] = function(...)
          order[#order + 1] = name
          if name == "sync_tree" then
            -- All that will be in the checkpoint is there by then.
            assert.same({ ".commit", "model", "opt" }, fs.list((...)))
          end
          return mine[name](...)
        end
      end
      states.lay(root, { ["checkpoint-8/model"] = "old" })
      local fine, why = pcall(function()
        assert(registry:save_all_states())
        assert(registry:save_all_states())
      end)
      for name, fn in pairs(mine) do fs[name] = fn end
      assert(fine, why)
      assert.same({ "sync_tree", "publish", "rename", "remove_tree", "sync_tree", "replace_tree",
        "remove_tree" }, order)
    end))

  it("[100 G] a flush that fails is a save that failed", rooted(function(root)
    two()
    states.lay(root, { ["checkpoint-8/model"] = "old" })
    local sync_tree = fs.sync_tree
    fs.sync_tree = function() return nil, "the disk is gone", "EIO" end
    local path, text, name = registry:save_all_states()
    fs.sync_tree = sync_tree
    assert.same({ nil, "the disk is gone", "EIO" }, { path, text, name })
    assert.equal("old", states.tree(root)["checkpoint-8/model"])
    assert.is_nil(states.tree(root)["checkpoint-0/"])
  end))
end)
