--- The base of all syncers, which move a directory to a store and back. A syncer brings sync_up,
--- sync_down and delete; this class adds the period (`*_if_needed`), waiting with retries, and the
--- check of the place where it writes to.
---
---     local copies = ckpt.Syncer {
---       sync_period = 60,
---       sync_up = function(self, local_dir, remote_dir, exclude) ... return true end,
---       sync_down = function(self, remote_dir, local_dir, exclude) ... return true end,
---       delete = function(self, remote_dir) ... return true end,
---     }
---
--- The three answer true when a sync was launched (or is done already), false when it was refused,
--- and nil, text, "ENAME" when it failed. A syncer of jobs is easier made with BackgroundSyncer.

jit.off(true, true)
local class = require "ckpt.base.class"
local clock = require "ckpt.base.clock"
local defaults = require "ckpt.ray.sync.sync_defaults"
local duration = require "ckpt.base.duration"
local job = require "ckpt.job.job"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"
local store = require "ckpt.store.store"

---@class ckpt.SyncerOptions
---@field sync_period? number seconds between two syncs of *_if_needed; 300
---@field sync_timeout? number seconds after which a transfer is given up, 1800; 0: never, and a
---request waits for the transfer before it

-- luacheck: no max line length (LuaLS wants the type of a function in one line)

---@class ckpt.Syncer: ckpt.Class
---@field sync_period number
---@field sync_timeout number
---@field last_sync_up_time number of *_if_needed, by clock.monotonic(); -math.huge: never
---@field last_sync_down_time number
---@field sync_up fun(self, local_dir: string, remote_dir: string, exclude?: string[]): boolean?, string?, string?
---@field sync_down fun(self, remote_dir: string, local_dir: string, exclude?: string[]): boolean?, string?, string?
---@field delete fun(self, remote_dir: string): boolean?, string?, string?
---@overload fun(options?: ckpt.SyncerOptions|table): ckpt.Syncer
local Syncer = class("Syncer")

local DUTIES = { "sync_up", "sync_down", "delete" }

-- A retry cannot mend these: they are told at once.
local PERMANENT = {
  EINVAL = true, EACCESS = true, ENOSTORE = true, EUNSUPPORTED = true,
  EFORMAT = true, EVERSION = true, ELIMIT = true, ECANCELED = true,
}

local function seconds_of(options, name)
  local value = options[name]
  if value == nil then return defaults[name] end
  return duration.option(value, name)
end

-- The members that the library looks at; a syncer may have others of its own.
local SETTINGS = { sync_period = true, sync_timeout = true, queue = true }
local METHODS = {
  sync_up = true, sync_down = true, delete = true, wait = true, retry = true, close = true,
  validate_upload_dir = true, sync_up_command = true, sync_down_command = true,
  delete_command = true,
}

-- One that is close to a name of the library is misspelt.
local function check_names(options)
  for name, value in pairs(options) do
    local known = type(value) == "function" and METHODS or SETTINGS
    local meant = not SETTINGS[name] and not METHODS[name] and options_of.meant(name, known)
    if meant then
      misuse(("a syncer has no member `%s` (did you mean `%s`?)"):format(name, meant))
    end
  end
end

--- Makes a syncer. The members of `options` beside the two numbers become the object's: functions
--- are its methods.
---@param options? table
function Syncer:init(options)
  if options ~= nil and (type(options) ~= "table" or getmetatable(options)) then
    misuse("a syncer is made from a plain table of options; for a class of your own, extend Syncer")
  end
  options = options or {}
  check_names(options)
  for name, value in pairs(options) do self[name] = value end
  self.sync_period = seconds_of(options, "sync_period")
  self.sync_timeout = seconds_of(options, "sync_timeout")
  for _, duty in ipairs(DUTIES) do
    if type(self[duty]) ~= "function" then
      misuse(("a syncer needs a function `%s`: none was given"):format(duty))
    end
  end
  Syncer.reset(self)
end

--- Tells whether `value` can be used as a syncer: a table, of this class or any other, that has the
--- three functions.
---@param value any
---@return boolean
function Syncer.is(value)
  if type(value) ~= "table" then return false end
  for _, duty in ipairs(DUTIES) do
    if type(value[duty]) ~= "function" then return false end
  end
  return true
end

--- Returns a syncer of another class with the additions of this class: `value` itself if it is a
--- Syncer.
---@param value ckpt.Syncer|table anything that `Syncer.is`
---@return ckpt.Syncer
function Syncer.of(value)
  if class.is(value, Syncer) then return value end
  if not Syncer.is(value) then
    misuse("a syncer is a table with sync_up, sync_down and delete, not " .. tostring(value))
  end
  local calls = {}
  for _, name in ipairs { "sync_up", "sync_down", "delete", "retry", "wait", "close",
    "validate_upload_dir" } do
    calls[name] = value[name] and function(_, ...) return value[name](value, ...) end
  end
  return Syncer(calls)
end

--- Launches the last sync once more. A syncer that does not bring this has nothing to repeat.
---@return boolean? launched
---@return string? text
---@return string? name
function Syncer.retry(_) end

--- Waits for the launched sync. A syncer that does not bring this is done when its sync returns.
---@return boolean? # true; nothing if nothing runs
---@return string? text
---@return string? name
function Syncer.wait(_) end

-- Makes the key of two places: each two of them have a period of their own, since one says nothing
-- of another.
local function pair(from, to) return tostring(from) .. "\n" .. tostring(to) end

local function is_due(self, kind, key, now)
  return now - (self._launches[kind][key] or -math.huge) >= self.sync_period
end

--- Counts a sync of two places for their period; for subclasses.
---@param kind "up"|"down"
---@param from string
---@param to string
---@param now number by clock.monotonic()
function Syncer:count_launch(kind, from, to, now)
  local launches = self._launches[kind]
  for key in pairs(launches) do
    if is_due(self, kind, key, now) then launches[key] = nil end
  end
  launches[pair(from, to)] = now
  self[("last_sync_%s_time"):format(kind)] = now
end

--- Calls sync_up, if the last one of these two by this function is at least sync_period ago. Only a
--- launch counts: after a refusal, a failure or an error the next call tries again.
---@param local_dir string
---@param remote_dir string
---@param exclude? string[]
---@return boolean? # what sync_up answers; nothing if it is not due
---@return string? text
---@return string? name
function Syncer:sync_up_if_needed(local_dir, remote_dir, exclude)
  local now = clock.monotonic()
  if not is_due(self, "up", pair(local_dir, remote_dir), now) then return end
  local launched, text, name = self:sync_up(local_dir, remote_dir, exclude)
  if launched then self:count_launch("up", local_dir, remote_dir, now) end
  return launched, text, name
end

--- Calls sync_down, if the last one of these two by this function is at least sync_period ago; as
--- sync_up_if_needed, with a time of its own.
---@param remote_dir string
---@param local_dir string
---@param exclude? string[]
---@return boolean?
---@return string? text
---@return string? name
function Syncer:sync_down_if_needed(remote_dir, local_dir, exclude)
  local now = clock.monotonic()
  if not is_due(self, "down", pair(remote_dir, local_dir), now) then return end
  local launched, text, name = self:sync_down(remote_dir, local_dir, exclude)
  if launched then self:count_launch("down", remote_dir, local_dir, now) end
  return launched, text, name
end

-- Waits as a function that may raise, as that of a syncer which was written for Ray.
local function waited(self)
  local fine, done, text, name = pcall(self.wait, self)
  if fine and done == false and text == nil then
    return nil, "the syncer's wait answered false", "EIO"
  elseif fine then
    return done, text, name
  end
  if job.cancelled() then error(done, 0) end -- it is this task that is to end
  local has_text, said = pcall(tostring, done)
  return nil, has_text and said or "an error that has no text", "EINTERNAL"
end

--- Waits, and when the sync has failed or timed out, sleeps and launches it again, up to
--- `max_retries` waits. A `wait` that raises, or answers false, has failed. A failure that no retry
--- can mend (no such store, no permission) is not tried again.
---@param max_retries? integer waits in all, at least 1; 3
---@param backoff_s? number seconds of sleep before each launch; 5
---@return true?
---@return string? text
---@return string? name of the last failure
function Syncer:wait_or_retry(max_retries, backoff_s)
  max_retries, backoff_s = max_retries or defaults.max_retries, backoff_s or defaults.backoff_s
  if type(max_retries) ~= "number" or max_retries < 1 then
    misuse("wait_or_retry: max_retries must be at least 1, not " .. tostring(max_retries))
  end
  duration.option(backoff_s, "wait_or_retry: backoff_s")
  for try = 1, max_retries do
    local done, text, name = waited(self)
    if done or text == nil then return true end
    if PERMANENT[name] then return nil, "Failed sync, no retry can help: " .. text, name end
    if try == max_retries then
      return nil, ("Failed sync even after %d retries: %s"):format(max_retries, text), name
    end
    log.error(("Caught sync error: %s. Retrying after sleeping for %s seconds...")
      :format(text, backoff_s))
    clock.sleep(backoff_s)
    local launched, why, cause = self:retry()
    if launched == nil and why then return nil, why, cause end
  end
end

--- Makes the next call of either *_if_needed due. A running transfer goes on.
function Syncer:reset()
  self.last_sync_up_time = -math.huge
  self.last_sync_down_time = -math.huge
  self._launches = { up = {}, down = {} }
end

-- A moment of clock.monotonic() means nothing to another process; the time of day does.
local function to_time_of_day(moment)
  if moment == -math.huge then return nil end
  return clock.now() - (clock.monotonic() - moment)
end

local function from_time_of_day(time)
  if time == nil then return -math.huge end
  return clock.monotonic() - math.max(clock.now() - time, 0)
end

local function map(times, convert)
  local converted = {}
  for key, time in pairs(times or {}) do converted[key] = convert(time) end
  return converted
end

--- Returns the state by which another process goes on with this syncer: numbers, texts and tables
--- only.
---@return table
function Syncer:state()
  return {
    sync_period = self.sync_period,
    sync_timeout = self.sync_timeout,
    last_sync_up = to_time_of_day(self.last_sync_up_time),
    last_sync_down = to_time_of_day(self.last_sync_down_time),
    launches_up = map(self._launches.up, to_time_of_day),
    launches_down = map(self._launches.down, to_time_of_day),
  }
end

--- Takes over the result of state(). A transfer that runs here is left alone.
---@param state table
function Syncer:restore(state)
  if type(state) ~= "table" then
    misuse("restore: it takes the table that state() gave, not a " .. type(state))
  end
  self.sync_period = state.sync_period or self.sync_period
  self.sync_timeout = state.sync_timeout or self.sync_timeout
  self.last_sync_up_time = from_time_of_day(state.last_sync_up)
  self.last_sync_down_time = from_time_of_day(state.last_sync_down)
  self._launches = {
    up = map(state.launches_up, from_time_of_day),
    down = map(state.launches_down, from_time_of_day),
  }
end

--- Does nothing; for a syncer that holds something.
function Syncer.close(_) end

--- Checks that a syncer can write to this place: none, `file://`, or a URI of a store that is
--- known. Reads no network. Anything else raises.
---@param upload_dir? string
---@return true
function Syncer.validate_upload_dir(_, upload_dir)
  if upload_dir == nil or upload_dir == "" then return true end
  if type(upload_dir) ~= "string" then
    misuse("upload_dir is a URI, not a " .. type(upload_dir))
  end
  if upload_dir:sub(1, 7) == "file://" then return true end
  local filesystem, text = store.resolve(upload_dir)
  if filesystem and not filesystem.is_local then return true end
  misuse(("no storage is known for the upload directory `%s`: %s"):format(upload_dir,
    filesystem and "it is a path on this machine. Write file://PATH if that is meant"
    or text))
end

return Syncer
