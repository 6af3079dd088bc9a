-- Holds engine/ to engine/LAYERS: `luajit spec/check_layers.lua DIR` prints "file:line: what is
-- wrong" for each break and exits with 1. What the lines of LAYERS mean is said there.

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

local rank, layers, public, foreign, calls, system = {}, {}, {}, {}, {}, {}

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
  public = function(args) public[args[1]] = true end,
  foreign = function(args) foreign[table.remove(args, 1)] = args end,
  calls = function(args)
    local names, homes = split(args, "in")
    for _, name in ipairs(names) do calls[name] = homes end
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
    if handler then handler(args)
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

local function list_files()
  local pipe = assert(io.popen("cd '" .. root .. "' && find . -name '*.[ch]' | sort"))
  for path in pipe:lines() do
    local file = path:sub(3)
    files[#files + 1] = file
    exists[file] = true
  end
  pipe:close()
end

-- fs.c, fs.h and fs_tree.c are one family; store_file.c and store_mem.c are none.
local function related(a, b)
  a, b = a:gsub("%.[ch]$", "_"), b:gsub("%.[ch]$", "_")
  return a:sub(1, #b) == b or b:sub(1, #a) == a
end

local function check_own(file, line, header)
  local folder, name = parts(file)
  local target = exists[folder .. "/" .. header] and folder .. "/" .. header or header
  if not exists[target] then
    return report(file, line, "no such header in the engine: \"%s\"", header)
  end
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
    report(file, line, "%s/ may not include \"%s\"", folder, header)
  elseif rank[to] > rank[folder] then
    report(file, line, "layer %s may not include layer %s: \"%s\"", folder, to, header)
  end
end

local function check_foreign(file, line, header)
  local homes = listed(foreign, header)
  if homes then
    if not at_home(file, homes) then
      report(file, line, "<%s> belongs to %s", header, table.concat(homes, ", "))
    end
  elseif not listed(system, header) then
    report(file, line, "<%s> has no home: name one in LAYERS", header)
  end
end

-- Comments become spaces, line ends stay, so that the numbers of lines hold. Strings and
-- characters go whole in front of both kinds of comment: "//" in one begins none.
local function code_of(text)
  local out, at = {}, 1
  while at <= #text do
    local from = text:find("[\"'/]", at)
    if not from then break end
    out[#out + 1] = text:sub(at, from - 1)
    local two, one = text:sub(from, from + 1), text:sub(from, from)
    local upto
    if two == "/*" then
      upto = select(2, text:find("*/", from + 2, true)) or #text
      out[#out + 1] = text:sub(from, upto):gsub("[^\n]", " ")
    elseif two == "//" then
      upto = (text:find("\n", from, true) or #text + 1) - 1
    elseif one == "/" then
      upto = from
      out[#out + 1] = "/"
    else
      upto = from
      repeat
        upto = upto + 1
        if text:sub(upto, upto) == "\\" then upto = upto + 2 end
      until upto >= #text or text:sub(upto, upto) == one or text:sub(upto, upto) == "\n"
      out[#out + 1] = text:sub(from, upto)
    end
    at = upto + 1
  end
  out[#out + 1] = text:sub(at)
  return table.concat(out)
end

local function check_calls(file, number, line)
  line = line:gsub('"[^"]*"', '""')
  for at, name in line:gmatch("%f[%w_]()([%a_][%w_]*)%s*%f[(]") do
    -- x->open( and x.open( are members, not the system's.
    local before = line:sub(at - 1, at - 1)
    local homes = before ~= "." and before ~= ">" and calls[name]
    if homes and not at_home(file, homes) then
      report(file, number, "%s() is for %s", name, table.concat(homes, ", "))
    end
  end
end

local function check_file(file)
  if not rank[parts(file)] then return report(file, 1, "its folder is no layer of LAYERS") end
  local number = 0
  for line in (code_of(read(root .. "/" .. file)) .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    local open, header = line:match("^%s*#%s*include%s*([<\"])([^>\"]*)")
    if open == '"' then check_own(file, number, header)
    elseif open then check_foreign(file, number, header)
    else check_calls(file, number, line) end
  end
end

local function check_names()
  local seen = {}
  for _, file in ipairs(files) do
    local _, name = parts(file)
    if seen[name] then report(file, 1, "the name is taken by %s", seen[name]) end
    seen[name] = file
  end
end

read_rules()
list_files()
check_names()
for _, file in ipairs(files) do check_file(file) end
os.exit(found == 0 and 0 or 1)
