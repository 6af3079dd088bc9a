-- That editors know every name that `require "ckpt"` gives: each is a field of the class `ckpt`,
-- and the type of that field is a class which is written down.

local core = require "ckpt.core"
local support = require "support"

describe("the annotations", function()
  local classes, types = {}, {} -- name -> true; name in ckpt -> its type
  local init = support.read("lua/ckpt/init.lua")

  setup(function()
    local pipe = assert(io.popen("find lua/ckpt -name '*.lua' -exec cat {} +"))
    for line in pipe:lines() do
      local name = line:match("^%-%-%-@class ([%w_.]+)")
      if name then classes[name] = true end
    end
    pipe:close()
    local fields = init:match("\n%-%-%-@class ckpt\n(.-)\n[^-]")
    for name, kind in ("\n" .. fields):gmatch("\n%-%-%-@field ([%w_]+) ([^\n]+)") do
      types[name] = kind
    end
  end)

  -- The names of a table of init.lua.
  local function each_of(title)
    local body = init:match("\nlocal " .. title .. " = (%b{})")
    return assert(body, title):gmatch("([%w_]+) = \"ckpt%.")
  end

  it("name each module and class with a type", function()
    local count = 0
    for name in each_of "MODULES" do
      local kind = assert(types[name], "no @field " .. name .. " in lua/ckpt/init.lua")
      assert(classes[kind], ("@field %s has the type %s, which no @class is"):format(name, kind))
      count = count + 1
    end
    assert(count > 20)
  end)

  it("name each function with its parameters", function()
    local function check(name)
      assert(types[name], "no @field " .. name .. " in lua/ckpt/init.lua")
      assert(types[name]:find("^fun%("), name)
    end
    for name in each_of "FUNCTIONS" do check(name) end
    for name, value in pairs(core) do
      if type(value) == "function" then check(name) end
    end
  end)
end)
