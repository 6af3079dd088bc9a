--- An open store: one of the engine's, or one written in Lua, with the same methods.

jit.off(true, true)
local class = require "ckpt.base.class"
local listing = require "ckpt.store.store_listing"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"

-- A store that is written in Lua must have these; the others are made of them, or are
-- "EUNSUPPORTED".
local NEEDED = { "get", "put", "list", "delete" }

---@class ckpt.Object
---@field key string
---@field size? integer bytes
---@field mtime? number seconds since 1970, by the store's clock
---@field prefix? true a "directory" of a delimited list; then nothing but the key is there

---@class ckpt.Store: ckpt.Class
---@field uri string
local Store = class("Store")

function Store:init(inner, uri)
  if type(inner) == "table" then
    for _, name in ipairs(NEEDED) do
      if type(inner[name]) ~= "function" then
        misuse(("the store of %s has no function `%s`"):format(uri, name))
      end
    end
  end
  self.inner, self.uri, self.written = inner, uri, type(inner) == "table"
end

function Store:__tostring() return "store " .. self.uri end

local function check(self, value, what)
  if not self.inner then misuse(("the store of %s is closed"):format(self.uri)) end
  if type(value) ~= "string" then
    misuse(("%s is a %s, not a text"):format(what, type(value)))
  end
end

-- Refuses a bad key; the engine's stores do so themselves.
local function refuse_key(self, key)
  if not self.written then return nil end
  local good = #key <= 1024 and listing.is_safe(key)
  return not good and ("%q is no key: its components are not empty, \".\" or \"..\""):format(key)
    or nil
end

-- Tells whether a function takes a part of an object: (self, key, from, len).
local function takes_parts(get)
  local about = debug.getinfo(get, "u")
  return about.isvararg or about.nparams >= 4
end

-- Returns one level of a listing: what lies deeper is told by its "directory".
local function one_level(objects, prefix)
  local level, seen = {}, {}
  local below = prefix == "" and 0 or #prefix + 1
  for _, object in ipairs(objects) do
    local deeper = object.key:match("^[^/]*()/", below + 1)
    local directory = object.prefix and object.key or deeper and object.key:sub(1, deeper - 1)
    if not directory then
      level[#level + 1] = object
    elseif not seen[directory] then
      seen[directory] = true
      level[#level + 1] = object.prefix and object or { key = directory, prefix = true }
    end
  end
  return level
end

local WANTED = { get = "string", list = "table" }

-- Checks the answer of a store that is written in Lua. One that forgets to return something would
-- otherwise fail without a word, or far from here.
local function answer(self, method, first, ...)
  local wanted = WANTED[method]
  if not self.written or (first and (not wanted or type(first) == wanted)) then
    return first, ...
  end
  local text, name = ...
  if not first and type(text) == "string" then
    return nil, text, type(name) == "string" and name or "EIO"
  end
  return nil, ("the store of %s: its %s returned a %s; it returns %s, or nil, a text and a name")
    :format(self.uri, method, type(first), wanted and "a " .. wanted or "true"), "EIO"
end

local function ask(self, method, key, ...)
  local refused = refuse_key(self, key)
  if refused then return nil, refused, "EINVAL" end
  if self.written and type(self.inner[method]) ~= "function" then
    return nil, ("the store of %s has no %s"):format(self.uri, method), "EUNSUPPORTED"
  end
  return answer(self, method, self.inner[method](self.inner, key, ...))
end

--- Returns the content of an object, up to 1 GiB; or of a part of it, which is shorter at its end.
---@param key string
---@param from? integer bytes
---@param len? integer bytes
---@return string?
---@return string? text
---@return string? name "ENOENT"
function Store:get(key, from, len)
  check(self, key, "the key")
  if from == nil then return ask(self, "get", key) end
  if type(from) ~= "number" or type(len) ~= "number" or from < 0 or len < 0 then
    misuse("get: a part has an offset and a length, both 0 or more")
  end
  local whole = self.written and not takes_parts(self.inner.get)
  if not whole then return ask(self, "get", key, from, len) end
  local data, text, name = ask(self, "get", key)
  if not data then return nil, text, name end
  return data:sub(from + 1, from + len)
end

--- Puts an object, in place of an older one: a reader sees the old or the new one.
---@param key string
---@param data string
---@return true?
---@return string? text
---@return string? name
function Store:put(key, data)
  check(self, key, "the key")
  check(self, data, "the content")
  return ask(self, "put", key, data)
end

--- Puts an object that is not there: of many who try at once, one does.
---@param key string
---@param data string
---@return true?
---@return string? text
---@return string? name "EEXISTS"
function Store:put_if_absent(key, data)
  check(self, key, "the key")
  check(self, data, "the content")
  return ask(self, "put_if_absent", key, data)
end

--- Returns the content of an object, and a tag that tells it from other contents.
---@param key string
---@return string? data
---@return string tag else the error's text
---@return string? name
function Store:get_tagged(key)
  check(self, key, "the key")
  return ask(self, "get_tagged", key)
end

--- Replaces an object that still has the content that this tag was given with (compare-and-swap).
--- Of several who come with one tag one wins. It does not hold against those who use put().
---@param key string
---@param data string
---@param tag string of get_tagged
---@return true?
---@return string? text
---@return string? name "ECONFLICT": it has another one; "ENOENT"
function Store:replace_if(key, data, tag)
  check(self, key, "the key")
  check(self, data, "the content")
  check(self, tag, "the tag")
  return ask(self, "replace_if", key, data, tag)
end

-- Finds an object in a store that can only list.
local function find(self, key)
  local objects, text, name = answer(self, "list",
    self.inner:list(key:match("^(.*)/[^/]*$") or ""))
  if not objects then return nil, text, name end
  for _, object in ipairs(objects) do
    if object.key == key then return { size = object.size, mtime = object.mtime } end
  end
  return nil, ("%s has no object %q"):format(self.uri, key), "ENOENT"
end

--- Returns the facts about an object without its content.
---@param key string
---@return { size: integer, mtime?: number }?
---@return string? text
---@return string? name
function Store:head(key)
  check(self, key, "the key")
  local refused = refuse_key(self, key)
  if refused then return nil, refused, "EINVAL" end
  if self.written and not self.inner.head then return find(self, key) end
  return self.inner:head(key)
end

---@param key string
---@return boolean?
---@return string? text
---@return string? name
function Store:exists(key)
  check(self, key, "the key")
  local found, text, name = self:head(key)
  if not found and name ~= "ENOENT" then return nil, text, name end
  return found ~= nil
end

--- Lists all objects below a prefix, at any depth; or of one level, with the "directories" there.
---@param prefix? string without a slash at its end; nil, "": all
---@param options? { delimited?: boolean }
---@return ckpt.Object[]?
---@return string? text
---@return string? name
function Store:list(prefix, options)
  check(self, prefix or "", "the prefix")
  local delimited = options_of.check("list", options, { delimited = true }).delimited or false
  local how = self.written and { delimited = delimited } or delimited
  local found, text, name
  if prefix == nil or prefix == "" then
    found, text, name = answer(self, "list", self.inner:list("", how))
  else
    found, text, name = ask(self, "list", prefix, how)
  end
  if not found then return nil, text, name end
  return self.written and delimited and one_level(found, prefix or "") or found
end

--- Removes an object; if it is not there, that is no error.
---@param key string
---@return true?
---@return string? text
---@return string? name
function Store:delete(key)
  check(self, key, "the key")
  local done, text, name = ask(self, "delete", key)
  if not done and name == "ENOENT" and self.written then return true end
  return done, text, name
end

--- Removes all objects below a prefix.
---@param prefix string
---@return true?
---@return string? text
---@return string? name
function Store:delete_prefix(prefix)
  check(self, prefix, "the prefix")
  if not self.written or self.inner.delete_prefix then
    return ask(self, "delete_prefix", prefix)
  end
  local objects, text, name = self:list(prefix)
  if not objects then return nil, text, name end
  for _, object in ipairs(objects) do
    local done
    done, text, name = self:delete(object.key)
    if not done then return nil, text, name end
  end
  return true
end

---@class ckpt.StoreCaps
---@field if_absent boolean put_if_absent holds
---@field publish boolean whole prefixes can be renamed
---@field resume boolean large writes can be gone on with
---@field tags boolean get_tagged and replace_if hold

--- Tells what the store can do.
---@return ckpt.StoreCaps
function Store:caps()
  check(self, "", "")
  if not self.written or self.inner.caps then return self.inner:caps() end
  return {
    if_absent = self.inner.put_if_absent ~= nil, publish = false, resume = false,
    tags = self.inner.replace_if ~= nil,
  }
end

--- Closes it; a second time does nothing.
function Store:close()
  local inner = self.inner
  self.inner = nil
  if inner and inner.close then inner:close() end
end

return Store
