-- Every ```lua block of the library's pages is a program that works: each is run by itself, in an
-- empty directory, as `ckpt-lua exec FILE` would.

local support = require "support"

local function blocks(path)
  local found = {}
  for block in support.read(path):gmatch("\n```lua\n(.-)\n```") do found[#found + 1] = block end
  return found
end

local pages = { "docs/library.md" }
for path in io.popen("ls docs/library/*.md"):lines() do pages[#pages + 1] = path end

describe("the programs shown in the library's pages", function()
  local dir

  support.with_directory(function(made) dir = made end)

  for _, page in ipairs(pages) do
    for number, block in ipairs(blocks(page)) do
      it(("work: %s, block %d"):format(page, number), function()
        if block:match("^%-%- not run") then
          assert.is_truthy(loadstring(block))
          return
        end
        support.write(dir .. "/block.lua", block)
        local out, code = support.sh(("cd '%s' && CKPT_LUADIR='%s/lua' timeout 60"
          .. " '%s/libexec/ckpt-script' block.lua"):format(dir, support.root, support.build))
        assert(code == 0, out)
      end)
    end
  end
end)
