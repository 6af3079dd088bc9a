--- Every command that README.md and docs/ show is run, page by page, in a copy of what they assume:
--- a directory with ./ckpt-lua, examples/, engine/ and build/ in it.

local root = io.popen("pwd"):read("*l")
local runner = os.getenv("CKPT_LUA") or root .. "/ckpt-lua"
local build = os.getenv("CKPT_BUILD") or root .. "/build"
local sanitized = (os.getenv("SANITIZE") or "") ~= ""

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

--- The shell blocks of a page, in order.
local function blocks(path)
  local found = {}
  for block in read(path):gmatch("\n```sh\n(.-)\n```") do found[#found + 1] = block end
  return found
end

--- Runs a script with `set -e`; returns success and what it printed.
local function run(script, dir)
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  file:write("set -e\ncd '", dir, "'\n", script, "\n")
  file:close()
  local pipe = io.popen("timeout 120 bash " .. name .. " 2>&1; echo status=$?")
  local output = pipe:read("*a")
  pipe:close()
  os.remove(name)
  return output:match("status=(%d+)%s*$") == "0", output
end

local function workplace()
  local dir = io.popen("mktemp -d"):read("*l")
  local links = { { build, "build" }, { runner, "ckpt-lua" } }
  for _, name in ipairs { "engine", "examples" } do
      links[#links + 1] = { root .. "/" .. name, name }
  end
  for _, link in ipairs(links) do
    assert(os.execute(("ln -s '%s' '%s/%s'"):format(link[1], dir, link[2])) == 0)
  end
  return dir
end

local pages = { "README.md" }
for path in io.popen("ls docs/*.md"):lines() do pages[#pages + 1] = path end

describe("the commands shown in the docs", function()
  local dir

  -- One place for all pages, README first: the others go on with what it has made.
  setup(function() dir = workplace() end)
  teardown(function() os.execute("rm -rf '" .. dir .. "'") end)

  for _, page in ipairs(pages) do
    for number, block in ipairs(blocks(page)) do
      local first = block:match("^[^\n]+")
      it(("work: %s, block %d (%s)"):format(page, number, first), function()
        if block:match("^make ") then
          for target in block:gmatch("make ([%w-]+)") do
            local ok, output = run("make -n SETUP=no " .. target .. " >/dev/null", root)
            assert.is_true(ok, output)
          end
          return
        end
        -- A library with sanitizers in it needs them linked into the program too.
        if sanitized and block:match("^cc ") then
          pending("the plain build runs this one")
          return
        end
        local ok, output = run(block, dir)
        assert.is_true(ok, output)
      end)
    end
  end
end)
