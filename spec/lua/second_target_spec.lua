-- What the library knows of one target says nothing of another one, nor of one that was emptied.

local support = require "support"
local ckpt = require "ckpt"
local sh, read, write = support.sh, support.read, support.write

describe("a second target", function()
  local dir

  local function path(name) return dir .. "/" .. name end
  local function uri(name) return "file://" .. path(name) end
  local function has(name, text) assert.equal(text, read(path(name))) end

  support.with_directory(function(made)
    dir = made
    sh("mkdir " .. path "out")
    write(path "out/a", "one")
  end)

  it("of a syncer gets all, as does one that was emptied", function()
    local syncer = ckpt.DefaultSyncer()
    for _, name in ipairs { "A", "B", "A" } do
      assert.is_true(syncer:sync_up(path "out", uri(name)))
      assert(syncer:wait())
      has(name .. "/a", "one")
      sh("find " .. path "A" .. " -mindepth 1 -delete")
    end
    assert.is_true(syncer:sync_up(path "out", uri "A"))
    assert(syncer:wait())
    has("A/a", "one")
    has("B/a", "one")
  end)

  it("of a syncer has a period of its own", function()
    local syncer = ckpt.DefaultSyncer { sync_period = 3600 }
    local function up(name)
      local launched = syncer:sync_up_if_needed(path "out", uri(name))
      assert(syncer:wait() or not launched)
      return launched
    end
    local function down(name)
      local launched = syncer:sync_down_if_needed(uri(name), path(name .. "-back"))
      assert(syncer:wait() or not launched)
      return launched
    end
    assert.is_true(up "A")
    assert.is_true(up "B")
    has("B/a", "one")
    assert.is_true(down "A")
    assert.is_true(down "B")
    has("B-back/a", "one")
    local other = ckpt.DefaultSyncer { sync_period = 3600 }
    other:restore(syncer:state())
    for _, each in ipairs { syncer, other } do
      syncer = each
      for _, name in ipairs { "A", "B" } do
        assert.is_nil(up(name))
        assert.is_nil(down(name))
      end
    end
    syncer:reset()
    assert.is_true(up "B")
  end)

  it("of a trial gets all that it has, once it was emptied", function()
    local Mine = ckpt.DurableTrainable:extend "Mine"
    function Mine.save_checkpoint(_, directory)
      write(directory .. "/model", "weights")
      return directory .. "/model"
    end
    local mine = Mine(uri "A", {}, { logdir = path "out" })
    local first = assert(mine:save()):sub(#path "out" + 2)
    sh("rm -r " .. path "A")
    mine.iteration = 1
    local second = assert(mine:save()):sub(#path "out" + 2)
    assert.not_equal(first, second)
    has("A/" .. first, "weights")
    has("A/" .. second, "weights")
  end)

  it("of states is begun anew where the one that was written to is gone", function()
    local registry = ckpt.Registry { path = path "states" }
    local state = ckpt.State("s", registry)
    function state.save(_, file) return file:write("content") and true end
    assert.is_true(registry:save_state(state, path "states"))
    sh(("rm -r %s; mkdir %s"):format(path "states", path "states"))
    assert.equal(path "states", registry:save_all_states())
    has("states/checkpoint-0/s", "content")
  end)
end)
