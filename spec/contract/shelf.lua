--- A store written in Lua over a directory, `shelf://at/<path>`: not local, whatever it lies
--- on. Each object that is fetched is written down in a file beside the directory, so that tests
--- count downloads over any number of processes, and a file there holds fetching up.

local ckpt = require "ckpt"

local fs = ckpt.fs

local shelf = {
  scheme = "shelf",
  --- Called with the key before an object is fetched; what it returns, if anything, is answered.
  on_get = nil,
}

--- The file that has a line "<pid> <key>" for each fetch.
function shelf.log(dir) return dir .. ".fetched" end

--- While this file is there, fetching waits.
function shelf.gate(dir) return dir .. ".gate" end

local function nap() os.execute("sleep 0.01") end

local function note(dir, key)
  -- One write in append mode: lines of many processes do not mix.
  local file = assert(io.open(shelf.log(dir), "ab"))
  file:setvbuf("full", 4096)
  file:write(("%s %s\n"):format(fs.readlink("/proc/self"), key))
  file:close()
end

local Store = {}
shelf.Store = Store
Store.__index = Store

function Store:at(key) return self.dir .. (key ~= "" and "/" .. key or "") end

function Store:fetch(key, from, length)
  local data, text, name = fs.read(self:at(key))
  if not data then return nil, text, name end
  from = from or 0
  return data:sub(from + 1, length and from + length or -1)
end

function Store:get(key, from, length)
  if not fs.exists(self:at(key)) then return self:fetch(key) end
  note(self.dir, key)
  while fs.exists(shelf.gate(self.dir)) do nap() end
  if shelf.on_get then
    local data, text, name = shelf.on_get(key)
    if data or text then return data, text, name end
  end
  return self:fetch(key, from, length)
end

function Store:put(key, data)
  assert(fs.mkdirs(fs.parent(self:at(key))))
  return fs.write(self:at(key), data)
end

function Store:put_if_absent(key, data)
  assert(fs.mkdirs(fs.parent(self:at(key))))
  return fs.write_new(self:at(key), data)
end

local function tagged(store, key)
  local data, text, name = store:fetch(key)
  if not data then return nil, text, name end
  return data, ckpt.digest.xxh3(data)
end

function Store:get_tagged(key) return tagged(self, key) end

function Store:replace_if(key, data, tag)
  local held = assert(ckpt.lock.take(self.dir .. ".lock", { timeout = 10 }))
  local there, now, name = tagged(self, key)
  local done
  if there and now ~= tag then now, name = key .. " has changed", "ECONFLICT" end
  if not name then done, now, name = fs.write(self:at(key), data) end
  held:release()
  if done then return true end
  return nil, now, name
end

function Store:head(key)
  local stat, text, name = fs.stat(self:at(key))
  if not stat then return nil, text, name end
  return { size = stat.size, mtime = stat.mtime }
end

function Store:list(prefix)
  prefix = prefix or ""
  local objects = {}
  for _, entry in ipairs(fs.walk(self.dir) or {}) do
    if entry.type == "file" and entry.path:sub(1, #prefix) == prefix then
      objects[#objects + 1] = { key = entry.path, size = entry.size, mtime = entry.mtime }
    end
  end
  table.sort(objects, function(a, b) return a.key < b.key end)
  return objects
end

function Store:delete(key) return not fs.exists(self:at(key)) or fs.remove(self:at(key)) end
function Store:exists() return fs.exists(self.dir) end
function Store:close() self.closed = true end

ckpt.store.register(shelf.scheme, {
  open = function(uri)
    return setmetatable({ dir = uri:match("^shelf://at(/?.-)/*$") }, Store)
  end,
})

return shelf
