-- Registering a state, and what a registry is: items 74-80, 85.

local ckpt = require "ckpt"
local states = require "contract.state_support"

local rooted = states.rooted

describe("ckpt.State", function()
  local registry

  before_each(function() registry = ckpt.Registry() end)
  after_each(function()
    registry:close()
    states.job(nil)
  end)

  local function refusal(name)
    local fine, why = pcall(ckpt.State, name, registry)
    return not fine and why or nil
  end

  it("[77] registers under its name; a second one is an error that quotes it", function()
    local first = ckpt.State("model", registry)
    assert.equal(registry, ckpt.Registry.of(first))
    local why = refusal "model"
    assert.truthy(why:find("'model'", 1, true), why)
    assert.truthy(why:find("exists already", 1, true), why)
  end)

  it("[77] says it at the line of the user's program", function()
    local function line_of(fn)
      local _, why = pcall(fn)
      return why:match "state_class_spec.lua:(%d+):"
    end
    ckpt.State("model", registry)
    local line = debug.getinfo(1, "l").currentline + 1
    local where = line_of(function() return (ckpt.State("model", registry)) end)
    assert.equal(tostring(line), where)
    local Mine = ckpt.State:extend "Mine"
    function Mine:init(name) ckpt.State.init(self, name, registry) end
    line = debug.getinfo(1, "l").currentline - 1
    assert.equal(tostring(line), line_of(function() return (Mine "model") end))
  end)

  it("[77] is in the default registry if it names none", function()
    local state = ckpt.State("spec.model")
    assert.equal(ckpt.Registry.default(), ckpt.Registry.of(state))
    assert.is_false((pcall(ckpt.State, "spec.model")))
    ckpt.Registry.default():close()
  end)

  it("[78] leaves the registry as it was if the second one is refused", rooted(function(root)
    local log = {}
    states.Text("a", "first", registry, log)
    assert.is_false((pcall(states.Text, "a", "second", registry, log)))
    states.Text("b", "third", registry, log)
    assert.equal(root, registry:save_all_states())
    assert.same({ ["checkpoint-0/"] = true, ["checkpoint-0/a"] = "first",
      ["checkpoint-0/b"] = "third" }, states.tree(root))
    assert.same({ "sync", "save", "sync", "save" }, log)
  end))

  it("[79 G] is forgotten with its registry, which can be closed", function()
    ckpt.State("model", registry)
    assert.is_truthy(refusal "model")
    registry:close()
    assert.truthy(refusal("model"):find "closed")
    registry = ckpt.Registry()
    local again = ckpt.State("model", registry)
    assert.equal(registry, ckpt.Registry.of(again))
  end)

  it("[79 G] is collected with its registry: nothing global holds it", function()
    local seen = setmetatable({}, { __mode = "k" })
    do
      local mine = ckpt.Registry()
      for i = 1, 50 do seen[ckpt.State("s" .. i, mine)] = true end
    end
    collectgarbage()
    collectgarbage()
    assert.is_nil(next(seen))
  end)

  it("[79 G] the default registry is one for all, and a new one after it was closed", function()
    local one = ckpt.Registry.default()
    assert.equal(one, ckpt.Registry.default())
    ckpt.State("spec.model")
    one:close()
    assert.not_equal(one, ckpt.Registry.default())
    ckpt.State("spec.model")
    ckpt.Registry.default():close()
  end)

  it("[79 G] closing removes what was staged and not committed, and nothing else",
    rooted(function(root)
      states.lay(root, { ["checkpoint-0/model"] = "old" })
      local state = states.Text("model", "new", registry)
      assert.is_true(registry:save_state(state, root))
      assert.equal("new", states.tree(root)["_checkpoint.?/states/model"])
      registry:close()
      assert.same({ ["checkpoint-0/"] = true, ["checkpoint-0/model"] = "old" }, states.tree(root))
      for _, call in ipairs { "save_all_states", "save_state", "load_state" } do
        local fine, why = pcall(registry[call], registry, state, root)
        assert.is_false(fine)
        assert.truthy(why:find "closed", why)
      end
    end))

  it("[80] saves, loads and syncs nothing of its own", rooted(function(root)
    local state = ckpt.State("plain", registry)
    assert.is_nil((state:sync()))
    assert.is_nil((state:save(nil)))
    assert.is_nil((state:load(nil)))
    assert.equal(root, registry:save_all_states())
    assert.equal("", states.tree(root)["checkpoint-0/plain"])
    assert.is_true(registry:load_state(state))
  end))

  it("[85 G] refuses a name that is empty or leads elsewhere", function()
    for _, name in ipairs { "", "a/b", "/", "../evil", "..", ".", "a..b", "a\0b", ("x"):rep(256),
      ".commit" } do
      local why = refusal(name)
      assert.truthy(why, ("%q was taken"):format(name))
      assert.truthy(why:find("state '" .. name .. "'", 1, true), why)
    end
    for _, name in ipairs { 7, {}, true } do assert.truthy(refusal(name)) end
    assert.truthy(refusal(nil))
    for _, name in ipairs { "a", "...a" and "a.b", ".hidden", "a b", "mod\195\169le", "-", "~",
      ("x"):rep(255) } do
      assert.is_nil(refusal(name))
    end
  end)

  it("[85 G] a refused name leaves no trace", function()
    assert.truthy(refusal "../evil")
    states.with_root(function(root)
      states.Text("good", "1", registry)
      registry:save_all_states()
      assert.same({ ["checkpoint-0/"] = true, ["checkpoint-0/good"] = "1" }, states.tree(root))
    end)
  end)

  it("[77] takes the options of a registry by name, and refuses what is none", function()
    assert.is_false((pcall(ckpt.Registry, "path")))
    assert.is_false((pcall(ckpt.Registry, { path = 7 })))
    assert.is_false((pcall(ckpt.State, "model", { add = function() return true end })))
    assert.is_false((pcall(registry.save_state, registry, {})))
    assert.is_false((pcall(ckpt.load_state, {})))
    assert.is_false((pcall(ckpt.save_state, nil)))
  end)
end)

describe("the place of a job", function()
  local registry

  before_each(function() registry = ckpt.Registry() end)
  after_each(function()
    registry:close()
    states.job(nil)
  end)

  it("[74] no ADAPTDL_CHECKPOINT_PATH: nothing is written or read, states are synced",
    rooted(function(root)
      local state = states.Text("model", "m", registry)
      states.job(nil)
      assert.is_nil((registry:save_all_states()))
      assert.is_false(registry:load_state(state))
      assert.same({}, states.tree(root))
      assert.same({ "sync" }, state.calls)
      states.job(root)
      assert.equal(root, registry:save_all_states())
      assert.equal("m", states.tree(root)["checkpoint-0/model"])
      states.environment { ADAPTDL_CHECKPOINT_PATH = "" }
      local fine, why = pcall(registry.save_all_states, registry)
      assert.is_false(fine)
      assert.truthy(why:find "ADAPTDL_CHECKPOINT_PATH")
    end))

  it("[75] restarts and rank are integers, 0 by default", rooted(function(root)
    states.Text("model", "m", registry)
    assert.equal(root, registry:save_all_states())
    assert.truthy(states.tree(root)["checkpoint-0/"])
    for text, name in pairs { ["7"] = 7, [" 12 "] = 12, ["+5"] = 5, ["007"] = 7 } do
      states.job(root, text, " +0")
      assert.equal(root, registry:save_all_states())
      assert.truthy(states.tree(root)["checkpoint-" .. name .. "/"], text)
    end
    for _, text in ipairs { "", "x", "1.5", "0x10", "1e3", "inf", "nan", "9007199254740993" } do
      states.job(root, text)
      local fine, why = pcall(registry.save_all_states, registry)
      assert.is_false(fine, text)
      assert.truthy(why:find("ADAPTDL_NUM_RESTARTS", 1, true), why)
      assert.is_false((pcall(registry.place)))
      states.job(root, 0, text)
      fine, why = pcall(registry.save_all_states, registry)
      assert.is_false(fine, text)
      assert.truthy(why:find("ADAPTDL_REPLICA_RANK", 1, true), why)
    end
    states.job(root, -1)
    assert.is_false((pcall(registry.save_all_states, registry)))
  end))

  it("[76] the environment is read at every call", rooted(function(root)
    local state = states.Text("model", "one", registry)
    registry:save_all_states()
    states.job(root .. "/other", 4)
    state.value = "two"
    assert.equal(root .. "/other", registry:save_all_states())
    states.job(root .. "/other", 5, 1)
    assert.is_nil((registry:save_all_states()))
    assert.same({ ["checkpoint-0/"] = true, ["checkpoint-0/model"] = "one", ["other/"] = true,
      ["other/checkpoint-4/"] = true, ["other/checkpoint-4/model"] = "two" }, states.tree(root))
    states.job(root, 1)
    assert.is_true(registry:load_state(state))
    assert.equal("one", state.value)
  end))

  it("[76] options of a registry go before the environment", rooted(function(root)
    states.job("/nowhere/at/all", 9, 1)
    local mine = ckpt.Registry { path = root, restarts = 3, rank = 0 }
    states.Text("model", "m", mine)
    assert.equal(root, mine:save_all_states())
    assert.truthy(states.tree(root)["checkpoint-3/"])
    mine:close()
  end))
end)
