--- A reference to a checkpoint: a directory of files on this machine or in a store.
---
--- `Checkpoint("/path")`, `Checkpoint("s3://bucket/path")`, `Checkpoint(path, filesystem)`. Nothing
--- is read when it is made. Its files come by `to_directory` and `as_directory`, which fetch once
--- however many processes ask at a time.

jit.off(true, true)
local class = require "ckpt.base.class"
local directory = require "ckpt.ray.checkpoint.checkpoint_directory"
local finally = require "ckpt.base.finally"
local fs = require "ckpt.prims.fs"
local log = require "ckpt.base.log"
local metadata = require "ckpt.ray.checkpoint.checkpoint_metadata"
local migration = require "ckpt.ray.checkpoint.checkpoint_migration"
local misuse = require "ckpt.base.misuse"
local nonce = require "ckpt.base.nonce"
local octets = require "ckpt.base.octets"
local plain_json = require "ckpt.base.plain_json"
local readers = require "ckpt.ray.checkpoint.checkpoint_readers"
local source = require "ckpt.ray.checkpoint.checkpoint_source"
local store = require "ckpt.store.store"

---@class ckpt.Checkpoint: ckpt.Class
---@field path string on its filesystem, without a scheme
---@field filesystem ckpt.Filesystem
---@field id string 32 hexadecimal digits; the same in a copy by `serialize`
---@overload fun(path: string, filesystem?: ckpt.Filesystem): ckpt.Checkpoint
local Checkpoint = class("Checkpoint")

local NOT_A_PATH = "a Checkpoint is no path: its to_directory() or as_directory(fn) give one"

-- A text, or an object that stands for one.
local function text_of(value, what)
  if class.is(value, Checkpoint) then misuse(NOT_A_PATH) end
  local meta = type(value) ~= "string" and getmetatable(value)
  local text = meta and meta.__tostring and tostring(value) or value
  if type(text) ~= "string" then
    misuse(("%s is a %s: give a text"):format(what, type(value)))
  end
  if text:find("%z") then misuse(what .. " has a NUL byte in it") end
  return text
end

local function check_filesystem(filesystem)
  if type(filesystem) ~= "table" or type(filesystem.type_name) ~= "string"
    or (not filesystem.is_local and type(filesystem.uri) ~= "function") then
    misuse("Checkpoint: a filesystem is a table with type_name, is_local and uri(self, path), as "
      .. "ckpt.store.resolve gives it")
  end
end

--- Makes one. With a filesystem the path is taken as it is written; without, both come from the
--- path, which is absolute, begins with "~", or is a URI.
---@param path string|table a text, or an object whose tostring is one
---@param filesystem? ckpt.Filesystem
function Checkpoint:init(path, filesystem)
  path = text_of(path, "Checkpoint: the path")
  if path == "" then
    misuse("Checkpoint: the path is empty: name a directory or a URI")
  end
  if filesystem ~= nil then
    check_filesystem(filesystem)
  else
    local found, at = store.resolve(path)
    if not found then misuse("Checkpoint: " .. at) end
    filesystem, path = found, at
  end
  self.path, self.filesystem, self.id = path, filesystem, nonce()
end

--- Makes one of a directory on this machine, whether it is there or not; the path stays as it is
--- written.
---@param path string
---@return ckpt.Checkpoint
function Checkpoint.from_directory(path)
  path = text_of(path, "Checkpoint.from_directory: the path")
  if path == "" then misuse("Checkpoint.from_directory: the path is empty") end
  return Checkpoint(path, assert(store.resolve("/")))
end

function Checkpoint:__tostring()
  return ("Checkpoint(filesystem=%s, path=%s)"):format(self.filesystem.type_name, self.path)
end

function Checkpoint.__concat() misuse(NOT_A_PATH) end

-- Checks that a method was called as one.
local function check_self(self, method)
  if class.is(self, Checkpoint) then return end
  misuse(("Checkpoint.%s: call it as checkpoint:%s(...)"):format(method, method))
end

-- ---- metadata ----

--- Returns the user's notes on the checkpoint. Without notes, or a directory: {}.
---@return any value an object of JSON as a rule; `null` in it is `ckpt.json.null`
---@return string? text
---@return string? name "EFORMAT": it is no JSON
function Checkpoint:get_metadata()
  check_self(self, "get_metadata")
  return metadata.get(self)
end

local function check_metadata(value, method)
  if type(value) == "table" then return end
  misuse(("Checkpoint:%s: the metadata is a %s, not a table"):format(method, type(value)))
end

--- Notes this instead of all earlier notes. The keys of a table are written in the order of their
--- bytes, or as `ckpt.json.order` says. A value that JSON has no place for raises, and changes
--- nothing.
---@param value table
---@return true? done
---@return string? text
---@return string? name "ENOENT": there is no such directory
function Checkpoint:set_metadata(value)
  check_self(self, "set_metadata")
  check_metadata(value, "set_metadata")
  local done, text, name = metadata.set(self, value)
  if not done and not name then misuse(text) end
  return done, text, name
end

--- Notes these keys and leaves the others as they are, also those that somebody else notes at the
--- same time. Values are replaced, not merged.
---@param value table
---@return true? done
---@return string? text
---@return string? name "EFORMAT": what is there is no object
function Checkpoint:update_metadata(value)
  check_self(self, "update_metadata")
  check_metadata(value, "update_metadata")
  local done, text, name = metadata.update(self, value)
  if not done and not name then misuse(text) end
  return done, text, name
end

-- ---- its files ----

-- Thread -> the checkpoint that as_directory fetches in it, to read only.
local fetching = setmetatable({}, { __mode = "k" })
local function thread() return coroutine.running() or fetching end

-- Fetches for a reader as to_directory does, which may be somebody's own.
local function fetch_to_read(self)
  local here = thread()
  local before = fetching[here]
  fetching[here] = self
  return finally(function() fetching[here] = before end, function() return self:to_directory() end)
end

--- Puts the files into a directory, which the caller owns from then on. Files that are complete
--- there already are not copied again. If another process is at work on that directory, waits for
--- it.
---@param path? string default: a temporary directory of this object, the same each time
---@return string? path normalized
---@return string? text
---@return string? name
function Checkpoint:to_directory(path)
  check_self(self, "to_directory")
  if path == nil then
    return directory.provide_temporary(self, fetching[thread()] ~= self)
  end
  local target = fs.normalize(fs.expand(text_of(path, "Checkpoint:to_directory: the path")))
  return directory.provide(self, { target = target, keeps = true, joins = false })
end

---@class ckpt.CheckpointHandle: ckpt.Class
---@field path string the directory: not to be written to
local Handle = class("CheckpointHandle")

--- Ends the use of the directory. The last reader removes it, if it was fetched for reading. A
--- second call does nothing.
function Handle:close()
  local reader = self.reader
  self.reader = nil
  if reader then readers.leave(reader) end
end

-- Userdata have finalizers in this Lua, tables have none. It is made after the lock, so that it
-- goes before it when all ends at once.
local function guard(handle, reader)
  handle.reader, handle.guard = reader, newproxy(true)
  getmetatable(handle.guard).__gc = function()
    if not handle.reader then return end
    log.warn(("the directory %s was never closed"):format(handle.path))
    handle:close()
  end
end

--- Does as `as_directory`, for code that cannot be put into one function: a handle with `path` and
--- `close()`. One that is forgotten is closed when it is collected.
---@return ckpt.CheckpointHandle?
---@return string? text
---@return string? name
function Checkpoint:open_directory()
  check_self(self, "open_directory")
  local handle = Handle()
  if self.filesystem.is_local then
    local good, why, code = source.check(self.path)
    if not good then return nil, why, code end
    handle.path = self.path
    return handle
  end
  local reader, text, name = readers.enter(directory.temporary(self.id))
  if not reader then return nil, text, name end
  local fine, path, why, code = pcall(fetch_to_read, self)
  if fine and path then
    handle.path = path
    guard(handle, reader)
    return handle
  end
  readers.leave(reader)
  if not fine then error(path, 0) end
  return nil, why, code
end

--- Calls a function with a directory that has the files. A local checkpoint's own directory is
--- given as it is; others are fetched to a temporary one, which all readers share and the last one
--- removes. Nobody may write to it.
---@param fn fun(path: string): any
---@return any ... what the function returned; nil, text, name if the files could not be fetched
function Checkpoint:as_directory(fn)
  check_self(self, "as_directory")
  if type(fn) ~= "function" then
    misuse("Checkpoint:as_directory: it takes a function(path), not a " .. type(fn))
  end
  local handle, text, name = self:open_directory()
  if not handle then return nil, text, name end
  return finally(function() handle:close() end, fn, handle.path)
end

-- ---- copies for other processes ----

--- Returns a text that stands for this object in another process: the same id, so that both share
--- one temporary directory.
---@return string
function Checkpoint:serialize()
  check_self(self, "serialize")
  local filesystem = self.filesystem
  return plain_json.encode {
    id = self.id, path = octets.escape(self.path), filesystem = filesystem.type_name,
    uri = not filesystem.is_local and octets.escape(filesystem:uri(self.path)) or nil,
  }
end

-- The filesystem of a copy, found again by its URI.
local function find_filesystem(copy)
  local found, text = store.resolve(copy.uri and octets.unescape(copy.uri) or "/")
  if not found then misuse("Checkpoint.deserialize: " .. text) end
  if found.type_name ~= copy.filesystem then
    misuse(("Checkpoint.deserialize: its filesystem is of the kind %s, which no URI stands for: "
      .. "give it as the second argument"):format(tostring(copy.filesystem)))
  end
  return found
end

--- Returns the object of a text that `serialize` made.
---@param text string
---@param filesystem? ckpt.Filesystem needed for one that no URI stands for
---@return ckpt.Checkpoint
function Checkpoint.deserialize(text, filesystem)
  if type(text) ~= "string" then
    misuse("Checkpoint.deserialize: it takes a text, not a " .. type(text))
  end
  local copy = plain_json.decode(text)
  local id = type(copy) == "table" and copy.id
  if type(id) ~= "string" or not id:find("^%x+$") or #id ~= 32 or type(copy.path) ~= "string" then
    misuse("Checkpoint.deserialize: this is no text of Checkpoint:serialize()")
  end
  local path = octets.unescape(copy.path)
  local checkpoint = Checkpoint(path, filesystem or find_filesystem(copy))
  checkpoint.id = id
  return checkpoint
end

-- From here on an unknown name is a mistake, told as such.
getmetatable(Checkpoint).__index = function(_, name) migration.refuse(name) end

return Checkpoint
