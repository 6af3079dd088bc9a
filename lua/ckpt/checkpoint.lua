--- A reference to a checkpoint: a directory of files on this machine or in a store.
---
--- `Checkpoint("/path")`, `Checkpoint("s3://bucket/path")`, `Checkpoint(path, filesystem)`. Nothing
--- is read when it is made. Its files come by `to_directory` and `as_directory`, which fetch once
--- however many processes ask at a time.

local class = require "ckpt.class"
local directory = require "ckpt.checkpoint_directory"
local fs = require "ckpt.fs"
local json = require "ckpt.json"
local log = require "ckpt.log"
local metadata = require "ckpt.checkpoint_metadata"
local migration = require "ckpt.checkpoint_migration"
local nonce = require "ckpt.nonce"
local octets = require "ckpt.octets"
local readers = require "ckpt.checkpoint_readers"
local source = require "ckpt.checkpoint_source"
local store = require "ckpt.store"

---@class ckpt.Checkpoint: ckpt.Class
---@field path string on its filesystem, without a scheme
---@field filesystem ckpt.Filesystem
---@field id string 32 hexadecimal digits; the same in a copy by `serialize`
---@overload fun(path: string, filesystem?: ckpt.Filesystem): ckpt.Checkpoint
local Checkpoint = class("Checkpoint")

local NOT_A_PATH = "a Checkpoint is no path: its to_directory() or as_directory(fn) give one"

-- A text, or an object that stands for one. `level` is that of the user's line.
local function text_of(value, what, level)
  if class.is(value, Checkpoint) then error(NOT_A_PATH, level + 1) end
  local meta = type(value) ~= "string" and getmetatable(value)
  local text = meta and meta.__tostring and tostring(value) or value
  if type(text) ~= "string" then
    error(("%s is a %s: give a text"):format(what, type(value)), level + 1)
  end
  if text:find("%z") then error(what .. " has a NUL byte in it", level + 1) end
  return text
end

local function check_filesystem(filesystem, level)
  if type(filesystem) ~= "table" or type(filesystem.type_name) ~= "string"
    or (not filesystem.is_local and type(filesystem.uri) ~= "function") then
    error("Checkpoint: a filesystem is a table with type_name, is_local and uri(self, path), as "
      .. "ckpt.store.resolve gives it", level + 1)
  end
end

--- Makes one. With a filesystem the path is taken as it is written; without, both come from the
--- path, which is absolute, begins with "~", or is a URI. Items 3-9.
---@param path string|table a text, or an object whose tostring is one
---@param filesystem? ckpt.Filesystem
function Checkpoint:init(path, filesystem)
  path = text_of(path, "Checkpoint: the path", 3)
  if path == "" then
    error("Checkpoint: the path is empty: name a directory or a URI", 3)
  end
  if filesystem ~= nil then
    check_filesystem(filesystem, 3)
  else
    local found, at = store.resolve(path)
    if not found then error("Checkpoint: " .. at, 3) end
    filesystem, path = found, at
  end
  self.path, self.filesystem, self.id = path, filesystem, nonce()
end

--- Of a directory on this machine, whether it is there or not; the path stays as it is written
--- (item 10).
---@param path string
---@return ckpt.Checkpoint
function Checkpoint.from_directory(path)
  path = text_of(path, "Checkpoint.from_directory: the path", 2)
  if path == "" then error("Checkpoint.from_directory: the path is empty", 2) end
  return Checkpoint(path, assert(store.resolve("/")))
end

function Checkpoint:__tostring()
  return ("Checkpoint(filesystem=%s, path=%s)"):format(self.filesystem.type_name, self.path)
end

function Checkpoint.__concat() error(NOT_A_PATH, 2) end

-- What a method was called with, if it was called as one.
local function check_self(self, method)
  if class.is(self, Checkpoint) then return end
  error(("Checkpoint.%s: call it as checkpoint:%s(...)"):format(method, method), 3)
end

-- ---- metadata ----

--- What the user noted with the checkpoint. Nothing noted, or no such directory: {}. Items 18, 19,
--- 28, 29, 31.
---@return any value an object of JSON as a rule; `null` in it is `ckpt.json.null`
---@return string? text
---@return string? name "EFORMAT": it is no JSON
function Checkpoint:get_metadata()
  check_self(self, "get_metadata")
  return metadata.get(self)
end

local function check_metadata(value, method)
  if type(value) == "table" then return end
  error(("Checkpoint:%s: the metadata is a %s, not a table"):format(method, type(value)), 3)
end

--- Notes this instead of all that was noted. The keys of a table are written in the order of their
--- bytes, or as `ckpt.json.order` says. A value that JSON has no place for raises, and changes
--- nothing. Items 20, 23-25, 30.
---@param value table
---@return true? done
---@return string? text
---@return string? name "ENOENT": there is no such directory
function Checkpoint:set_metadata(value)
  check_self(self, "set_metadata")
  check_metadata(value, "set_metadata")
  local done, text, name = metadata.set(self, value)
  if not done and not name then error(text, 2) end
  return done, text, name
end

--- Notes these keys and leaves the others as they are, also those that somebody else notes at the
--- same time. Values are replaced, not merged. Items 21, 22, 29.
---@param value table
---@return true? done
---@return string? text
---@return string? name "EFORMAT": what is there is no object
function Checkpoint:update_metadata(value)
  check_self(self, "update_metadata")
  check_metadata(value, "update_metadata")
  local done, text, name = metadata.update(self, value)
  if not done and not name then error(text, 2) end
  return done, text, name
end

-- ---- its files ----

--- Puts the files into a directory, which the caller owns from then on. What is complete there
--- already is not copied again. If another process is at work on that directory, waits for it.
--- Items 33-45.
---@param path? string default: a temporary directory of this object, the same each time
---@return string? path normalized
---@return string? text
---@return string? name
function Checkpoint:to_directory(path)
  check_self(self, "to_directory")
  if path == nil then return directory.provide_temporary(self, true) end
  local target = fs.normalize(fs.expand(text_of(path, "Checkpoint:to_directory: the path", 2)))
  return directory.provide(self, { target = target, keeps = true, joins = false })
end

---@class ckpt.CheckpointHandle: ckpt.Class
---@field path string the directory: not to be written to
local Handle = class("CheckpointHandle")

--- Ends the use of the directory. The last one who does removes it, if it was fetched for reading.
--- A second call does nothing.
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

--- As `as_directory`, for code that cannot be put into one function: a handle with `path` and
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
  local fine, path, why, code = pcall(directory.provide_temporary, self, false)
  if fine and path then
    handle.path = path
    guard(handle, reader)
    return handle
  end
  readers.leave(reader)
  if not fine then error(path, 0) end
  return nil, why, code
end

-- Ends the use, whatever became of the function.
local function finish(handle, fine, ...)
  handle:close()
  if not fine then error((...), 0) end
  return ...
end

--- Calls a function with a directory that has the files. A local checkpoint's own directory is
--- given as it is; others are fetched to a temporary one, which all readers share and the last one
--- removes. Nobody may write to it. Items 51-67.
---@param fn fun(path: string): any
---@return any ... what the function returned; nil, text, name if the files could not be fetched
function Checkpoint:as_directory(fn)
  check_self(self, "as_directory")
  if type(fn) ~= "function" then
    error("Checkpoint:as_directory: it takes a function(path), not a " .. type(fn), 2)
  end
  local handle, text, name = self:open_directory()
  if not handle then return nil, text, name end
  return finish(handle, pcall(fn, handle.path))
end

-- ---- copies for other processes ----

--- A text that stands for this object in another process: the same id, so that both share one
--- temporary directory (items 12, 39).
---@return string
function Checkpoint:serialize()
  check_self(self, "serialize")
  local filesystem = self.filesystem
  return assert(json.encode {
    id = self.id, path = octets.escape(self.path), filesystem = filesystem.type_name,
    uri = not filesystem.is_local and octets.escape(filesystem:uri(self.path)) or nil,
  })
end

-- The filesystem of a copy, found again by its URI.
local function find_filesystem(copy)
  local found, text = store.resolve(copy.uri and octets.unescape(copy.uri) or "/")
  if not found then error("Checkpoint.deserialize: " .. text, 3) end
  if found.type_name ~= copy.filesystem then
    error(("Checkpoint.deserialize: its filesystem is of the kind %s, which no URI stands for: "
      .. "give it as the second argument"):format(tostring(copy.filesystem)), 3)
  end
  return found
end

--- The object of a text that `serialize` made.
---@param text string
---@param filesystem? ckpt.Filesystem needed for one that no URI stands for
---@return ckpt.Checkpoint
function Checkpoint.deserialize(text, filesystem)
  if type(text) ~= "string" then
    error("Checkpoint.deserialize: it takes a text, not a " .. type(text), 2)
  end
  local copy = json.decode(text)
  local id = type(copy) == "table" and copy.id
  if type(id) ~= "string" or not id:find("^%x+$") or #id ~= 32 or type(copy.path) ~= "string" then
    error("Checkpoint.deserialize: this is no text of Checkpoint:serialize()", 2)
  end
  local path = octets.unescape(copy.path)
  local checkpoint = Checkpoint(path, filesystem or find_filesystem(copy))
  checkpoint.id = id
  return checkpoint
end

-- From here on an unknown name is a mistake, told as such.
getmetatable(Checkpoint).__index = function(_, name) migration.refuse(name, 2) end

return Checkpoint
