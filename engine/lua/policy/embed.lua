-- Writes the Lua texts of the sandbox as a C source: luajit embed.lua OUT SANDBOX LIBRARY
-- LIBRARY lists its parts (lua/policy/library.lua), which are in a folder beside it.

local out, sandbox, library = arg[1], arg[2], arg[3]

local files = { sandbox }
for _, part in ipairs(dofile(library).parts) do
  files[#files + 1] = library:gsub("%.lua$", "") .. "/" .. part .. ".lua"
end

-- One line of C for each line of Lua.
local function quoted(text)
  return (text:gsub("[^\n]*\n?", function(line)
    if line == "" then return "" end
    line = line:gsub('[%c"\\?\128-\255]', function(c) return ("\\%03o"):format(c:byte()) end)
    return '     "' .. line .. '"\n'
  end))
end

local rows = {}
for _, path in ipairs(files) do
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  local name = path:match("([^/]+)%.lua$")
  rows[#rows + 1] = ('    {"=%s",\n%s     , %d},\n'):format(name, quoted(text), #text)
end

local file = assert(io.open(out, "wb"))
file:write('#include "lua/policy/policy_text.h"\n\nconst policy_text policy_texts[] = {\n',
  table.concat(rows), "    {NULL, NULL, 0},\n};\n")
file:close()
