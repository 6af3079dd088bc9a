--- Behind `ckpt-lua policy test`: runs busted with the files of the command line. With
--- CKPT_COVERAGE=1 it tells at the end what they have reached of the policies.

jit.off(true, true)
local is_there, run = pcall(require, "busted.runner")
if not is_there then
  io.stderr:write("policy test: busted is not there, which runs the tests: install it (Debian: ",
    "lua-busted; luarocks install busted) for Lua 5.1 or LuaJIT. ",
    tostring(run):match "[^\n]*", "\n")
  os.exit(127)
end

local coverage = require "ckpt.testing.testing_coverage"
if os.getenv "CKPT_COVERAGE" then coverage.start() end

local leave = os.exit
local function finish(code)
  if coverage.wanted() then coverage.tell(print) end
  leave(code, true) -- with what modules hold
end

-- busted leaves by an error without a text where a test has failed, or the process; or it returns.
os.exit = finish -- luacheck: ignore
local done, why = pcall(run, { standalone = false })
if not done and why ~= nil then io.stderr:write("policy test: ", tostring(why), "\n") end
finish(done and 0 or 1)
