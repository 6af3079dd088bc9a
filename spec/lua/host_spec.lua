-- That `require "ckpt"` changes nothing in the program that does it: the library is a guest there.

package.path = "./spec/?.lua;" .. package.path
local support = require "support"

-- Prints what of a program is another thing since it required the library and used each name of it.
local LOOKS = [[
  local function signals()
    local masks = {}
    for line in io.lines("/proc/self/status") do
      masks[#masks + 1] = line:match("^Sig%a%a%a:.*") or line:match("^Threads:.*")
    end
    return table.concat(masks, " ")
  end

  local function look()
    local seen = {
      ["package.path"] = package.path,
      ["package.cpath"] = package.cpath,
      ["compiler"] = table.concat({ tostring((jit.status())), select(2, jit.status()) }, " "),
      ["signals"] = signals(),
      ["collector"] = tostring(collectgarbage("setpause", 200)),
      ["locale"] = os.setlocale(),
      ["environment"] = io.popen("env | grep -v '^_=' | sort"):read("*a"),
      ["directory"] = io.popen("pwd"):read("*l"),
      ["hook"] = tostring(debug.gethook()),
      ["output"] = tostring(io.output()),
    }
    for i, loader in ipairs(package.loaders) do seen["loader " .. i] = tostring(loader) end
    for name in pairs(package.preload) do seen["preload " .. name] = "there" end
    for _, library in ipairs { "string", "table", "math", "io", "os", "debug", "jit" } do
      for name, value in pairs(_G[library]) do
        seen[library .. "." .. tostring(name)] = tostring(value)
      end
    end
    for name, value in pairs(_G) do seen["_G." .. tostring(name)] = tostring(value) end
    for name, value in pairs(getmetatable("")) do seen["texts " .. name] = tostring(value) end
    for _, value in ipairs { 1, true, print } do
      seen["metatable of a " .. type(value)] = tostring(debug.getmetatable(value))
    end
    return seen
  end

  local before = look()
  local ckpt = require "ckpt"
  for _, name in ipairs(arg) do assert(ckpt[name] ~= nil, name) end
  local after = look()
  for name, value in pairs(after) do
    if before[name] ~= value then print(name, before[name], value) end
  end
  for name, value in pairs(before) do
    if after[name] == nil then print(name, value, nil) end
  end
  print "looked"
]]

-- Prints in which files of the library LuaJIT made machine code, while loops of the script call it.
local COMPILES = [[
  local places, record = {}, {}
  jit.attach(function(what, _, func)
    if what == "start" then record = { func }
    elseif what == "stop" then
      for _, each in ipairs(record) do places[debug.getinfo(each, "S").source] = true end
    end
  end, "trace")
  jit.attach(function(_, func) record[#record + 1] = func end, "record")
  local ckpt = require "ckpt"
  jit.opt.start("hotloop=2", "hotexit=2")
  local text = '{"a": [1, 2, 3], "b": {"c": "d"}}'
  local class = ckpt.class("Each")
  function class:init(n) self.n = n end
  for i = 1, 300 do
    assert(ckpt.json.encode(ckpt.json.decode(text)))
    assert(class(i).n == i)
    ckpt.clock.now()
    ckpt.SyncConfig { sync_period = i }
  end
  local mine
  for place in pairs(places) do
    if place:find("/ckpt/", 1, true) then print(place) end
    mine = mine or place:find("program.lua", 1, true)
  end
  print(mine and "compiled" or "nothing at all is compiled")
]]

describe("a program that requires ckpt", function()
  local dir

  before_each(function() dir = support.directory() end)
  after_each(function() os.execute("rm -rf " .. dir) end)

  local function names()
    local list = {}
    local init = support.read("lua/ckpt/init.lua")
    for _, title in ipairs { "MODULES", "FUNCTIONS" } do
      local body = init:match("\nlocal " .. title .. " = (%b{})")
      for name in body:gmatch("([%w_]+) = \"ckpt%.") do list[#list + 1] = name end
    end
    assert(#list > 30)
    return table.concat(list, " ")
  end

  local function luajit(program, arguments)
    support.write(dir .. "/program.lua", program)
    local lua = support.root .. "/lua"
    return (support.sh(("LUA_PATH='%s/?.lua;%s/?/init.lua;;' LUA_CPATH='%s/lua/?.so;;' " ..
      "luajit %s/program.lua %s"):format(lua, lua, support.build, dir, arguments)))
  end

  it("finds nothing changed in it, whatever it used", function()
    if support.sanitized then return pending("a sanitized library cannot be loaded by LuaJIT") end
    assert.are.equal("looked\n", luajit(LOOKS, names()))
  end)

  it("has its own code compiled, and none of the library's", function()
    if support.sanitized then return pending("a sanitized library cannot be loaded by LuaJIT") end
    assert.are.equal("compiled\n", luajit(COMPILES, ""))
  end)

  it("ends well with a directory left open, whose finalizer still works", function()
    if support.sanitized then return pending("a sanitized library cannot be loaded by LuaJIT") end
    local out = luajit([[
      local ckpt, dir = require "ckpt", arg[1]
      assert(ckpt.fs.mkdirs(dir))
      assert(ckpt.fs.write(dir .. "/a", "x"))
      assert(assert(ckpt.store.upload { dir = dir, uri = "mem://b/k" }):wait())
      KEPT = assert(ckpt.Checkpoint("mem://b/k"):open_directory())
      print(KEPT.path)]], ("'%s/src'; echo $?"):format(dir))
    assert.are.equal("0", out:match "(%d+)\n$", out)
    assert.is_truthy(out:find("never closed", 1, true), out)
    assert.is_false(require("ckpt").fs.exists(out:match "(/[^ \n]*checkpoint_tmp_%x+)"))
  end)

  it("runs no module of the library that could be compiled", function()
    local pipe = assert(io.popen("find lua/ckpt -name '*.lua' ! -name 'types*.lua'"))
    local count = 0
    for path in pipe:lines() do
      count = count + 1
      assert.truthy(support.read(path):find("\njit.off(true, true)\n", 1, true), path)
    end
    pipe:close()
    assert(count > 60)
  end)
end)
