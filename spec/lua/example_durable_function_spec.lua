-- examples/durable_function.lua: three lives, each in a log directory of its own, are one trial.

local support = require "support"

describe("examples/durable_function.lua", function()
  local dir

  support.with_directory(function(made) dir = made end)

  local function start(steps)
    return support.sh(("cd '%s' && TMPDIR='%s' CKPT_LUADIR='%s/lua' '%s/libexec/ckpt-script' " ..
      "'%s/examples/durable_function.lua' 'file://%s/store' %d"):format(dir, dir, support.root,
      support.build, support.root, dir, steps))
  end

  it("goes on from the store, though nothing is left where it ran", function()
    local text, code = start(5)
    assert.equal(0, code, text)
    assert.matches("step  3  sum 1.361111\ncheckpoint_000003 is in the store\nstep  4", text)
    assert.matches("step  5", text)
    text, code = start(4)
    assert.equal(0, code, text)
    assert.matches("^goes on from checkpoint_000003\nstep  4  sum 1.423611\nstep  5", text)
    assert.matches("checkpoint_000006 is in the store", text)
    assert.matches("^goes on from checkpoint_000006\nstep  7", (start(1)))
    assert.equal("store\n", (support.sh("ls '" .. dir .. "'")))
  end)
end)
