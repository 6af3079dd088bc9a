--- Leases: one holder at a time among all who reach a store, on whatever host. A lease is an object
--- that its holder renews; a process that finds one that does not change for its whole time takes
--- it over.
---
--- No clocks are compared: the holder counts from before its request was sent, the other one from
--- after it has seen the answer, each by its own clock. So the holder knows first that its time is
--- over (`valid`), as long as no clock runs much faster than another. A lease says who may begin;
--- it cannot stop a holder that does not ask.

jit.off(true, true)
local class = require "ckpt.base.class"
local clock = require "ckpt.base.clock"
local duration = require "ckpt.base.duration"
local job = require "ckpt.job.job"
local misuse = require "ckpt.base.misuse"
local nonce = require "ckpt.base.nonce"

local SECONDS = 60
local NAP_MAX = 5
local FREE = "-" -- the id of one that was released

local function format(id, seconds, owner)
  return ("ckpt-lease 1\nid %s\nbeat %s\nseconds %.3f\nowner %s\n"):format(id, nonce(), seconds,
    owner)
end

local function parse(data)
  local id, seconds, owner =
    data:match("^ckpt%-lease 1\nid (%S+)\nbeat %S+\nseconds (%d+%.?%d*)\nowner ([^\n]*)\n$")
  return id and { id = id, seconds = tonumber(seconds), owner = owner } or nil
end

---@class ckpt.Lease: ckpt.Class
local Lease = class("Lease")

function Lease:init(store, key, options)
  self.store, self.key = store, key
  self.seconds, self.owner = options.seconds or SECONDS, options.owner or "unnamed"
  self.id, self.expires = nonce(), nil
end

function Lease:__tostring() return ("Lease(%s in %s)"):format(self.key, tostring(self.store)) end

-- Returns the lease in the store; nil without a text if there is none.
local function look(self)
  local data, tag, name = self.store:get_tagged(self.key)
  if not data then
    if name == "ENOENT" then return nil end
    return nil, tag, name
  end
  local held = parse(data)
  if held then
    held.data, held.tag = data, tag
    return held
  end
  return nil, ("%s in %s is no lease: use another key"):format(self.key, tostring(self.store)),
    "EFORMAT"
end

-- True if another one was faster.
local function is_race(name) return name == "EEXISTS" or name == "ECONFLICT" or name == "ENOENT" end

-- Writes it over what has this tag (nil: over nothing).
local function write(self, tag, id)
  local sent = clock.monotonic()
  local data = format(id or self.id, self.seconds, self.owner)
  local done, text, name
  if tag then
    done, text, name = self.store:replace_if(self.key, data, tag)
  else
    done, text, name = self.store:put_if_absent(self.key, data)
  end
  if not done and is_race(name) then
    -- The other writer may be ourselves: the store has tried twice, and has met its own first try.
    local there = look(self)
    done = there and there.data == data
  end
  if done and not id then self.expires = sent + self.seconds end
  return done, text, name
end

local function lost_to(self, held)
  self.expires = nil
  return nil, ("the lease %s is lost to %s"):format(self.key, held and held.owner or "nobody"),
    "EFENCED"
end

--- Tells whether it is held as far as this object knows, without asking the store. Ask before each
--- action that must not be done twice.
---@return boolean
function Lease:valid() return self.expires ~= nil and clock.monotonic() < self.expires end

--- Extends it to its full time from now. Best done after a third of it.
---@return true?
---@return string? text
---@return string? name "EFENCED": somebody else has it, or has had it; others: it may be tried
---  again as long as it is valid
function Lease:renew()
  if not self.expires then return lost_to(self) end
  local held, text, name = look(self)
  if text then return nil, text, name end
  if not held or held.id ~= self.id then return lost_to(self, held) end
  local done
  done, text, name = write(self, held.tag)
  if done then return true end
  if is_race(name) then return lost_to(self) end
  return nil, text, name
end

--- Gives it up, so that another one need not wait. One that is lost already is left alone.
---@return true?
---@return string? text
---@return string? name
function Lease:release()
  local had = self.expires
  self.expires = nil
  if not had then return true end
  local held, text, name = look(self)
  if text then return nil, text, name end
  if not held or held.id ~= self.id then return true end
  local done
  done, text, name = write(self, held.tag, FREE)
  if done or is_race(name) then return true end
  return nil, text, name
end

local lease = { Lease = Lease }

local KNOWN = { seconds = "number", owner = "string", timeout = "number" }

local function check(store, key, options)
  if type(store) ~= "table" or type(store.get_tagged) ~= "function" then
    misuse("lock.lease: the first argument is a store (ckpt.store.open)")
  end
  if type(key) ~= "string" then misuse("lock.lease: the key is a " .. type(key)) end
  for name, value in pairs(options) do
    if not KNOWN[name] then
      misuse(("lock.lease: unknown option %s: there are seconds, owner and timeout"):format(
        tostring(name)))
    elseif type(value) ~= KNOWN[name] then
      misuse(("lock.lease: `%s` is a %s, not a %s"):format(name, type(value), KNOWN[name]))
    end
  end
  if options.timeout then duration.limit(options.timeout, "lock.lease: `timeout`") end
  local seconds = options.seconds
  if seconds and not (seconds >= 0.01 and seconds <= 1e9) then
    misuse("lock.lease: `seconds` is between 0.01 and 1e9")
  end
  if options.owner and options.owner:find("%c") then
    misuse("lock.lease: `owner` is one line without control characters")
  end
end

-- Tries once. true; false with the present holder's; or nil, text, name.
local function try(self, seen)
  local held, text, name = look(self)
  if text then return nil, text, name end
  local now = clock.monotonic()
  if held and held.data ~= seen.data then seen.data, seen.since = held.data, now end
  local free = not held or held.id == FREE or now >= seen.since + held.seconds
  if not free then return false, held end
  local done
  done, text, name = write(self, held and held.tag)
  if done then return true end
  if is_race(name) then return false, held end
  return nil, text, name
end

local function refused(self, held, timeout)
  local owner = held and held.owner or "somebody else"
  if timeout then
    return nil, ("the lease %s is still held by %s after %g s"):format(self.key, owner, timeout),
      "ETIMEOUT"
  end
  return nil, ("the lease %s is held by %s; one that is not renewed for %g s is taken over: "
    .. "wait for it with a timeout"):format(self.key, owner, held and held.seconds or self.seconds),
    "EHELD"
end

--- Takes a lease; see `ckpt.lock.lease`.
---@param store ckpt.Store
---@param key string
---@param options? table
---@return ckpt.Lease?
---@return string? text
---@return string? name
function lease.take(store, key, options)
  options = options or {}
  check(store, key, options)
  local self = Lease(store, key, options)
  local begin, timeout, seen = clock.monotonic(), options.timeout, {}
  while true do
    local done, held, name = try(self, seen)
    if done then return self end
    if done == nil then return nil, held, name end
    local left = begin + (timeout or 0) - clock.monotonic()
    if left <= 0 then return refused(self, held, timeout) end
    job.yield(math.min(left, NAP_MAX, (held and held.seconds or self.seconds) / 10))
  end
end

return lease
