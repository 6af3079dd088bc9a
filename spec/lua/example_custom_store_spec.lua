-- examples/custom_store.lua: a store of its own, and a directory that goes there and comes back.

local support = require "support"

describe("examples/custom_store.lua", function()
  it("sends a directory to a scheme of its own, uses it as a checkpoint, and removes it", function()
    local text, code = support.sh(("CKPT_LUADIR='%s/lua' timeout 60 '%s/libexec/ckpt-script' "
      .. "'%s/examples/custom_store.lua'"):format(support.root, support.build, support.root))
    assert.equal(0, code, text)
    assert.equal("sent 2 files, 8007 bytes\nmodel.bin has 8000 bytes\nleft: 0",
      (text:gsub("%s+$", "")))
  end)
end)
