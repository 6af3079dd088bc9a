--- What the specs of states share: a checkpoint path, the environment, states that say what was
--- asked of them.

local ckpt = require "ckpt"
local ffi = require "ffi"
local support = require "support"

ffi.cdef [[
  int setenv(const char *name, const char *value, int replace);
  int unsetenv(const char *name);
]]

local states = {}

--- Sets variables of this process; false: unset.
---@param variables table<string, string|false>
function states.environment(variables)
  for name, value in pairs(variables) do
    if value then
      ffi.C.setenv(name, value, 1)
    else
      ffi.C.unsetenv(name)
    end
  end
end

--- Puts a job's place into the environment.
---@param path? string
---@param restarts? string|integer nil: unset
---@param rank? string|integer
function states.job(path, restarts, rank)
  states.environment {
    ADAPTDL_CHECKPOINT_PATH = path or false,
    ADAPTDL_NUM_RESTARTS = restarts and tostring(restarts) or false,
    ADAPTDL_REPLICA_RANK = rank and tostring(rank) or false,
  }
end

--- A state that keeps a text, and notes its calls in `state.calls`.
states.Text = ckpt.State:extend("Text")

function states.Text:init(name, value, registry, calls)
  self.value, self.calls = value, calls or {}
  ckpt.State.init(self, name, registry)
end

function states.Text:sync() table.insert(self.calls, "sync") end

function states.Text:save(file)
  file:write(self.value)
  table.insert(self.calls, "save")
end

function states.Text:load(file)
  table.insert(self.calls, "load")
  self.value = file:read "*a"
end

--- Lays out a tree: { ["checkpoint-1/model"] = "text", ["checkpoint-2/"] = true }.
function states.lay(root, tree)
  for path, data in pairs(tree) do
    local full = root .. "/" .. path
    if data == true then
      assert(ckpt.fs.mkdirs(full))
    else
      assert(ckpt.fs.mkdirs(ckpt.fs.parent(full)))
      support.write(full, data)
    end
  end
end

--- What is below a path: { ["checkpoint-1/"] = true, ["checkpoint-1/model"] = "text" }. A commit
--- record is left out; the unique part of the staging directory's name becomes "?".
function states.tree(root)
  local tree = {}
  for _, entry in ipairs(assert(ckpt.fs.walk(root))) do
    local path = entry.path:gsub("^_checkpoint%.[^/]+", "_checkpoint.?")
    if not path:find("/%.commit$") then
      if entry.type == "directory" then
        tree[path .. "/"] = true
      else
        tree[path] = support.read(root .. "/" .. entry.path)
      end
    end
  end
  return tree
end

--- The lines that were logged, "level: text", with the root's name as "$ROOT".
function states.lines(log, root)
  local lines = {}
  for i, line in ipairs(log) do
    local text = line.text
    local at, last = text:find(root, 1, true)
    while at do
      text = text:sub(1, at - 1) .. "$ROOT" .. text:sub(last + 1)
      at, last = text:find(root, 1, true)
    end
    lines[i] = line.level .. ": " .. text
  end
  return lines
end

--- Runs `body(root, log)` with an empty root, the environment of a job's first start in it, and
--- all that is logged.
function states.with_root(body)
  local root = support.directory()
  local log, stop = ckpt.testing.capture_log()
  states.job(root)
  local fine, why = xpcall(body, debug.traceback, root, log)
  stop()
  states.job(nil)
  ckpt.Registry.default():close()
  os.execute("rm -rf '" .. root .. "'")
  if not fine then error(why, 0) end
end

--- A test: its body gets the root and what is logged.
---@param body fun(root: string, log: table)
function states.rooted(body)
  return function() states.with_root(body) end
end

return states
