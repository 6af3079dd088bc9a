-- libexec/ckpt-script: how a script is run.

local support = require "support"

local SCRIPT = support.build .. "/libexec/ckpt-script"

describe("ckpt-script", function()
  local dir

  setup(function() dir = support.directory() end)
  teardown(function() os.execute("rm -rf '" .. dir .. "'") end)

  -- Output and exit code of a script.
  local function run(text, arguments)
    support.write(dir .. "/script.lua", text)
    local out, code = support.sh(("cd '%s' && '%s' script.lua %s"):format(dir, SCRIPT,
      arguments or ""))
    return (out:gsub("\n$", "")), code
  end

  it("hands the arguments over as luajit does", function()
    local out, code = run([[
      print(arg[0], #arg, arg[1], arg[2], ...)
      assert(arg[-1]:match("ckpt%-script$"))]], "'a b' c")
    assert.are.equal("script.lua\t2\ta b\tc\ta b\tc", out)
    assert.are.equal(0, code)
  end)

  it("ends with what os.exit says", function()
    local _, code = run("os.exit(7)")
    assert.are.equal(7, code)
  end)

  it("prints a traceback and ends with 1 when the script raises", function()
    local out, code = run("local function inner()\n  error('no such luck')\nend\ninner()")
    assert.are.equal(1, code)
    assert.is_truthy(out:find("script.lua:2: no such luck", 1, true))
    assert.is_truthy(out:find("stack traceback:", 1, true))
    assert.is_truthy(out:find("inner", 1, true))
  end)

  it("says what kind of thing was raised if it is no text", function()
    local out, code = run("error({})")
    assert.are.equal(1, code)
    assert.is_truthy(out:find("(error object is a table value)", 1, true))
    out = run("error(setmetatable({}, { __tostring = function() return 'my own' end }))")
    assert.is_truthy(out:find("my own", 1, true))
  end)

  it("names the file and line of what cannot be read", function()
    local out, code = run("local = 1")
    assert.are.equal(1, code)
    assert.is_truthy(out:find("script.lua:1:", 1, true))
    out, code = support.sh("'" .. SCRIPT .. "' " .. dir .. "/nowhere.lua")
    assert.are.equal(1, code)
    assert.is_truthy(out:find("nowhere.lua", 1, true))
  end)

  -- At the end what is younger goes first: the engine before this one.
  it("lets a finalizer ask an engine that is gone", function()
    local out, code = run([[
      local core = require "ckpt.core"
      local before = newproxy(true)
      getmetatable(before).__gc = function() print(pcall(core.job.dispatch, 0)) end
      core.job.dispatch(0)]])
    assert.are.equal("false\tthe engine is closed", out)
    assert.are.equal(0, code)
  end)

  it("asks for a file", function()
    local out, code = support.sh("'" .. SCRIPT .. "'")
    assert.are.equal(2, code)
    assert.is_truthy(out:find("usage:", 1, true))
  end)

  -- LuaJIT's issue 829: a process died of it now and then.
  it("compiles nothing with a LuaJIT whose compiler cuts addresses", function()
    local _, code = run("assert(jit.status() == not jit.version:find('beta'))")
    assert.are.equal(0, code)
  end)

  it("has all libraries, and ckpt", function()
    local out, code = run([[
      assert(io and os and require("ffi") and debug)
      local ckpt = require "ckpt"
      assert(ckpt.list == require "ckpt.core".list)
      print(ckpt.version())]])
    assert.are.equal(0, code)
    assert.is_truthy(out:find("^%d+%.%d+%.%d+$"))
  end)

  it("finds the Lua part of ckpt where it is told", function()
    os.execute(("mkdir -p '%s/lua/ckpt'"):format(dir))
    support.write(dir .. "/lua/ckpt/init.lua", "return 'mine'")
    support.write(dir .. "/which.lua", "print(require 'ckpt')")
    local out = support.sh(("CKPT_LUADIR='%s/lua' '%s' '%s/which.lua'"):format(dir, SCRIPT, dir))
    assert.are.equal("mine\n", out)
  end)
end)
