--- The 300 behaviours that the object library promises, by number: which tests name them, which of
--- them are better here on purpose (docs/contract.md), which have no meaning outside their host.
---
--- A test names its items at the beginning of its own name: "[73, 74] ..." or "[92 G] ...".

local support = require "support"

local items = { COUNT = 300 }

--- Items that are about a host that is not here.
items.HOST = {
  [69] = "Windows: lengths of paths",
  [117] = "the programs aws and gsutil",
  [118] = "the command lines of these programs",
  [151] = "what fsspec knows",
  [218] = "where Ray puts the callback among its loggers",
}

--- Items whose words are void, and why. What holds instead has its tests and mutants all the same.
items.VOID = {
  [290] = "of equal scores the older stays, as recorded; the words said the newer",
}

--- The numbers that a test's name begins with (anywhere in it: TAP puts the describe's before).
---@param name string
---@return integer[], boolean # whether they are said to be better here
function items.named(name)
  local numbers = {}
  local list, better = name:match("%[(%d[%d, ]*)( ?G?)%]")
  for number in (list or ""):gmatch("%d+") do numbers[#numbers + 1] = tonumber(number) end
  return numbers, better ~= nil and better:find("G", 1, true) ~= nil
end

--- Runs the specs that may name items.
---@return string[] # paths below the project's root
function items.specs()
  local found = {}
  local pipe = assert(io.popen("find spec/contract -name '*_spec.lua' | sort"))
  for path in pipe:lines() do found[#found + 1] = path end
  pipe:close()
  return found
end

--- The tests of a file as its text has them, without running it.
---@param path string
---@return { name: string, items: integer[], better: boolean }[]
function items.tests_in(path)
  local tests = {}
  for quote, name in support.read(path):gmatch('%f[%w]it%(%s*(["\'])(.-)%1') do
    local numbers, better = items.named(name)
    if quote and #numbers > 0 then
      tests[#tests + 1] = { name = name, items = numbers, better = better }
    end
  end
  return tests
end

--- The rows of the table in docs/contract.md.
---@return table<integer, string> # item -> what is done instead
function items.better()
  local rows = {}
  local contract = support.read "docs/contract.md"
  for numbers, text in contract:gmatch("\n| ([%d, ]+) | ([^\n]-) |%f[\n]") do
    for number in numbers:gmatch("%d+") do rows[tonumber(number)] = text end
  end
  return rows
end

--- The command that runs a spec of the library, as spec/run_tests does.
---@param path string
---@param filter? string a Lua pattern for the names of tests
---@return string
function items.command(path, filter)
  local build = os.getenv("CKPT_BUILD") or "build"
  return ("CKPT_LUADIR=\"$PWD/lua\" timeout -k 5 %d '%s/libexec/ckpt-script'"
    .. " \"$(command -v busted)\" -o TAP --lpath='spec/?.lua' %s '%s' 2>&1 </dev/null"):format(
      tonumber(os.getenv("TEST_TIMEOUT")) or 300, build,
      filter and ("--filter='" .. filter .. "'") or "", path)
end

return items
