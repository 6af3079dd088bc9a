--- `make contract`: runs the specs of the object library and prints a line for each item: by which
--- test it is shown, what is better here and by which test, or that it has no meaning here.

package.path = "spec/?.lua;" .. package.path
local items = require "contract.items"

local shown, failed = {}, {} -- item -> { "file: test", ... }

local function note(into, item, text)
  into[item] = into[item] or {}
  table.insert(into[item], text)
end

--- One spec file, from the TAP that it prints.
local function run(path)
  local planned, ran = nil, 0
  local pipe = assert(io.popen(items.command(path)))
  for line in pipe:lines() do
    local bad, name = line:match("^(n?o?t? ?)ok %d+ %- (.*)$")
    if name then
      ran = ran + 1
      local skipped = name:find("# SKIP", 1, true)
      for _, item in ipairs(items.named(name)) do
        if not skipped then note(bad == "" and shown or failed, item, path .. ": " .. name) end
      end
    end
    planned = tonumber(line:match("^1%.%.(%d+)")) or planned
  end
  pipe:close()
  if planned == nil or planned ~= ran then
    io.stderr:write(("%s: ran %d of %s tests\n"):format(path, ran, tostring(planned)))
    return false
  end
  return true
end

local is_whole = true
for _, path in ipairs(items.specs()) do is_whole = run(path) and is_whole end

local better = items.better()
local count = { shown = 0, better = 0, void = 0, host = 0, missing = 0, failed = 0 }
for item = 1, items.COUNT do
  local word, text
  if items.HOST[item] then
    word, text = "host", "not here: " .. items.HOST[item]
  elseif failed[item] then
    word, text = "failed", failed[item][1]
  elseif not shown[item] then
    word, text = "missing", "no test names it"
  elseif items.VOID[item] then
    word, text = "void", ("%s -- %s"):format(items.VOID[item], shown[item][1])
  elseif better[item] then
    word, text = "better", better[item] .. " -- " .. shown[item][1]
  else
    word, text = "shown", shown[item][1]
  end
  count[word] = count[word] + 1
  print(("%3d %-8s %s"):format(item, word, text))
end

print(("%d items: %d shown, %d better on purpose, %d void, %d not of this host%s%s"):format(
  items.COUNT, count.shown, count.better, count.void, count.host,
  count.failed > 0 and (", %d failed"):format(count.failed) or "",
  count.missing > 0 and (", %d missing"):format(count.missing) or ""))
os.exit(is_whole and count.missing + count.failed == 0)
