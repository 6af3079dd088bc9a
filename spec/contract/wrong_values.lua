--- Puts wrong values into the recordings of spec/data/oracle, one at a time, and sees whether the
--- spec that replays the recording fails: what it does not notice it does not compare.
---
---   ckpt-lua exec spec/contract/wrong_values.lua [--seed N] [--count N of each] [--part NAME]
---
--- It prints a line for each, and at the end how many of each recording were noticed. CKPT_BUILD is
--- the absolute path of the build directory.

package.path = "spec/?.lua;" .. package.path
local ckpt = require "ckpt"
local items = require "contract.items"
local support = require "support"

local json, fs = ckpt.json, ckpt.fs

-- What was seen of the five systems, by recording: all else is what they were given.
local SEEN = {
  adaptdl_save = "outcomes calls tree",
  adaptdl_select = "returned value calls exception log",
  background_syncer = "ret exception trace now has_process running last_up last_down",
  durable = "ret error client tree",
  exclude_ray24 = "same_node_copy tar upload fnmatch_matches default_exclude",
  func_checkpoint = "ret error tree events ok",
  retention_ray100 = "deleted exception best newest",
  syncconfig = "node_to_storage error",
  syncer_traces = "started source_ips ops exception log now processes running to_remove known_ips "
    .. "init_error",
  ["train_checkpoint_2.10.0"] = "ret error log",
}
local SPECS = {
  adaptdl_save = "adaptdl", adaptdl_select = "adaptdl", background_syncer = "syncer",
  durable = "durable", exclude_ray24 = "excludes", func_checkpoint = "func",
  retention_ray100 = "retention", syncconfig = "syncer", syncer_traces = "callback",
  ["train_checkpoint_2.10.0"] = "checkpoint",
}

local options = { count = 20, seed = os.time() }
for at = 1, #arg, 2 do
  local name = arg[at]:match "^%-%-(%a+)$"
  options[name or ""] = tonumber(arg[at + 1]) or arg[at + 1]
end

local state
local function random(n)
  state = state * 48271 % 2147483647
  return math.floor(state / 2147483647 * n) + 1
end

local function set_of(words)
  local set = {}
  for word in words:gmatch "%S+" do set[word] = true end
  return set
end

-- Collects the places of values that can be wrong, { in, key, title }: what is below a name of
-- `seen`. `name` is that of a member, which in a record that is a list `members` tells.
local function collect(into, seen, members, container, key, name, title, is_below)
  local value, is_wanted = container[key], is_below or seen[name or ""] or false
  if is_wanted then into[#into + 1] = { container, key, title } end
  if type(value) ~= "table" then return end
  for k, part in pairs(value) do
    local at, names = ("%s/%s"):format(title, k), members[name or ""]
    if names and type(part) == "table" and part[1] ~= nil then
      for j in pairs(part) do
        collect(into, seen, members, part, j, names[j], ("%s/%s"):format(at, names[j]), is_wanted)
      end
    else
      collect(into, seen, members, value, k, k, at, is_wanted)
    end
  end
end

-- Another value of the same kind; for a list one that has one part more or fewer.
local function wrong(value)
  if type(value) == "boolean" then return not value end
  if type(value) == "number" then return value + 1 end
  if type(value) == "string" then return value .. "~" end
  if type(value) ~= "table" or not (next(value) == nil or #value > 0) then return "wrong" end
  local copy = json.list { unpack(value) }
  if #copy == 0 or random(2) == 1 then copy[#copy + 1] = "wrong" else table.remove(copy) end
  return copy
end

local function play(name, dir)
  local path = ("spec/data/oracle/%s.json"):format(name)
  local text = assert(support.read(path), path)
  local whole = assert(json.decode(text))
  local places = {}
  collect(places, set_of(SEEN[name]), whole.members or {}, { whole }, 1, nil, "", false)
  local kinds, of = {}, {} -- a kind: places whose titles differ in their numbers alone
  for _, place in ipairs(places) do
    local kind = place[3]:gsub("%d+", "*")
    if not of[kind] then
      of[kind] = {}
      kinds[#kinds + 1] = kind
    end
    table.insert(of[kind], place)
  end
  table.sort(kinds)
  local spec = ("spec/contract/oracle/%s_spec.lua"):format(SPECS[name])
  local noticed = 0
  for _ = 1, options.count do
    local kind = of[kinds[random(#kinds)]]
    table.sort(kind, function(a, b) return a[3] < b[3] end)
    local place = kind[random(#kind)]
    local right = place[1][place[2]]
    place[1][place[2]] = wrong(right)
    local changed = place[1][place[2]]
    assert(fs.write(("%s/%s.json"):format(dir, name), assert(json.encode(whole))))
    place[1][place[2]] = right
    local out, code = support.sh(("CKPT_RECORDINGS='%s' %s"):format(dir, items.command(spec)))
    local seen = code ~= 0 and (out:find "\nnot ok " or out:find "^not ok ") and true or false
    noticed = noticed + (seen and 1 or 0)
    print(("%s %s%s: %s for %s"):format(seen and "noticed    " or "NOT NOTICED", name, place[3],
      json.encode(changed), json.encode(right)))
    io.stdout:flush()
  end
  assert(fs.remove(("%s/%s.json"):format(dir, name)))
  return noticed
end

local dir, names = support.directory(), {}
for name in pairs(SEEN) do names[#names + 1] = name end
table.sort(names)
local lines = {}
for _, name in ipairs(names) do
  state = options.seed % 2147483646 + 1
  for _ = 1, 10 do random(1) end
  if not options.part or name:find(options.part, 1, true) then
    lines[#lines + 1] = ("%-24s %d of %d"):format(name, play(name, dir), options.count)
  end
end
support.sh("rm -rf " .. dir)
print(("seed %d\n%s"):format(options.seed, table.concat(lines, "\n")))
