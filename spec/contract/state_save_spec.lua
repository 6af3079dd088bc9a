-- Saving states: items 73, 81-86, 93, 94, 98, 99, 299.

local ckpt = require "ckpt"
local states = require "contract.state_support"
local support = require "support"

local rooted = states.rooted

describe("saving", function()
  local registry

  before_each(function() registry = ckpt.Registry() end)
  after_each(function() registry:close() end)

  local function two(calls)
    return states.Text("model", "M", registry, calls), states.Text("opt", "O", registry, calls)
  end

  it("[73] leaves a directory checkpoint-<N> directly under the checkpoint path",
    rooted(function(root, log)
      two()
      states.job(root, 12)
      assert.equal(root, registry:save_all_states())
      assert.same({ ["checkpoint-12/"] = true, ["checkpoint-12/model"] = "M",
        ["checkpoint-12/opt"] = "O" }, states.tree(root))
      assert.same({}, log)
    end))

  it("[81] syncs one state before it is saved, on every rank, unless told not to",
    rooted(function(root)
      local model = two()
      assert.is_true(registry:save_state(model, root))
      assert.same({ "sync", "save" }, model.calls)
      assert.is_true(ckpt.save_state(model, root, false))
      assert.same({ "sync", "save", "save" }, model.calls)
      states.job(root, 0, 1)
      assert.is_nil((registry:save_state(model, root)))
      assert.is_nil((registry:save_state(model, root, false)))
      assert.same({ "sync", "save", "save", "sync" }, model.calls)
    end))

  it("[82] opens a file on rank 0 alone, and only with a checkpoint path", rooted(function(root)
    local model = two()
    for rank = 1, 3 do
      states.job(root, 0, rank)
      registry:save_state(model, root)
    end
    states.job(root, 0, 0)
    registry:save_state(model, nil)
    assert.same({ "sync", "sync", "sync", "sync" }, model.calls)
    assert.same({}, states.tree(root))
    registry:save_state(model, root)
    assert.equal("save", model.calls[6])
  end))

  it("[83] stages under the checkpoint path, which is made with its parents", rooted(function(root)
    local model = two()
    local path = root .. "/deep/er"
    assert.is_true(registry:save_state(model, path))
    local tree = states.tree(path)
    assert.equal("M", tree["_checkpoint.?/states/model"])
    for name in pairs(tree) do assert.truthy(name:find "^_checkpoint%.", name) end
    states.job(path, 1)
    assert.equal(path, registry:save_all_states())
    assert.same({ ["checkpoint-1/"] = true, ["checkpoint-1/model"] = "M",
      ["checkpoint-1/opt"] = "O" }, states.tree(path))
  end))

  it("[84] writes each state to one file of its name, cutting an older one", rooted(function(root)
    local odd = "mod\195\169le with  spaces"
    local bytes = {}
    for i = 0, 255 do bytes[i + 1] = string.char(i) end
    local all = table.concat(bytes) .. "\r\n"
    local state = states.Text(odd, ("long"):rep(1000), registry)
    registry:save_state(state, root)
    state.value = all
    registry:save_state(state, root)
    registry:save_all_states()
    assert.equal(all, support.read(root .. "/checkpoint-0/" .. odd))
  end))

  it("[86] goes in the order of registration, sync and save of one before the next",
    rooted(function()
      local order = {}
      for _, name in ipairs { "z", "a", "m", "b" } do
        local state = states.Text(name, name, registry)
        state.sync = function() order[#order + 1] = "sync " .. name end
        state.save = function() order[#order + 1] = "save " .. name end
      end
      registry:save_all_states()
      assert.same({ "sync z", "save z", "sync a", "save a", "sync m", "save m", "sync b",
        "save b" }, order)
    end))

  it("[93] returns the checkpoint path on rank 0, otherwise nothing", rooted(function(root)
    two()
    assert.equal(root, ckpt.Registry.save_all_states(registry))
    states.job(root, 0, 1)
    local path, text = registry:save_all_states()
    assert.is_nil(path)
    assert.is_nil(text)
    states.job(nil)
    path, text = registry:save_all_states()
    assert.is_nil(path)
    assert.is_nil(text)
    states.Text("spec.mine", "d")
    states.job(root, 1)
    assert.equal(root, ckpt.save_all_states())
    assert.equal("d", states.tree(root)["checkpoint-1/spec.mine"])
  end))

  it("[94] syncs every state on other ranks and without a path", rooted(function(root)
    local calls = {}
    two(calls)
    states.job(root, 0, 2)
    registry:save_all_states()
    assert.same({ "sync", "sync" }, calls)
    states.job(nil)
    registry:save_all_states()
    assert.same({ "sync", "sync", "sync", "sync" }, calls)
    assert.same({}, states.tree(root))
  end))

  it("[98] hands on what a save raises, asks no other state, keeps what was committed",
    rooted(function(root)
      states.lay(root, { ["checkpoint-0/model"] = "old" })
      local model = two()
      local third = states.Text("third", "T", registry)
      local what = { "an error of the user's" }
      registry.states[2].save = function(_, file)
        file:write "part"
        error(what)
      end
      states.job(root, 1)
      local fine, why = pcall(registry.save_all_states, registry)
      assert.is_false(fine)
      assert.equal(what, why)
      assert.same({ "sync", "save" }, model.calls)
      assert.same({}, third.calls)
      local tree = states.tree(root)
      assert.equal("old", tree["checkpoint-0/model"])
      assert.equal("part", tree["_checkpoint.?/states/opt"])
      assert.is_nil(tree["checkpoint-1/"])
      -- So does what a sync raises.
      model.sync = function() error(what) end
      fine, why = pcall(registry.save_all_states, registry)
      assert.is_false(fine)
      assert.equal(what, why)
    end))

  it("[98] refuses a save within a save, and ends the outer one", rooted(function(root)
    local model = two()
    model.sync = function() registry:save_all_states() end
    local fine, why = pcall(registry.save_all_states, registry)
    assert.is_false(fine)
    assert.truthy(why:find "under way", why)
    assert.same({}, states.tree(root))
    model.sync = nil
    assert.equal(root, registry:save_all_states())
  end))

  it("[98] lets other tasks run while a state waits in its sync", rooted(function(root)
    local model = two()
    local order = {}
    model.sync = function()
      order[#order + 1] = "sync begins"
      ckpt.job.yield()
      order[#order + 1] = "sync ends"
    end
    local save = ckpt.job.task(function() return registry:save_all_states() end)
    order[#order + 1] = "others"
    assert.is_false((pcall(registry.save_all_states, registry)))
    assert.equal(root, save:wait())
    assert.same({ "sync begins", "others", "sync ends" }, order)
  end))

  it("[98] takes nil and a text from a save for a failure, too", rooted(function(root)
    states.lay(root, { ["checkpoint-0/model"] = "old" })
    local model = two()
    states.job(root, 1)
    model.save = function() return nil, "the disk is full", "ENOSPACE" end
    assert.same({ nil, "the disk is full", "ENOSPACE" }, { registry:save_all_states() })
    model.save = function() return nil, "cannot say" end
    assert.same({ nil, "cannot say", "EIO" }, { registry:save_all_states() })
    model.save = nil
    model.sync = function() return nil, "no peers", "ETIMEOUT" end
    assert.same({ nil, "no peers", "ETIMEOUT" }, { registry:save_all_states() })
    local tree = states.tree(root)
    assert.equal("old", tree["checkpoint-0/model"])
    assert.is_nil(tree["checkpoint-1/"])
    model.sync = nil
    assert.equal(root, registry:save_all_states())
    assert.same({ ["checkpoint-1/"] = true, ["checkpoint-1/model"] = "M",
      ["checkpoint-1/opt"] = "O" }, states.tree(root))
  end))

  it("[98] a write that failed counts even if the state does not look", rooted(function(root)
    local model = two()
    -- A stream that cannot be written: what `write` returned is dropped, as is usual.
    local open = io.open
    io.open = function(path, mode) -- luacheck: ignore
      if mode == "wb" and path:find "/model$" then return open("/dev/full", "wb") end
      return open(path, mode)
    end
    model.save = function(_, file)
      file:write(("x"):rep(2 ^ 20))
      return "fine"
    end
    local fine, path, text, name = pcall(registry.save_all_states, registry)
    io.open = open -- luacheck: ignore
    assert(fine, path)
    assert.is_nil(path)
    assert.truthy(text:find("model", 1, true), text)
    assert.truthy(name == "ENOSPACE" or name == "EIO")
    assert.is_nil(states.tree(root)["checkpoint-0/"])
  end))

  it("[99 G] refuses to save no state, which would only remove what is there", rooted(function(root)
    states.lay(root, { ["checkpoint-0/model"] = "old" })
    states.job(root, 1)
    local path, text, name = registry:save_all_states()
    assert.is_nil(path)
    assert.truthy(text:find "no states", text)
    assert.equal("EINVAL", name)
    local model = states.Text("model", "M", registry)
    model.skip = true
    path, text, name = registry:save_all_states()
    assert.same({ nil, "EINVAL" }, { path, name })
    assert.truthy(text)
    assert.same({ ["checkpoint-0/"] = true, ["checkpoint-0/model"] = "old" }, states.tree(root))
    states.job(root, 1, 1)
    assert.same({}, { registry:save_all_states() })
  end))

  it("[299 G] a state that says `skip` is neither synced nor saved", rooted(function(root)
    local model, opt = two()
    model.skip = true
    assert.equal(root, registry:save_all_states())
    assert.same({}, model.calls)
    assert.same({ "sync", "save" }, opt.calls)
    assert.same({ ["checkpoint-0/"] = true, ["checkpoint-0/opt"] = "O" }, states.tree(root))
    -- A function may say it; what it says counts.
    local answer = false
    function model:skip() return answer end -- luacheck: no unused args
    registry:save_all_states()
    assert.equal("M", states.tree(root)["checkpoint-0/model"])
    answer = true
    registry:save_all_states()
    assert.is_nil(states.tree(root)["checkpoint-0/model"])
    -- Other ranks skip it too: a sync of one rank alone would wait for ever.
    states.job(root, 0, 1)
    registry:save_all_states()
    assert.same({ "sync", "save" }, model.calls)
  end))
end)
