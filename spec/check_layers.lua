-- Holds a tree to its LAYERS, engine/ by what its files include and lua/ by what they require:
-- `luajit spec/check_layers.lua DIR` prints "file:line: what is wrong" for each break and exits
-- with 1. What the lines of LAYERS mean is said there, but three:
--
--   door ROOM HEADER ...           Other rooms include these headers of the room alone. A room
--                                  without a door is open; a room is a folder, such as job/save.
--   pure ROOM [HEADER|FOLDER/ ...] The room decides and does nothing: it includes none of these and
--                                  calls none of their functions, none that a line of calls names,
--                                  and nothing through a pointer, as the methods of io and of a
--                                  store are.
--   writes ROOM MEMBER HOME        Of the files of the room this one alone sets that member.

package.path = "spec/?.lua;" .. package.path

local root = arg[1] or "engine"
local found = 0

local function report(file, line, fmt, ...)
  found = found + 1
  io.stderr:write(("%s/%s:%d: "):format(root, file, line), fmt:format(...), "\n")
end

local function words(text)
  local list = {}
  for word in text:gmatch("%S+") do list[#list + 1] = word end
  return list
end

-- { "a", "b", "in", "c" } split at "in".
local function split(list, at)
  local left, right, side = {}, {}, nil
  for _, word in ipairs(list) do
    if word == at then side = right else table.insert(side or left, word) end
  end
  return left, right
end

local function set(list)
  local s = {}
  for _, word in ipairs(list) do s[word] = true end
  return s
end

-- The home is the file itself, or its folder with a slash.
local function at_home(file, homes)
  for _, home in ipairs(homes) do
    if file == home or (home:sub(-1) == "/" and file:sub(1, #home) == home) then return true end
  end
  return false
end

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read("*a")
  f:close()
  return text
end

local rank, layers, public, foreign, calls, system, writes = {}, {}, {}, {}, {}, {}, {}
local doors, pure, rooms_named = {}, {}, {}

local most -- files of one folder

-- A rule about a room: { what it names ..., line = where it stands }.
local function room_rule(into)
  return function(args, line)
    local room = table.remove(args, 1)
    args.line = line
    into[room] = args
    rooms_named[#rooms_named + 1] = { room = room, line = line }
  end
end

-- One handler for each word that a line of LAYERS can begin with.
local handlers = {
  layer = function(args)
    local name = table.remove(args, 1)
    local own, only = split(args, "only")
    layers[#layers + 1] = name
    rank[name] = #layers
    layers[name] = {
      strangers = own[1] == "strangers",
      shared = set(own),
      only = #only > 0 and only or nil,
    }
  end,
  door = room_rule(doors),
  pure = room_rule(pure),
  most = function(args, line) most = { files = tonumber(args[1]), line = line } end,
  public = function(args) public[args[1]] = true end,
  foreign = function(args) foreign[table.remove(args, 1)] = args end,
  calls = function(args)
    local names, homes = split(args, "in")
    for _, name in ipairs(names) do calls[name] = homes end
  end,
  writes = function(args, line)
    writes[#writes + 1] = { room = args[1], member = args[2], home = args[3], line = line }
  end,
  system = function(args)
    for _, header in ipairs(args) do system[header] = true end
  end,
}

local function read_rules()
  local n = 0
  for line in (read(root .. "/LAYERS") .. "\n"):gmatch("(.-)\n") do
    n = n + 1
    local args = words((line:gsub("#.*", "")))
    local handler = handlers[table.remove(args, 1) or ""]
    if handler then handler(args, n)
    elseif line:find("^%s*[^#%s]") then report("LAYERS", n, "no such rule: %s", line) end
  end
end

-- Looks a header up under its own name, then as everything in its folder.
local function listed(list, header)
  return list[header] or list[(header:match("^.*/") or "") .. "*"]
end

local function parts(file)
  local folder, name = file:match("^(.*)/([^/]*)$")
  return folder or ".", name or file
end

local files, exists = {}, {}

local function list_files(language)
  local pipe = assert(io.popen(("cd '%s' && find . %s | sort"):format(root, language.files)))
  for path in pipe:lines() do
    local file = path:sub(3)
    files[#files + 1] = file
    exists[file] = language
  end
  pipe:close()
end

-- fs.c, fs.h and fs_tree.c are one family; store_file.c and store_mem.c are none.
local function related(a, b)
  a, b = a:gsub("%.%w+$", "_"), b:gsub("%.%w+$", "_")
  return a:sub(1, #b) == b or b:sub(1, #a) == a
end

local function check_own(file, line, header, target)
  local folder, name = parts(file)
  local verb = exists[file].verb
  if public[file] then
    return report(file, line, "a public header includes nothing of ours: \"%s\"", header)
  end
  local to, to_name = parts(target)
  local layer = layers[folder]
  if to == folder then
    if layer.strangers and not related(name, to_name) and not layer.shared[to_name] then
      report(file, line, "the files of %s/ are strangers: \"%s\"", folder, header)
    end
  elseif not rank[to] then
    report(file, line, "the folder of \"%s\" is no layer", header)
  elseif layer.only and not at_home(target, layer.only) then
    report(file, line, "%s/ may not %s \"%s\"", folder, verb, header)
  elseif rank[to] > rank[folder] then
    local saying = "layer %s may not %s layer %s: \"%s\""
    report(file, line, saying, folder, verb, to, header)
  elseif doors[to] and not set(doors[to])[to_name] then
    local names = table.concat(doors[to], ", ")
    report(file, line, "%s/ is entered by %s alone: \"%s\"", to, names, header)
  end
  if pure[folder] and at_home(target, pure[folder]) then
    report(file, line, "%s/ is pure: \"%s\"", folder, header)
  end
end

local function check_foreign(file, line, header)
  local homes, shown = listed(foreign, header), exists[file].foreign:format(header)
  if homes then
    if not at_home(file, homes) then
      report(file, line, "%s belongs to %s", shown, table.concat(homes, ", "))
    end
  elseif not listed(system, header) then
    report(file, line, "%s has no home: name one in LAYERS", shown)
  end
end

-- Whose: what is "ours" stands in the tree, what is "foreign" does not, "any" may do both, and "if
-- ours" may be no name at all.
local function check_use(file, line, name, whose)
  local target = whose ~= "foreign" and exists[file].find(name, parts(file), exists)
  if target then check_own(file, line, name, target)
  elseif whose == "ours" then
    report(file, line, "no such header in the engine: \"%s\"", name)
  elseif whose ~= "if ours" then check_foreign(file, line, name) end
end

-- A function is named after its header: store_open() is of store.h, and store_key_check() of
-- store_key.h, where there is one. So the functions of what a room may not include are known by
-- name, though the header came along with another one.
local function forbidden(name, list)
  local home, longest = nil, 0
  for _, file in ipairs(files) do
    local stem = file:match("([^/]*)%.h$")
    if stem and #stem > longest and name:sub(1, #stem + 1) == stem .. "_" then
      home, longest = file, #stem
    end
  end
  return home and at_home(home, list)
end

local function check_calls(file, number, line)
  local folder = parts(file)
  line = line:gsub('"[^"]*"', '""')
  for at, name in line:gmatch("%f[%w_]()([%a_][%w_]*)%s*%f[(]") do
    -- x->open( and x.open( are members, not the system's.
    local before = line:sub(at - 1, at - 1)
    local member = before == "." or before == ">"
    local homes = not member and calls[name]
    if pure[folder] and member then
      report(file, number, "%s/ is pure, and calls nothing through a pointer: %s()", folder, name)
    elseif pure[folder] and (homes or forbidden(name, pure[folder])) then
      report(file, number, "%s/ is pure, and calls no %s()", folder, name)
    elseif homes and not at_home(file, homes) then
      report(file, number, "%s() is for %s", name, table.concat(homes, ", "))
    end
  end
end

local function check_writes(file, number, line)
  for _, w in ipairs(writes) do
    local sets = (" " .. line):match("[^%w_]" .. w.member:gsub("%p", "%%%0") .. "%s*=[^=]")
    if sets and parts(file) == w.room and file ~= w.home then
      report(file, number, "%s is set by %s alone", w.member, w.home)
    end
  end
end

local function check_file(file)
  if not rank[parts(file)] then return report(file, 1, "its folder is no layer of LAYERS") end
  exists[file].read(read(root .. "/" .. file),
    function(...) check_use(file, ...) end,
    function(...)
      check_calls(file, ...)
      check_writes(file, ...)
    end)
end

-- A header is included by its name alone in its own folder, so one name is one file; a module is
-- required by its whole name.
local function check_names()
  local seen = {}
  for _, file in ipairs(files) do
    local _, name = parts(file)
    local taken = exists[file].verb == "include" and seen[name]
    if taken then report(file, 1, "the name is taken by %s", taken) end
    seen[name] = file
  end
end

local function check_rooms()
  for _, w in ipairs(writes) do
    if not exists[w.home] then report("LAYERS", w.line, "no such file: %s", w.home) end
  end
  for _, at in ipairs(rooms_named) do
    if not rank[at.room] then report("LAYERS", at.line, "no such layer: %s", at.room) end
  end
  for room, door in pairs(doors) do
    for _, name in ipairs(door) do
      local path = room == "." and name or room .. "/" .. name
      if rank[room] and not exists[path] then
        report("LAYERS", door.line, "no such file in %s/: %s", room, name)
      end
    end
  end
end

local function check_crowds()
  local count = {}
  for _, file in ipairs(files) do
    local folder = parts(file)
    count[folder] = (count[folder] or 0) + 1
  end
  for folder, n in pairs(count) do
    if most and n > most.files then
      report("LAYERS", most.line, "%s/ has %d files: part it into rooms", folder, n)
    end
  end
end

read_rules()
list_files(require "layers.c")
list_files(require "layers.lua")
check_rooms()
check_names()
check_crowds()
for _, file in ipairs(files) do check_file(file) end
os.exit(found == 0 and 0 or 1)
