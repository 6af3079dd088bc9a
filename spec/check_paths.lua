-- Finds what comments and pages name and what is not there: `luajit spec/check_paths.lua [DIR]`
-- prints "file:line: what is wrong" for each path of the project, each of its C files and specs,
-- and each link of a page that leads nowhere, and exits with 1.
--
-- What is judged: the comments of C, Lua, make and shells, and the whole of pages. A path begins
-- with a folder that stands at the top. One with a placeholder (*, {}, <>, NAME, x) is not judged.

local root = arg[1] or "."
local TOP = { engine = true, lua = true, spec = true, docs = true, policies = true,
  examples = true, contrib = true, mk = true, [".ci"] = true }
-- What is made to be wrong, is data, or tells of the past.
local LEFT_OUT = { "^spec/data/", "^spec/fuzz/corpus/", "^spec/hostile/%d", "^CHANGELOG%.md$" }

local found = 0

local function report(file, line, fmt, ...)
  found = found + 1
  io.stderr:write(("%s:%d: "):format(file, line), fmt:format(...), "\n")
end

local function read(path)
  local f = assert(io.open(root .. "/" .. path, "rb"))
  local text = f:read("*a")
  f:close()
  return text
end

local files, exists, names = {}, {}, {}

local function list_files()
  local pipe = assert(io.popen(("cd '%s' && find . -path ./build -prune -o -path ./.git -prune -o "
    .. "-printf '%%y %%P\\n' | sort -k 2"):format(root)))
  for kind, path in pipe:read("*a"):gmatch("(%a) ([^\n]+)") do
    exists[path] = true
    names[path:match("[^/]*$")] = true
    if kind == "f" then files[#files + 1] = path end
  end
  pipe:close()
end

-- ---- what is read of a file: the same text with spaces for all that is no comment ----

local function blank(text) return (text:gsub("[^\n]", " ")) end

-- `rule(text, at)` tells where a piece that begins there ends, and whether it is a comment; nil:
-- none begins there.
local function comments(text, starts, rule)
  local out, at = {}, 1
  while at <= #text do
    local from = text:find(starts, at) or #text + 1
    out[#out + 1] = blank(text:sub(at, from - 1))
    if from > #text then break end
    local upto, is_comment = rule(text, from)
    local piece = text:sub(from, upto or from)
    out[#out + 1] = is_comment and piece or blank(piece)
    at = (upto or from) + 1
  end
  return table.concat(out)
end

local function line_end(text, at) return (text:find("\n", at, true) or #text + 1) - 1 end

-- The end of a text in quotes; a line end ends it too.
local function quoted_end(text, at)
  local quote, i = text:sub(at, at), at + 1
  while i <= #text do
    local c = text:sub(i, i)
    if c == quote or c == "\n" then return i end
    i = i + (c == "\\" and 2 or 1)
  end
  return #text
end

local function of_c(text, at)
  local two = text:sub(at, at + 1)
  if two == "/*" then return select(2, text:find("*/", at + 2, true)) or #text, true end
  if two == "//" then return line_end(text, at), true end
  if text:find("^[\"']", at) then return quoted_end(text, at), false end
end

local function of_lua(text, at)
  local dashes, long = text:match("^(%-?%-?)%[(=*)%[", at)
  if long and (dashes == "" or dashes == "--") then
    return select(2, text:find("]" .. long .. "]", at, true)) or #text, dashes == "--"
  end
  if text:sub(at, at + 1) == "--" then return line_end(text, at), true end
  if text:find("^[\"']", at) then return quoted_end(text, at), false end
end

-- Whole lines alone: a # within a line may be anything.
local function shell(text)
  return (text:gsub("[^\n]+", function(line)
    return line:find("^%s*#") and line or blank(line)
  end))
end

local kinds = {
  c = function(text) return comments(text, "[/\"']", of_c) end,
  lua = function(text) return comments(text, "[%-%[\"']", of_lua) end,
  md = function(text) return text end,
  mk = shell, sh = shell, py = shell,
}
kinds.h = kinds.c

local function kind_of(path)
  local name = path:match("[^/]*$")
  if name == "Makefile" or name == "LAYERS" then return "mk" end
  return name:match("%.(%w+)$")
end

-- ---- what is named in it ----

-- Of a path that stands for many, or for none.
local function is_placeholder(path)
  for part in path:gmatch("[^/]+") do
    local stem = part:match("^[^.]*")
    if stem:find("%f[%w]%u[%u_]*$") and not exists[path] then return true end
    if stem:find("%f[%w]x$") then return true end
  end
  return false
end

-- Itself, or the source of a module or program of this name.
local function is_there(path)
  path = path:gsub("/$", "")
  for _, ending in ipairs { "", ".lua", ".c", ".h", ".sh", ".md" } do
    if exists[path .. ending] then return true end
  end
  return false
end

local function check_path(file, line, path)
  if not TOP[path:match("^[^/]+")] or is_placeholder(path) then return end
  if not is_there(path) then report(file, line, "there is no %s", path) end
end

-- A C file or a spec: by its name alone, or below engine/, spec/ or where it is named.
local function check_name(file, line, path)
  if is_placeholder(path) or path:find("^%.%./") then return end
  if not path:find("/", 1, true) then
    if not names[path] then report(file, line, "there is no file %s", path) end
    return
  end
  local here = file:match("^(.*)/") or "."
  for _, folder in ipairs { "", "engine/", "spec/", here .. "/" } do
    if exists[folder .. path] then return end
  end
  report(file, line, "there is no %s", path)
end

local function check_named(file, line, path, kind)
  local is_c = path:find("%.[ch]$") and (kind == "c" or kind == "h" or path:find("/", 1, true))
  if is_c or path:find("_spec%.%a+$") then
    check_name(file, line, path)
  elseif path:find("/.") then
    check_path(file, line, path)
  end
end

local function check_link(file, line, target)
  target = target:gsub("#.*", "")
  if target == "" or target:find("^%a+:") then return end
  local path = (file:match("^(.*/)") or "") .. target
  local count
  repeat path, count = path:gsub("[^/]+/%.%./", "", 1) until count == 0
  if not exists[(path:gsub("/$", ""))] then
    report(file, line, "the link leads nowhere: %s", target)
  end
end

local function check_file(file)
  local kind = kind_of(file)
  local judged = kinds[kind]
  if not judged then return end
  local number = 0
  for line in (judged(read(file)) .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    line = " " .. line .. " "
    for before, path, at in line:gmatch("([^%w_./-])([%w_.][%w_./-]*)()") do
      local is_part = before:find("[$}~<*>]") or line:find("^[*?{<$%%]", at)
      if not is_part then check_named(file, number, (path:gsub("[.-]+$", "")), kind) end
    end
    if kind == "md" then
      for target in line:gmatch("%]%(([^)%s]+)%)") do check_link(file, number, target) end
    end
  end
end

list_files()
for _, file in ipairs(files) do
  local is_out = false
  for _, pattern in ipairs(LEFT_OUT) do is_out = is_out or file:find(pattern) ~= nil end
  if not is_out then check_file(file) end
end
os.exit(found == 0 and 0 or 1)
