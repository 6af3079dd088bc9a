-- examples/state_registry.lua: a job in pieces ends as the job in one piece does.

local support = require "support"

describe("examples/state_registry.lua", function()
  local dir

  support.with_directory(function(made) dir = made end)

  local function start(path, restart, steps, more)
    assert(os.execute(("mkdir -p '%s/%s'"):format(dir, path)) == 0)
    return support.sh(("cd '%s' && ADAPTDL_CHECKPOINT_PATH='%s/%s' ADAPTDL_NUM_RESTARTS=%d %s " ..
      "CKPT_LUADIR='%s/lua' '%s/libexec/ckpt-script' '%s/examples/state_registry.lua' %d 2>log")
      :format(dir, dir, path, restart, more or "", support.root, support.build, support.root,
        steps))
  end

  local function result(text) return text:match "step %d+, [%d.]+" end

  it("goes on from restart to restart", function()
    local whole, code = start("whole", 0, 30)
    assert.equal(0, code, whole)
    assert.truthy(whole:find("begins", 1, true), whole)
    local text
    for restart = 0, 2 do
      text, code = start("parts", restart, 10)
      assert.equal(0, code, text)
    end
    assert.truthy(text:find("goes on after step 20", 1, true), text)
    assert.equal("step 30", whole:match "step %d+")
    assert.equal(result(whole), result(text))
    local names = support.sh(("ls '%s/parts'"):format(dir))
    assert.equal("checkpoint-2", names:match "^%s*(.-)%s*$")
  end)

  it("writes on rank 0 alone, and loads on all", function()
    assert.equal(0, (select(2, start("out", 0, 5))))
    local text, code = start("out", 1, 5, "ADAPTDL_REPLICA_RANK=1")
    assert.equal(0, code, text)
    assert.truthy(text:find("goes on after step 5", 1, true), text)
    assert.truthy(text:find("not saved here", 1, true), text)
    assert.equal("checkpoint-0", support.sh(("ls '%s/out'"):format(dir)):match "%S+")
  end)

  it("fails, and says why, where nothing can be saved", function()
    support.write(dir .. "/file", "")
    local text, code = support.sh(("ADAPTDL_CHECKPOINT_PATH='%s/file' CKPT_LUADIR='%s/lua' " ..
      "'%s/libexec/ckpt-script' '%s/examples/state_registry.lua'"):format(dir, support.root,
        support.build, support.root))
    assert.not_equal(0, code)
    assert.truthy(text:find(dir .. "/file", 1, true), text)
  end)
end)
