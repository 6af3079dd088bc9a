-- examples/function_trainable.lua: two lives end as one does.

local support = require "support"

describe("examples/function_trainable.lua", function()
  local dir

  support.with_directory(function(made) dir = made end)

  local function start()
    return support.sh(("cd '%s' && CKPT_LUADIR='%s/lua' '%s/libexec/ckpt-script' " ..
      "'%s/examples/function_trainable.lua' '%s/trial'"):format(dir, support.root, support.build,
      support.root, dir))
  end

  local function losses(text)
    local list = {}
    for step, loss in text:gmatch "step +(%d+)  loss (%S+)" do
      list[#list + 1] = tonumber(loss)
      assert.equal(#list, tonumber(step))
    end
    return list
  end

  it("takes each step once over two lives, and saves every third", function()
    local text, code = start()
    assert.equal(0, code, text)
    local list = losses(text)
    assert.equal(12, #list)
    for i = 2, #list do assert(list[i] < list[i - 1], text) end
    assert.matches("goes on from checkpoint_000006\nstep  7", text)
    assert.matches("saved checkpoint_000012\ndone", text)
    assert.equal("checkpoint_000003\ncheckpoint_000006\ncheckpoint_000009\ncheckpoint_000012",
      (support.sh(("ls '%s/trial'"):format(dir)):gsub("\n$", "")))
  end)

  it("has nothing left to do when it is started again", function()
    assert.equal(0, (select(2, start())))
    local text, code = start()
    assert.equal(0, code, text)
    assert.matches("goes on from checkpoint_000012", text)
    assert.is_nil(text:match "step +%d+")
    assert.matches("done", text)
  end)
end)
