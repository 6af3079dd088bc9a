--- `make contract-mutants`: breaks the behaviour of items, one at a time, in a copy of the library,
--- and wants a test that names the item to fail.
---
---   luajit spec/contract/mutants.lua [--seed N] [--count N | --all] [--part NAME] [--item N]
---
--- A mutant that does not load, or changes nothing, is a failure too: it would prove nothing.

package.path = "spec/?.lua;" .. package.path
local items = require "contract.items"
local mutation = require "contract.mutation"
local support = require "support"

local options = { count = 60, seed = os.time() }
do
  local at = 1
  while arg[at] do
    local name = arg[at]:match("^%-%-(%a+)$")
    if name == "all" then
      options.count = math.huge
    elseif name == "seed" or name == "count" or name == "item" then
      at = at + 1
      options[name] = assert(tonumber(arg[at]), "a number after --" .. name)
    elseif name == "part" then
      at = at + 1
      options.part = arg[at]
    else
      error("unknown option " .. arg[at], 0)
    end
    at = at + 1
  end
end

local function sh(command)
  local pipe = assert(io.popen(command .. "; printf '\\n%s' $?"))
  local text = pipe:read("*a")
  pipe:close()
  local out, status = text:match("^(.*)\n(%d+)$")
  return out, tonumber(status)
end

local function write(path, text)
  -- A new file: the old one may be a link to the project's own.
  os.remove(path)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

-- Fisher and Yates with numbers of our own: a seed draws the same items on every machine.
local function shuffle(list, seed)
  local state = seed % 2147483647
  if state == 0 then state = 1 end
  for i = #list, 2, -1 do
    state = state * 48271 % 2147483647
    local j = state % i + 1
    list[i], list[j] = list[j], list[i]
  end
end

--- A root that is the project but for copies of what mutants edit.
local function make_root()
  local root = sh("mktemp -d"):match("%S+")
  local _, status = sh(("for f in *; do case $f in lua | policies) cp -r \"$f\" '%s/' ;;"
    .. " *) ln -s \"$PWD/$f\" '%s/' ;; esac; done"):format(root, root))
  assert(status == 0, "the copy failed")
  return root
end

local function specs_of(item)
  local found = {}
  for _, path in ipairs(items.specs()) do
    for _, test in ipairs(items.tests_in(path)) do
      for _, number in ipairs(test.items) do
        if number == item then found[path] = true end
      end
    end
  end
  local list = {}
  for path in pairs(found) do list[#list + 1] = path end
  table.sort(list)
  return list
end

--- Runs the tests of an item; "passed", "failed", or "none" if nothing ran.
local function outcome(root, item)
  local result = "none"
  -- Frontiers: 7 is not in [73].
  local filter = ("%%[[%%d, ]*%%f[%%d]%d%%f[%%D][%%d, ]*G?%%]"):format(item)
  for _, path in ipairs(specs_of(item)) do
    local out, status = sh(("cd '%s' && %s"):format(root, items.command(path, filter)))
    if status == 124 or out:find("\nnot ok ") or out:find("^not ok ") then return "failed", out end
    if out:find("\nok ") or out:find("^ok ") then result = "passed" end
  end
  return result
end

local build = os.getenv("CKPT_BUILD") or "build"
if build:sub(1, 1) ~= "/" then
  io.stderr:write("CKPT_BUILD must be absolute\n")
  os.exit(2)
end

local of = mutation.load(options.part)
local drawn, without = {}, {}
for item = 1, items.COUNT do
  local wanted = not options.item or options.item == item
  if wanted and of[item] then
    drawn[#drawn + 1] = item
  elseif wanted and not items.HOST[item] and not options.part then
    without[#without + 1] = item
  end
end
shuffle(drawn, options.seed)
local wanted = options.count == math.huge and #drawn or options.count
while #drawn > options.count do table.remove(drawn) end
print(("seed %d: %d items"):format(options.seed, #drawn))
if #without > 0 then print("without a mutant: " .. table.concat(without, " ")) end

local root = make_root()
local bad, played = #without, 0
for _, item in ipairs(drawn) do
  local sound = outcome(root, item)
  if sound ~= "passed" then
    bad = bad + 1
    print(("%3d its tests do not pass as they are (%s)"):format(item, sound))
  else
    for _, mutant in ipairs(of[item]) do
      local text, why = mutation.apply(mutant)
      local verdict
      if not text then
        verdict = "REFUSED: " .. why
      else
        local copy = root .. "/" .. mutant.file
        local original = support.read(mutant.file)
        write(copy, text)
        verdict = outcome(root, item) == "failed" and "caught" or "NOT CAUGHT"
        write(copy, original)
      end
      played = played + 1
      if verdict ~= "caught" then bad = bad + 1 end
      print(("%3d %-12s %s"):format(item, mutant.name, verdict))
      io.stdout:flush()
    end
  end
end
os.execute("rm -rf '" .. root .. "'")
print(bad == 0 and ("every mutant was caught, of %d"):format(played) or (bad .. " are not"))
local is_short = played == 0 or #drawn < wanted
if is_short then
  print(("%d items with a mutant, not the %d that were asked for"):format(#drawn, wanted))
end
os.exit(bad == 0 and not is_short)
