-- Guards spec/check_paths.lua: what it must find, and what it must let pass.

package.path = "./spec/?.lua;" .. package.path
local support = require "support"

describe("the check of paths", function()
  local dir

  before_each(function() dir = support.directory() end)
  after_each(function() os.execute("rm -rf '" .. dir .. "'") end)

  --- Checks a project of these files beside some that are there. Returns all complaints.
  local function check(files)
    for _, path in ipairs { "engine/base/io.c", "engine/base/io.h", "lua/ckpt/fs.lua",
      "docs/page.md", "spec/base/test_io.c", "spec/run_spec.lua", "README.md" } do
      files[path] = files[path] or ""
    end
    for path, text in pairs(files) do
      os.execute(("mkdir -p '%s/%s'"):format(dir, path:match("^(.*)/") or "."))
      support.write(dir .. "/" .. path, text)
    end
    local out, code = support.sh(("luajit spec/check_paths.lua '%s'"):format(dir))
    assert.are.equal(out == "" and 0 or 1, code, out)
    return out
  end

  it("is content with what is there", function()
    assert.are.equal("", check {
      ["engine/base/x.c"] = "/* engine/base/io.c, base/io.h, io.h; spec/base; lua/ckpt/fs.lua. */\n"
        .. "// spec/run_spec.lua, run_spec.lua, engine/base/io\n",
      ["docs/a.md"] = "[a](page.md#there) [b](../README.md) [c](https://x.org/y) engine/base/.\n",
      ["lua/ckpt/a.lua"] = "-- engine/base/io.c; lua/ckpt/fs\n",
      Makefile = "# spec/base/test_io.c\n",
    })
  end)

  it("leaves alone what is no comment, and what is a placeholder", function()
    assert.are.equal("", check {
      ["engine/base/x.c"] = 'char *s = "/* lua/none.lua"; char c = \'"\'; int d = a / spec/no;'
        .. "\n"
        .. "/* <errno.h>, store_x.c, *_spec.lua, lua/?.lua, spec/NAME.c, verb_NAME.c, test_*.c,\n"
        .. "   build/lua/none.lua, $R/lua/none, /lua/none, ../lua/none.c, mine.lua */\n",
      ["lua/ckpt/a.lua"] = 'local s, t = "-- lua/none.lua", [[\n-- lua/none.lua ]]\n',
      ["lua/a.sh"] = "echo x # lua/none.lua\n",
      ["CHANGELOG.md"] = "docs/none.md\n",
    })
  end)

  it("finds what is gone", function()
    local there = "%s:%d: there is no %s\n"
    for text, path in pairs {
      ["\n/* see lua/ckpt/gone.lua. */"] = "lua/ckpt/gone.lua",
      ["\n// engine/core/"] = "engine/core/",
      ["\n// `core/io.h`"] = "core/io.h",
      ["\n/* (gone.c) */"] = "file gone.c",
      ["\n/* gone_spec.lua: */"] = "file gone_spec.lua",
      ["\nint x; /* spec/c/test_io.c */"] = "spec/c/test_io.c",
    } do
      assert.are.equal(there:format("engine/base/a.c", 2, path), check {
        ["engine/base/a.c"] = text .. "\n" })
    end
  end)

  it("finds it in Lua, makefiles, scripts and pages", function()
    for file, text in pairs { ["lua/b.lua"] = "--- lua/gone.lua", ["mk/b.mk"] = "  # lua/gone.lua",
      ["spec/b.sh"] = "# lua/gone.lua", ["docs/b.md"] = "`lua/gone.lua`" } do
      assert.are.equal(file .. ":1: there is no lua/gone.lua\n", check { [file] = text .. "\n" })
      os.remove(dir .. "/" .. file)
    end
    assert.are.equal("docs/c.md:1: the link leads nowhere: gone.md\n",
      check { ["docs/c.md"] = "a [page](gone.md#x)\n" })
  end)
end)
