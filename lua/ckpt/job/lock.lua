--- Locks between the processes of one host, held by the kernel: they end with their holder, however
--- it ends. Between hosts there are leases (`ckpt.lock.lease`).

jit.off(true, true)
local class = require "ckpt.base.class"
local clock = require "ckpt.base.clock"
local core = require "ckpt.core"
local duration = require "ckpt.base.duration"
local job = require "ckpt.job.job"
local misuse = require "ckpt.base.misuse"

local FIRST_NAP, LONGEST_NAP = 0.001, 0.05

---@class ckpt.Lock: ckpt.Class
local Lock = class("Lock")

function Lock:init(handle, path)
  self.handle, self.name = handle, path
end

--- Returns the path of its file.
---@return string
function Lock:path() return self.name end

--- Gives the lock up. The file stays: somebody may be waiting for it. A second call does nothing.
function Lock:release()
  if self.handle then core.lock.drop(self.handle) end
  self.handle = nil
end

---@return boolean # whether it was not released
function Lock:held() return self.handle ~= nil end

function Lock:__tostring()
  return ("Lock(%s%s)"):format(self.name, self.handle and "" or ", released")
end

---@class ckpt.lock
local lock = {}

local KNOWN = { shared = "boolean", timeout = "number" }

local function check(options)
  if type(options) ~= "table" then
    misuse("lock.take: the options are a " .. type(options) .. ", not a table")
  end
  for key, value in pairs(options) do
    local wanted = KNOWN[key]
    if not wanted then
      misuse("lock.take: unknown option " .. tostring(key) .. ": there are shared and timeout")
    end
    if type(value) ~= wanted then
      misuse(("lock.take: `%s` is a %s, not a %s"):format(key, type(value), wanted))
    end
  end
end

--- Locks a file, which is made if it is absent, for one holder or for all who share it. Two objects
--- of one process exclude each other, too.
---@param path string a file for this purpose alone; who holds it alone may remove it
---@param options? { shared?: boolean, timeout?: number } seconds to wait for it; nil: not at all,
---  math.huge: without limit
---@return ckpt.Lock? lock released with `release`, at the latest with its object; who waits in a
---  task lets the others go on
---@return string? text
---@return string? name "EHELD" without a timeout, "ETIMEOUT" with one
function lock.take(path, options)
  if type(path) ~= "string" or path:find("%z") then
    misuse("lock.take: the path is no text, or has a NUL byte in it")
  end
  check(options or {})
  local shared = options and options.shared or false
  local timeout = options and options.timeout
  if timeout then duration.limit(timeout, "lock.take: `timeout`") end
  local begin, nap = clock.monotonic(), FIRST_NAP
  while true do
    local handle, text, name = core.lock.try(path, shared)
    if handle then return Lock(handle, path) end
    if name ~= "EHELD" or not timeout then return nil, text, name end
    local left = begin + timeout - clock.monotonic()
    if left <= 0 then
      return nil, ("%s is still locked by another process after %g s"):format(path, timeout),
        "ETIMEOUT"
    end
    job.yield(math.min(nap, left)) -- the holder may be a task of this process
    nap = math.min(2 * nap, LONGEST_NAP)
  end
end

--- Takes a lease: a lock among all who reach a store, on whatever host, that ends when its
--- holder does not renew it. See lua/ckpt/job/lease.lua for what it promises.
---@param store ckpt.Store one with put_if_absent, get_tagged and replace_if
---@param key string of its object there, which stays
---@param options? { seconds?: number, owner?: string, timeout?: number } seconds: how long it lasts
---  without a renewal (60); owner: for people; timeout: how long to wait; nil: not at all, and
---  then one that was left behind is never found to be free
---@return ckpt.Lease?
---@return string? text
---@return string? name "EHELD" without a timeout, "ETIMEOUT" with one
function lock.lease(store, key, options)
  local held, text, name = require("ckpt.job.lease").take(store, key, options)
  return held, text, name
end

lock.Lock = Lock

return lock
