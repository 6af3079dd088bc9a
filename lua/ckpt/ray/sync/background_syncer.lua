--- A syncer whose transfers are jobs: they run while the script goes on, one at a time, and are
--- given up after sync_timeout. A subclass (or a table) brings the commands; each starts a job and
--- returns it:
---
---     local Copies = ckpt.BackgroundSyncer:extend("Copies")
---     function Copies:sync_up_command(local_dir, remote_dir, exclude) return a_job end
---     function Copies:sync_down_command(remote_dir, local_dir, exclude) return a_job end
---     function Copies:delete_command(remote_dir) return a_job end
---
--- A request that finds a transfer running is answered false, with a warning. A `sync_up` is
--- remembered: it runs once the transfer is over, which this object sees when one of its functions
--- is called; a newer one takes its place. `queue = "skip"` forgets it instead. A `sync_down` or a
--- `delete` is refused and forgotten: run later, it would meet what was written in between.

jit.off(true, true)
local BackgroundProcess = require "ckpt.ray.sync.background_process"
local Syncer = require "ckpt.ray.sync.syncer"
local clock = require "ckpt.base.clock"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"

---@class ckpt.BackgroundSyncerOptions: ckpt.SyncerOptions
---@field queue? "newest"|"skip" what becomes of a sync_up while a transfer runs; "newest"

---@class ckpt.BackgroundSyncer: ckpt.Syncer
---@field queue "newest"|"skip"
---@overload fun(options?: ckpt.BackgroundSyncerOptions|table): ckpt.BackgroundSyncer
local BackgroundSyncer = Syncer:extend("BackgroundSyncer")

-- Names each kind of command in messages.
local TITLES = {
  sync_up = function(c) return ("sync up of %s to %s"):format(c.local_dir, c.remote_dir) end,
  sync_down = function(c) return ("sync down of %s to %s"):format(c.remote_dir, c.local_dir) end,
  delete = function(c) return "deletion of " .. c.remote_dir end,
}

local function title(command) return TITLES[command.kind](command) end

---@param options? table
function BackgroundSyncer:init(options)
  Syncer.init(self, options)
  self.queue = self.queue or "newest"
  if self.queue ~= "newest" and self.queue ~= "skip" then
    misuse(('queue is "newest" or "skip", not %s'):format(tostring(self.queue)))
  end
end

local function copy_patterns(patterns)
  if patterns == nil then return nil end
  local fine, copy = type(patterns) == "table", {}
  for i, pattern in ipairs(fine and patterns or {}) do
    fine, copy[i] = fine and type(pattern) == "string", pattern
  end
  if not fine then misuse("exclude must be a list of patterns (texts)") end
  return copy
end

-- A command as plain data, so that it can be launched again, also by another process.
local function command_of(self, kind, local_dir, remote_dir, exclude)
  if type(self[kind .. "_command"]) ~= "function" then
    misuse(("this syncer cannot %s: it has no function `%s_command`"):format(kind, kind))
  end
  if type(local_dir) ~= "string" or type(remote_dir) ~= "string" then
    misuse(("%s: a directory is a text, not a %s"):format(kind,
      type(local_dir) ~= "string" and type(local_dir) or type(remote_dir)))
  end
  return {
    kind = kind, local_dir = local_dir, remote_dir = remote_dir, exclude = copy_patterns(exclude),
  }
end

-- A command that forgets to return its job would look like a transfer that is done already.
local function started(kind, ...)
  if (...) ~= nil or select(2, ...) ~= nil then return ... end
  return nil, ("%s_command returned nothing: return the job that it starts"):format(kind), "EINVAL"
end

local function launch(self, command)
  self._command = command
  self._process = BackgroundProcess(function()
    local start = self[command.kind .. "_command"]
    if command.kind == "sync_up" then
      return started(command.kind,
        start(self, command.local_dir, command.remote_dir, command.exclude))
    elseif command.kind == "sync_down" then
      return started(command.kind,
        start(self, command.remote_dir, command.local_dir, command.exclude))
    end
    return started(command.kind, start(self, command.remote_dir))
  end, title(command))
  self._process:start()
end

-- Empties the slot: waits for what is in it, at most to its timeout. Other tasks find it taken
-- until then.
local function collect(self)
  local process = self._process
  local result, text, name = process:wait(self.sync_timeout)
  if self._process == process then self._process = nil end
  if result == nil and text ~= nil then
    if name == "ETIMEOUT" then return nil, text, name end
    return nil, "Sync process failed: " .. text, name
  end
  return true
end

-- Does the same for a request that comes after: the failure of the old one is only told.
local function settle(self)
  if not self._process then return end
  local done, text = collect(self)
  if not done then log.warn("Last sync command failed: " .. text) end
end

-- Tells whether the slot is taken by a transfer that has time left.
local function busy(self)
  local process = self._process
  return process ~= nil and process:is_running()
    and clock.monotonic() - process:start_time() < self.sync_timeout
end

local function launch_waiting(self)
  local waiting = self._waiting
  self._waiting = nil
  local command = waiting.command
  if waiting.from_period then
    self:count_launch("up", command.local_dir, command.remote_dir, clock.monotonic())
  end
  launch(self, command)
end

-- Starts the remembered request if its turn has come.
local function advance(self)
  if not self._waiting or busy(self) then return end
  settle(self)
  launch_waiting(self)
end

local function remember(self, command)
  local skips = self.queue == "skip" or command.kind ~= "sync_up"
  local text = skips and "skipping %s" or "%s has to wait"
  log.warn("Last sync still in progress, " .. text:format(title(command)))
  if skips then return end
  local older = self._waiting and title(self._waiting.command)
  if older and older ~= title(command) then
    log.warn(("%s will not run: a newer request took its place"):format(older))
  end
  self._waiting = { command = command }
end

local function request(self, command)
  advance(self)
  if busy(self) then
    remember(self, command)
    return false
  end
  settle(self)
  launch(self, command)
  return true
end

--- Starts copying a directory to its remote place.
---@param local_dir string
---@param remote_dir string URI
---@param exclude? string[] patterns of what is left out
---@return boolean # false: another transfer runs
function BackgroundSyncer:sync_up(local_dir, remote_dir, exclude)
  local command = command_of(self, "sync_up", local_dir, remote_dir, exclude)
  return request(self, command)
end

--- Starts copying a remote place to a directory.
---@param remote_dir string URI
---@param local_dir string
---@param exclude? string[] patterns of what is left out
---@return boolean # false: another transfer runs
function BackgroundSyncer:sync_down(remote_dir, local_dir, exclude)
  local command = command_of(self, "sync_down", local_dir, remote_dir, exclude)
  return request(self, command)
end

--- Starts removing a remote place.
---@param remote_dir string URI
---@return boolean # false: another transfer runs
function BackgroundSyncer:delete(remote_dir)
  local command = command_of(self, "delete", "", remote_dir)
  return request(self, command)
end

--- Does as Syncer's; a request that had to wait counts from when it was launched.
---@param local_dir string
---@param remote_dir string
---@param exclude? string[]
---@return boolean?
---@return string? text
---@return string? name
function BackgroundSyncer:sync_up_if_needed(local_dir, remote_dir, exclude)
  local launched, text, name = Syncer.sync_up_if_needed(self, local_dir, remote_dir, exclude)
  if launched == false and self._waiting then self._waiting.from_period = true end
  return launched, text, name
end

--- Tells whether a transfer runs; does not wait for it. Starts the remembered request if its turn
--- has come.
---@return boolean
function BackgroundSyncer:is_running()
  advance(self)
  return self._process ~= nil and self._process:is_running()
end

--- Waits for the transfer, and for the one that waits for it; each at most to sync_timeout after
--- its start. The first failure is returned, and a request that still waits runs with the next
--- call.
---@return true? # nothing if nothing was launched
---@return string? text
---@return string? name "ETIMEOUT": it took too long, and has been stopped
function BackgroundSyncer:wait()
  local done
  while self._process or self._waiting do
    if self._process then
      local text, name
      done, text, name = collect(self)
      if not done then return nil, text, name end
    else
      launch_waiting(self)
    end
  end
  return done
end

--- Launches the last command once more, whichever it was. If one runs, it is waited for first.
---@return true?
---@return string? text
---@return string? name "EINVAL": there was none
function BackgroundSyncer:retry()
  if not self._command then return nil, "No sync command set, cannot retry.", "EINVAL" end
  if self._process and self._process:is_running() then settle(self) end
  launch(self, self._command)
  return true
end

local function copy_of(value)
  if type(value) ~= "table" then return value end
  local copy = {}
  for name, member in pairs(value) do copy[name] = copy_of(member) end
  return copy
end

--- Does as Syncer's, with the last command and the one that waits; the running transfer is not part
--- of it.
---@return table
function BackgroundSyncer:state()
  local state = Syncer.state(self)
  state.queue = self.queue
  state.command, state.waiting = copy_of(self._command), copy_of(self._waiting)
  return state
end

--- Takes over the result of state().
---@param state table
function BackgroundSyncer:restore(state)
  Syncer.restore(self, state)
  self.queue = state.queue or self.queue
  self._command, self._waiting = copy_of(state.command), copy_of(state.waiting)
end

return BackgroundSyncer
