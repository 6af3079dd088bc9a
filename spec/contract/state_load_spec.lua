-- Loading states: items 101-114.

local ckpt = require "ckpt"
local states = require "contract.state_support"

local rooted = states.rooted

describe("loading", function()
  local registry

  before_each(function() registry = ckpt.Registry() end)
  after_each(function() registry:close() end)

  -- Loads "model" from a tree: what load_state answered, the value, the calls, the log.
  local function load(root, log, tree, restarts, options)
    states.lay(root, tree)
    states.job(root, restarts)
    local mine = ckpt.Registry()
    local state = states.Text("model", "unset", mine)
    local loaded = mine:load_state(state, options)
    mine:close()
    return loaded, state.value, state.calls, states.lines(log, root)
  end

  local function gap(root_of)
    return "warning: $ROOT: there is no checkpoint from the last restart, " .. root_of
  end

  local function absent(path) return "warning: there is no state file $ROOT/" .. path end

  it("[101] without a path the answer is false, and nothing is logged", rooted(function(_, log)
    states.job(nil, 3)
    local state = states.Text("model", "unset", registry)
    assert.is_false(registry:load_state(state))
    assert.is_false(ckpt.load_state(state))
    assert.same({}, state.calls)
    assert.same({}, log)
  end))

  it("[102] an empty path is said at level info; one that does not exist is an error",
    rooted(function(root, log)
      local loaded, _, calls, lines = load(root, log, {}, 0)
      assert.is_false(loaded)
      assert.same({}, calls)
      assert.same({ "info: no checkpoint found in $ROOT" }, lines)
      local state = states.Text("model", "unset", registry)
      states.job(root .. "/absent")
      local line = debug.getinfo(1, "l").currentline + 1
      local fine, why = pcall(function() return (registry:load_state(state)) end)
      assert.is_false(fine)
      assert.truthy(why:find(root .. "/absent", 1, true), why)
      assert.truthy(why:find("state_load_spec.lua:" .. line .. ":", 1, true), why)
      assert.equal(1, #log)
    end))

  it("[103] takes the greatest number, as a number, of all that have the prefix",
    rooted(function(root, log)
      local loaded, value, _, lines = load(root, log, { ["checkpoint-9/model"] = "9",
        ["checkpoint-10/model"] = "10", ["checkpoint-2/model"] = "2",
        ["checkpoint_11/model"] = "11" }, 11)
      assert.is_true(loaded)
      assert.equal("10", value)
      assert.same({}, lines)
      -- More digits than a number of Lua holds.
      loaded, value = load(root, log, { ["checkpoint-99999999999999999998/model"] = "8",
        ["checkpoint-99999999999999999999/model"] = "9",
        ["checkpoint-9007199254740993/model"] = "3" }, 11)
      assert.is_true(loaded)
      assert.equal("9", value)
    end))

  it("[104, 105 G] passes over what is no plain decimal number, with one warning",
    rooted(function(root, log)
      local loaded, value, _, lines = load(root, log, { ["checkpoint-1/model"] = "1",
        ["checkpoint-best/"] = true, ["checkpoint-03/model"] = "3", ["checkpoint-+5/model"] = "5",
        ["checkpoint- 7/model"] = "7", ["checkpoint-1_0/model"] = "10", ["checkpoint-1e3/x"] = "",
        ["checkpoint-0x10/x"] = "", ["checkpoint-\217\163/model"] = "ar", ["checkpoint-/x"] = "",
        ["checkpoint-2.0/x"] = "" }, 2)
      assert.is_true(loaded)
      assert.equal("1", value)
      assert.same(1, #lines)
      for _, name in ipairs { "best", "03", "+5", " 7", "1_0", "1e3", "0x10", "\217\163", "2.0" } do
        assert.truthy(lines[1]:find("checkpoint-" .. name, 1, true), name)
      end
    end))

  it("[104, 105 G] junk alone is no checkpoint: 03 is not looked up as 3",
    rooted(function(root, log)
      local loaded, _, calls, lines = load(root, log, { ["checkpoint-03/model"] = "3" }, 4)
      assert.is_false(loaded)
      assert.same({}, calls)
      assert.equal(absent "checkpoint-0/model", lines[3])
    end))

  it("[106] a negative number never beats 0, where the choice starts", function()
    states.with_root(function(root, log)
      local loaded, _, calls, lines = load(root, log, { ["checkpoint--5/model"] = "neg" }, 0)
      assert.is_false(loaded)
      assert.same({}, calls)
      assert.same({ gap "-1; loading that of restart 0", absent "checkpoint-0/model" }, lines)
    end)
    states.with_root(function(root, log)
      local loaded, value, _, lines = load(root, log, { ["checkpoint--5/model"] = "neg",
        ["checkpoint-0/model"] = "zero" }, 1)
      assert.is_true(loaded)
      assert.equal("zero", value)
      assert.same({}, lines)
    end)
  end)

  it("[107] files count like directories in the choice", rooted(function(root, log)
    local loaded, _, calls, lines = load(root, log, { ["checkpoint-4"] = "file",
      ["checkpoint-1/model"] = "v1" }, 2)
    assert.is_false(loaded)
    assert.same({}, calls)
    assert.same({ gap "1; loading that of restart 4", absent "checkpoint-4/model" }, lines)
  end))

  it("[108] warns if it is not the last restart's, names what is loaded instead", function()
    local cases = {
      { { ["checkpoint-0/model"] = "0", ["checkpoint-2/model"] = "2" }, 5, "2", "4" },
      { { ["checkpoint-0/model"] = "0" }, 0, "0", "-1" }, -- on a first start, too
      { { ["checkpoint-7/model"] = "7" }, 7, "7", "6" },
      { { ["readme"] = "r" }, 3, "0", "2" }, -- with nothing but junk
    }
    for _, case in ipairs(cases) do
      states.with_root(function(root, log)
        local _, _, _, lines = load(root, log, case[1], case[2])
        assert.equal(gap(case[4] .. "; loading that of restart " .. case[3]), lines[1])
      end)
    end
    states.with_root(function(root, log)
      assert.same({}, (select(4, load(root, log, { ["checkpoint-2/model"] = "2" }, 3))))
    end)
  end)

  it("[109] wants a regular file in exactly that checkpoint", function()
    local trees = {
      { ["checkpoint-1/"] = true },
      { ["checkpoint-1/model/"] = true },
      { ["checkpoint-1/Model"] = "other case" },
    }
    for _, tree in ipairs(trees) do
      states.with_root(function(root, log)
        local loaded, _, calls, lines = load(root, log, tree, 2)
        assert.is_false(loaded)
        assert.same({}, calls)
        assert.same({ absent "checkpoint-1/model" }, lines)
      end)
    end
    states.with_root(function(root, log)
      -- A link to one is one.
      states.lay(root, { ["aside"] = "linked", ["checkpoint-1/"] = true })
      assert(ckpt.fs.symlink("../aside", root .. "/checkpoint-1/model"))
      local loaded, value = load(root, log, {}, 2)
      assert.is_true(loaded)
      assert.equal("linked", value)
    end)
  end)

  it("[110] does not fall back to an older one, for no state and no load that fails",
    rooted(function(root, log)
      local loaded, _, calls, lines = load(root, log, { ["checkpoint-1/model"] = "v1",
        ["checkpoint-2/"] = true }, 3)
      assert.is_false(loaded)
      assert.same({}, calls)
      assert.same({ absent "checkpoint-2/model" }, lines)
      states.lay(root, { ["checkpoint-2/model"] = "bad" })
      local state = states.Text("model", "unset", registry)
      local tried = {}
      function state:load(file) -- luacheck: no unused args
        tried[#tried + 1] = file:read "*a"
        error "torn"
      end
      assert.is_false((pcall(registry.load_state, registry, state)))
      assert.same({ "bad" }, tried)
    end))

  it("[110 G] tries older ones if told to, and says so", rooted(function(root, log)
    states.lay(root, { ["checkpoint-1/model"] = "v1", ["checkpoint-2/model"] = "bad",
      ["checkpoint-3/model"] = "nil", ["checkpoint-10/"] = true })
    states.job(root, 11)
    local state = states.Text("model", "unset", registry)
    local tried = {}
    function state:load(file)
      local text = file:read "*a"
      tried[#tried + 1] = text
      if text == "bad" then error "torn" end
      if text == "nil" then return nil, "no magic", "EFORMAT" end
      self.value = text
    end
    assert.is_true(registry:load_state(state, { fallback = true }))
    assert.equal("v1", state.value)
    assert.same({ "nil", "bad", "v1" }, tried)
    local said = {}
    for i, line in ipairs(states.lines(log, root)) do said[i] = line:match "^%w+: .-%f[%d]%d+" end
    assert.same({ "warning: there is no state file $ROOT/checkpoint-10",
      "warning: falling back to the checkpoint of restart 3",
      "warning: $ROOT/checkpoint-3",
      "warning: falling back to the checkpoint of restart 2",
      "warning: $ROOT/checkpoint-2",
      "warning: falling back to the checkpoint of restart 1" }, said)
  end))

  it("[110 G] if all fail it is the newest one's failure that is reported", rooted(function(root)
    states.lay(root, { ["checkpoint-1/model"] = "one", ["checkpoint-2/model"] = "two" })
    states.job(root, 3)
    local state = states.Text("model", "unset", registry)
    function state:load(file) error({ file:read "*a" }) end -- luacheck: no unused args
    local fine, why = pcall(registry.load_state, registry, state, { fallback = true })
    assert.is_false(fine)
    assert.same({ "two" }, why)
    state.load = function(_, file) return nil, file:read "*a", "EFORMAT" end
    assert.same({ nil, "two", "EFORMAT" }, { registry:load_state(state, { fallback = true }) })
    assert.same({ nil, "two", "EFORMAT" }, { registry:load_state(state) })
    assert.is_false(registry:load_state(states.Text("opt", "", registry), { fallback = true }))
  end))

  it("[111] calls load with the open file; what it raises reaches the caller", rooted(function(root)
    local bytes = "\0\r\n\255\26text"
    states.lay(root, { ["checkpoint-1/model"] = bytes })
    states.job(root, 2)
    local state = states.Text("model", "unset", registry)
    local kept
    function state:load(file)
      kept = file
      return states.Text.load(self, file)
    end
    assert.is_true(ckpt.load_state(state))
    assert.equal(bytes, state.value)
    assert.equal("closed file", io.type(kept))
    assert.is_true(registry:load_state(state))
    local what = { "the user's" }
    function state:load(file) -- luacheck: no unused args
      kept = file
      error(what)
    end
    local fine, why = pcall(registry.load_state, registry, state)
    assert.is_false(fine)
    assert.equal(what, why)
    assert.equal("closed file", io.type(kept))
  end))

  it("[111] looks again if another replica's save removed what it chose", rooted(function(root)
    states.lay(root, { ["checkpoint-0/model"] = "old", ["new/model"] = "new" })
    states.job(root, 1, 1)
    local state = states.Text("model", "unset", registry)
    local list, calls = ckpt.fs.list, 0
    ckpt.fs.list = function(path)
      local names = list(path)
      calls = calls + 1
      if calls == 1 then
        assert(ckpt.fs.rename(root .. "/new", root .. "/checkpoint-1"))
        assert(ckpt.fs.remove_tree(root .. "/checkpoint-0"))
      end
      return names
    end
    local fine, loaded = pcall(registry.load_state, registry, state)
    ckpt.fs.list = list
    assert.is_true(fine and loaded)
    assert.equal("new", state.value)
  end))

  it("[112] never looks at a staging directory", function()
    for _, name in ipairs { "_checkpoint/", "_checkpoint.Ab3xYz/states/" } do
      states.with_root(function(root, log)
        local loaded, _, calls, lines = load(root, log, { [name .. "model"] = "partial" }, 0)
        assert.is_false(loaded)
        assert.same({}, calls)
        assert.same({ gap "-1; loading that of restart 0", absent "checkpoint-0/model" }, lines)
        loaded = load(root, log, { ["checkpoint-1/model"] = "v1" }, 2)
        assert.is_true(loaded)
      end)
    end
  end)

  it("[114] loads on every replica of another number of them", rooted(function(root)
    states.Text("model", "from one", registry)
    states.job(root, 0, 0)
    assert.equal(root, registry:save_all_states())
    for rank = 0, 1 do
      states.job(root, 1, rank)
      local mine = ckpt.Registry()
      local state = states.Text("model", "unset", mine)
      assert.is_true(mine:load_state(state))
      assert.equal("from one", state.value)
      mine:close()
    end
  end))
end)

describe("ckpt.RayRegistry", function()
  it("[113] saves afresh into `checkpoint`, with the mark, and loads from the session",
    rooted(function(root)
      states.job(nil, 2)
      local session = { at = nil }
      function session:get_checkpoint() return self.at end
      local registry = ckpt.RayRegistry { session = session, directory = root }
      local model = states.Text("model", "M", registry)
      states.lay(root, { ["checkpoint/checkpoint-9/model"] = "earlier", ["checkpoint/junk"] = "" })
      assert.equal(root .. "/checkpoint", registry:save_all_states())
      assert.same({ ["checkpoint/"] = true, ["checkpoint/.is_checkpoint"] = "",
        ["checkpoint/checkpoint-2/"] = true, ["checkpoint/checkpoint-2/model"] = "M" },
        states.tree(root))

      assert.is_false(registry:load_state(model))
      assert(ckpt.fs.rename(root .. "/checkpoint", root .. "/moved by Ray"))
      session.at = root .. "/moved by Ray"
      states.job(nil, 3)
      model.value = "?"
      assert.is_true(registry:load_state(model))
      assert.equal("M", model.value)
      registry:close()
    end))

  it("[113] other ranks make nothing; the directory is the system's temporary one",
    rooted(function(root)
      states.job(nil, 0, 1)
      local registry = ckpt.RayRegistry { directory = root }
      local model = states.Text("model", "M", registry)
      assert.is_nil((registry:save_all_states()))
      assert.same({ "sync" }, model.calls)
      assert.same({}, states.tree(root))
      registry:close()
      states.environment { TMPDIR = root }
      states.job(nil, 0)
      registry = ckpt.RayRegistry()
      states.Text("model", "M", registry)
      local path, text = registry:save_all_states()
      states.environment { TMPDIR = false }
      assert.equal(ckpt.fs.join(root, "checkpoint"), path, text)
      registry:close()
      assert.is_false((pcall(ckpt.RayRegistry, { session = 7 })))
      assert.is_false((pcall(ckpt.RayRegistry, { session = {} })))
    end))

  it("[113] refuses to save no state before anything is deleted", rooted(function(root)
    states.job(nil, 2)
    local registry = ckpt.RayRegistry { directory = root }
    states.lay(root, { ["checkpoint/checkpoint-1/model"] = "earlier" })
    local path, text, name = registry:save_all_states()
    assert.same({ nil, "EINVAL" }, { path, name })
    assert.truthy(text)
    assert.equal("earlier", states.tree(root)["checkpoint/checkpoint-1/model"])
    registry:close()
  end))

  it("[113] without a session of its own asks that of the function that runs", rooted(function(root)
    states.lay(root, { ["checkpoint-4/model"] = "M" })
    states.job(nil, 5)
    local session = require "ckpt.ray.train.session"
    local registry = ckpt.RayRegistry()
    local model = states.Text("model", "?", registry)
    assert.is_false((pcall(registry.load_state, registry, model)))
    local reporter = { get_checkpoint = function() return root end }
    assert.is_true(session.within(reporter, registry.load_state, registry, model))
    assert.equal("M", model.value)
    registry:close()
  end))
end)
