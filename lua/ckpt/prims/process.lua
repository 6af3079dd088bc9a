--- The identity of a process, by which another one can tell that it is dead. A pid alone names
--- nobody: it is used again. Together with the time of its start and the boot of the machine it
--- does.

jit.off(true, true)
local ffi = require "ffi"
local fs = require "ckpt.prims.fs"

ffi.cdef "unsigned getuid(void);"

local process = {}

---@class ckpt.ProcessIdentity
---@field pid integer
---@field start string clock ticks from the boot to its start
---@field boot string id of the boot
---@field namespace string the pids that it lives among (a container has its own)

local function first_line(path)
  local text = fs.read(path)
  return text and text:match("[^\n]+")
end

-- Returns the time of the start, nil if there is no such process. A zombie counts as none.
local function start_of(pid)
  local line = first_line(("/proc/%d/stat"):format(pid))
  -- The name, in parentheses, may have blanks and parentheses in it.
  local state, rest = (line or ""):match("^.*%) (%a) (.*)$")
  if not state or state == "Z" or state == "X" then return nil end
  local fields = {}
  for field in rest:gmatch("%S+") do fields[#fields + 1] = field end
  return fields[19]
end

--- Returns the id of this boot of the machine, nil if the system does not tell.
---@return string?
function process.boot() return first_line("/proc/sys/kernel/random/boot_id") end

--- Returns the pid of this process. It is asked each time: a program may fork.
---@return integer
function process.pid() return tonumber((fs.readlink("/proc/self"))) or 0 end

--- Returns the number of this user.
---@return integer
function process.user() return ffi.C.getuid() end

--- Returns the identity of this process; nil where the system does not tell.
---@return ckpt.ProcessIdentity?
function process.identity()
  local pid = process.pid()
  local start, boot = start_of(pid), process.boot()
  local namespace = fs.readlink("/proc/self/ns/pid")
  if not (start and boot and namespace) then return nil end
  return { pid = pid, start = start, boot = boot, namespace = namespace }
end

--- Tells whether a process is dead for certain. It is false, too, when nobody can tell from here:
--- for a process of another container, or an identity that lacks something.
---@param identity table as `identity()` gave it, perhaps to another process
---@return boolean
function process.is_dead(identity)
  local here = process.identity()
  if not here or type(identity) ~= "table" then return false end
  if type(identity.pid) ~= "number" or type(identity.start) ~= "string" then return false end
  if type(identity.boot) ~= "string" then return false end
  if identity.boot ~= here.boot then return true end
  if identity.namespace ~= here.namespace then return false end
  return start_of(identity.pid) ~= identity.start
end

return process
