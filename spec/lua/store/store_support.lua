--- A store written in Lua, for specs: objects in a table, with no more than a store needs.

local ckpt = require "ckpt"

local table_store = {
  places = {},
  full = nil, -- a pattern: keys that fit cannot be put
}

local Store = {}
Store.__index = Store

function Store:get(key)
  local data = self.objects[self.prefix .. key]
  if not data then return nil, "no " .. key, "ENOENT" end
  return data
end

function Store:put(key, data)
  if table_store.full and key:match(table_store.full) then
    return nil, "the table is full", "ENOSPACE"
  end
  self.objects[self.prefix .. key] = data
  return true
end

function Store:list(prefix)
  local found, start = {}, self.prefix .. (prefix == "" and "" or prefix .. "/")
  for key, data in pairs(self.objects) do
    if key:sub(1, #start) == start then
      found[#found + 1] = { key = key:sub(#self.prefix + 1), size = #data }
    end
  end
  table.sort(found, function(a, b) return a.key < b.key end)
  return found
end

function Store:delete(key)
  self.objects[self.prefix .. key] = nil
  return true
end

--- Registers `table://`.
function table_store.register()
  ckpt.store.register("table", {
    open = function(uri)
      local name, path = uri:match("^table://([^/]+)/?(.*)$")
      table_store.places[name] = table_store.places[name] or {}
      local prefix = path == "" and "" or path .. "/"
      return setmetatable({ objects = table_store.places[name], prefix = prefix }, Store)
    end,
  })
end

return table_store
