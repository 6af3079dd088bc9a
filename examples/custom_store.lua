-- A store of your own: a scheme of URIs whose objects are kept in a table. Four functions are
-- enough; transfers of whole directories, Checkpoint objects and syncers can then use its URIs.
--
-- Run: ckpt-lua exec examples/custom_store.lua

local ckpt = require "ckpt"

local shelves = {} -- name of a shelf -> key -> content

---@class Shelf
local Shelf = {}
Shelf.__index = Shelf

function Shelf:get(key, from, len)
  local data = self.objects[self.prefix .. key]
  if not data then return nil, key .. " is not on the shelf", "ENOENT" end
  return from and data:sub(from + 1, from + len) or data
end

function Shelf:put(key, data)
  self.objects[self.prefix .. key] = data
  return true
end

function Shelf:list(prefix)
  local start = self.prefix .. (prefix ~= "" and prefix .. "/" or "")
  local found = {}
  for key, data in pairs(self.objects) do
    if key:sub(1, #start) == start then
      found[#found + 1] = { key = key:sub(#self.prefix + 1), size = #data }
    end
  end
  return found
end

function Shelf:delete(key)
  self.objects[self.prefix .. key] = nil
  return true
end

-- shelf://NAME/a/b opens the shelf NAME; keys lie below "a/b/".
ckpt.store.register("shelf", {
  open = function(uri)
    local name, path = uri:match("^shelf://([^/]+)/?(.*)$")
    shelves[name] = shelves[name] or {}
    local prefix = path ~= "" and path .. "/" or ""
    return setmetatable({ objects = shelves[name], prefix = prefix }, Shelf)
  end,
})

-- What it is good for: a directory goes there and comes back.
local dir = assert(ckpt.fs.temporary_directory())
assert(ckpt.fs.mkdirs(dir .. "/out/logs"))
assert(ckpt.fs.write(dir .. "/out/model.bin", ("weights "):rep(1000)))
assert(ckpt.fs.write(dir .. "/out/logs/train.log", "step 1\n"))

local sent = assert(ckpt.store.upload { dir = dir .. "/out", uri = "shelf://exp/run1" }:wait())
print(("sent %d files, %d bytes"):format(sent.files, sent.bytes))

local checkpoint = ckpt.Checkpoint("shelf://exp/run1")
checkpoint:as_directory(function(path)
  print("model.bin has " .. ckpt.fs.stat(path .. "/model.bin").size .. " bytes")
end)

assert(ckpt.store.delete { uri = "shelf://exp/run1" }:wait())
print("left: " .. #assert(ckpt.store.open("shelf://exp/run1")):list())
assert(ckpt.fs.remove_tree(dir))
