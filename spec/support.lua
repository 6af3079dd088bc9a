--- What specs that drive the real programs share: the shell, files, waiting.
local support = {}

local root = io.popen("pwd"):read("*l")

local function absolute(path) return path:sub(1, 1) == "/" and path or root .. "/" .. path end

--- The project's root, the runner under test, and the build that it came from.
support.root = root
support.runner = absolute(os.getenv("CKPT_LUA") or "ckpt-lua")
support.build = absolute(os.getenv("CKPT_BUILD") or "build")
--- True when the programs are built with sanitizers: slower, larger, and in need of their library.
support.sanitized = (os.getenv("SANITIZE") or "") ~= ""

--- Runs a shell command; returns what it printed (both streams) and its exit code.
---@param command string
---@return string, integer
function support.sh(command)
  local pipe = assert(io.popen("{ " .. command .. "\n} 2>&1; printf '\\n%s' $?", "r"))
  local out = pipe:read("*a")
  pipe:close()
  local text, status = out:match("^(.*)\n(%d+)$")
  return text, tonumber(status)
end

--- A file's content, or nil if there is none.
function support.read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local data = file:read("*a")
  file:close()
  return data
end

function support.write(path, data)
  local file = assert(io.open(path, "wb"))
  file:write(data)
  file:close()
end

--- The lines of a text that have something in them.
function support.lines(text)
  local list = {}
  for line in text:gmatch "[^\n]+" do list[#list + 1] = line end
  return list
end

--- Asks `check` until it answers, for `seconds` (10; six times as long with sanitizers).
function support.await(what, check, seconds)
  for _ = 1, (seconds or 10) * (support.sanitized and 300 or 50) do
    local value = check()
    if value then return value end
    os.execute("sleep 0.02")
  end
  error("waited in vain for " .. what)
end

--- Does this process live? One that nobody has reaped yet does not.
function support.alive(pid)
  local stat = support.read("/proc/" .. pid .. "/stat")
  return stat ~= nil and not stat:find(") Z ", 1, true)
end

--- Kills that process and waits for its last thread: until then it holds its locks. Its first one
--- may stay as a zombie that nobody waits for.
function support.kill(pid)
  support.sh("kill -9 " .. pid)
  support.await("the end of " .. pid, function()
    return tonumber((support.sh("cat /proc/" .. pid .. "/task/*/stat 2>&- | grep -cv ') Z '"))) == 0
  end)
end

--- A fresh directory; the caller removes it.
function support.directory() return support.sh("mktemp -d"):match("%S+") end

--- Each test of this block begins with a fresh directory, of which `begin` is told, and which is
--- gone after the test.
---@param begin? fun(dir: string)
---@param make? fun(): string makes it
function support.with_directory(begin, make)
  local busted = require "busted"
  local dir
  busted.before_each(function()
    dir = (make or support.directory)()
    if begin then begin(dir) end
  end)
  busted.after_each(function()
    os.execute(("chmod -R u+rwX '%s'; rm -rf '%s'"):format(dir, dir))
  end)
end

return support
