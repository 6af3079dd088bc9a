-- Mutants of Checkpoint: items 1-68 and 70-72.

local OBJECT = "lua/ckpt/ray/checkpoint/checkpoint.lua"
local METADATA = "lua/ckpt/ray/checkpoint/checkpoint_metadata.lua"
local DIRECTORY = "lua/ckpt/ray/checkpoint/checkpoint_directory.lua"
local PLACE = "lua/ckpt/ray/checkpoint/checkpoint_place.lua"
local READERS = "lua/ckpt/ray/checkpoint/checkpoint_readers.lua"
local LOCKS = "lua/ckpt/ray/checkpoint/checkpoint_locks.lua"
local SOURCE = "lua/ckpt/ray/checkpoint/checkpoint_source.lua"
local MIGRATION = "lua/ckpt/ray/checkpoint/checkpoint_migration.lua"
local JSON = "lua/ckpt/base/json.lua"
local DECODE = "lua/ckpt/base/json_decode.lua"

return {
  { item = 1, file = METADATA, from = [[local FILE = ".metadata.json"]],
    to = [[local FILE = "metadata.json"]] },
  { item = 2, file = DIRECTORY, from = [[local PREFIX = "checkpoint_tmp_"]],
    to = [[local PREFIX = "checkpoint_tmp"]] },
  { item = 3, file = OBJECT, from = [[meta and meta.__tostring and tostring(value) or value]],
    to = [[value]] },
  { item = 4, file = OBJECT, from = [[filesystem, path = found, at]], to = [[filesystem = found]] },
  { item = 5, file = OBJECT, from = [[    check_filesystem(filesystem)
]], to = [[    check_filesystem(filesystem)
    path = select(2, store.resolve(path)) or path
]] },
  { item = 6, file = OBJECT, from = [[  if path == "" then
    misuse("Checkpoint: the path]], to = [[  if false then
    misuse("Checkpoint: the path]] },
  { item = 7, file = OBJECT, from = [[filesystem, path = found, at]],
    to = [[filesystem, path = found, found.is_local and fs.normalize(at) or at]] },
  { item = 8, file = OBJECT, from = [[local found, at = store.resolve(path)]],
    to = [[local found, at = store.resolve((path:gsub("%%20", " ")))]] },
  { item = 9, file = OBJECT, from = [[    if not found then misuse("Checkpoint: " .. at) end
]], to = [[    if not found then found, at = store.resolve("/"), path end
]] },
  { item = 10, file = OBJECT, from = [[return Checkpoint(path, assert(store.resolve("/")))]],
    to = [[return Checkpoint(path)]] },
  { item = 11, file = OBJECT, from = [[Checkpoint(filesystem=%s, path=%s)]],
    to = [[Checkpoint(filesystem=%s path=%s)]] },
  { item = 12, file = OBJECT, from = [[  checkpoint.id = id
]], to = [[]] },
  { item = 13, file = OBJECT,
    from = [[function Checkpoint.__concat() misuse(NOT_A_PATH) end]],
    to = [[function Checkpoint.__concat(a, b) return (a.path or a) .. (b.path or b) end]] },
  { item = 14, file = MIGRATION, from = [[from_dict = DIRECTORIES,]], to = [[from_dict = URIS,]] },
  { item = 15, file = MIGRATION, from = [[to_uri = URIS,]], to = [[to_uri = DIRECTORIES,]] },
  { item = 16, file = MIGRATION, from = [[, set_preprocessor = PREPROCESSORS]], to = [[]] },
  { item = 17, file = OBJECT,
    from = [[function(_, name) migration.refuse(name) end]],
    to = [[function(_, name) if name == "nonsense" then migration.refuse(name) end end]] },

  { item = 18, file = METADATA, from = [[  if not text then return {} end
]], to = [[  if not text then
    file.write("{}")
    return {}
  end
]] },
  { item = 19, file = METADATA, from = [[  if name == "ENOENT" then return false end
]], to = [[  if name == "ENOENT" and fs.exists(fs.parent(path)) then return false end
]] },
  { item = 20, file = METADATA, from = [[  return file_of(checkpoint).write(text)
]], to = [[  return metadata.update(checkpoint, value)
]] },
  { item = 21, file = METADATA, from = [[  for key, item in pairs(value) do old[key] = item end
]], to = [[  for key, item in pairs(value) do
    if type(item) == "table" and type(old[key]) == "table" then
      for inner, part in pairs(item) do old[key][inner] = part end
    else
      old[key] = item
    end
  end
]] },
  { item = 22, file = METADATA, from = [[    done, why, name = opened:replace_if(FILE, text, tag)
]], to = [[    done, why, name = opened:put(FILE, text)
]] },
  { item = 22, file = METADATA, from = [[    change = function(edit)
      return with_lock(path, function()
]], to = [[    change = function(edit)
      return (function(work) return work() end)(function()
]] },
  { item = 23, file = JSON, from = [[return "{" .. table.concat(parts, ", ") .. "}"]],
    to = [[return "{" .. table.concat(parts, ",") .. "}"]] },
  { item = 24, file = JSON, from = [[if n ~= n then return "NaN" end]],
    to = [[if n ~= n then return "null" end]] },
  { item = 25, file = JSON,
    from = [[  if kind ~= "table" then refuse(("a %s cannot be put into JSON"):format(kind)) end
]], to = [[  if kind ~= "table" then return "null" end
]] },
  { item = 26, file = METADATA, from = [[function metadata.set(checkpoint, value)
  local text, problem = encode(value)
]], to = [[function metadata.set(checkpoint, value)
  file_of(checkpoint).write("")
  local text, problem = encode(value)
]] },
  { item = 27, file = METADATA, from = [[  return fs.write(path, text, there and there.mode)
]], to = [[  local file = there and io.open(path, "wb")
  if not file then return fs.write(path, text) end
  file:write(text)
  file:close()
  return true
]] },
  { item = 28, file = METADATA, from = [[  if problem then
    return nil,]], to = [[  if problem then return {} end
  if problem then
    return nil,]] },
  { item = 28, file = DECODE,
    from = [[    if after <= #text then stop(state, "Extra data", after) end
]], to = [[]] },
  { item = 29, file = METADATA, from = [[    if not json.is_object(old) then
]], to = [[    if not json.is_object(old) then old = {} end
    if not json.is_object(old) then
]] },
  { item = 30, file = METADATA, from = [[  local dir, why, name = fs.stat(fs.parent(path))
]], to = [[  local dir, why, name = fs.mkdirs(fs.parent(path))
]] },
  { item = 31, file = METADATA, from = [[  if name == "ENOENT" then return false end
  return nil, why, name
end

-- Removes leftovers]], to = [[  if why and name then return false end
  return nil, why, name
end

-- Removes leftovers]] },
  { item = 32, file = METADATA, from = [[  return file_in_store(filesystem:uri(checkpoint.path))
]], to = [[  return file_in_directory(checkpoint.path)
]] },

  { item = 33, file = DIRECTORY, from = [[return fs.join(fs.temp(), PREFIX .. id)]],
    to = [[return fs.join(fs.temp(), "x", PREFIX .. id)]] },
  { item = 34, file = OBJECT,
    from = [[fs.normalize(fs.expand(text_of(path, "Checkpoint:to_directory: the path")))]],
    to = [[fs.expand(text_of(path, "Checkpoint:to_directory: the path"))]] },
  { item = 34, file = OBJECT,
    from = [[fs.normalize(fs.expand(text_of(path, "Checkpoint:to_directory: the path")))]],
    to = [[fs.normalize(text_of(path, "Checkpoint:to_directory: the path"))]] },
  { item = 35, file = DIRECTORY,
    from = [[  local made, why, code = fs.mkdirs(target, mode)
  if not made then return nil, why, code end
]], to = [[  local _ = mode
]] },
  { item = 36, file = DIRECTORY, from = [[  if is_fresh or wish.joins then return true end
]], to = [[  if is_fresh then return false end
]] },
  { item = 36, file = DIRECTORY,
    from = [[    held, text, name = locks.wait(names.target, false)
]], to = [[    return nil, text, name
]] },
  { item = 37, file = DIRECTORY,
    from = [[  if is_fresh and record.handed and not fs.exists(wish.target) then]],
    to = [[  if false then]] },
  { item = 38, file = DIRECTORY,
    from = [[  if not records.hold(record, wish.target) then return false end
]], to = [[]] },
  { item = 38, file = DIRECTORY,
    from = [[  if not record or record.source ~= known.source then return false end
]], to = [[  if not record then return nonce ~= nil end
]] },
  { item = 39, file = OBJECT,
    from = [[self.path, self.filesystem, self.id = path, filesystem, nonce()]],
    to = [[self.path, self.filesystem = path, filesystem
  self.id = require("ckpt.prims.digest").xxh3(path)]] },
  { item = 40, file = OBJECT,
    from = [[  if path == nil then
    return directory.provide_temporary(self, fetching[thread()] ~= self)
]], to = [[  if self.filesystem.is_local then return self.path end
  if path == nil then
    return directory.provide_temporary(self, fetching[thread()] ~= self)
]] },
  { item = 41, file = DIRECTORY,
    from = [[  return known.listing ~= nil and known.listing == record.listing
]], to = [[  return false
]] },
  { item = 41, file = DIRECTORY,
    from = [[  return known.listing ~= nil and known.listing == record.listing
]], to = [[  return true
]] },
  { item = 42, file = PLACE, from = [["data"), swaps = swaps, target = target]],
    to = [["data"), swaps = false, target = target .. "/data"]] },
  { item = 43, file = DIRECTORY, from = [[    handed = wish.keeps or (]], to = [[    handed = (]] },
  { item = 44, file = DIRECTORY, from = [[  if made then os.remove(wish.target) end
]], to = [[]] },
  { item = 45, file = DIRECTORY, from = [[  if made then os.remove(wish.target) end
]], to = [[  if made and os.remove(wish.target) then os.remove(fs.parent(wish.target)) end
]] },
  { item = 46, file = SOURCE, from = [[  if stat.type == "directory" then return true end
]], to = [[  if stat.type ~= "link" then return true end
]] },
  { item = 47, file = SOURCE,
    from = [[    if entry.type == "link" and not fs.exists(]],
    to = [[    if entry.type == "link" and not fs.lstat(]] },
  { item = 48, file = PLACE, from = [[function place.put(stage)
]], to = [[function place.put(stage)
  for _, entry in ipairs(fs.walk(stage.dir) or {}) do
    if entry.type == "file" then
      fs.chmod(fs.join(stage.dir, entry.path), tonumber("644", 8))
    end
  end
]] },
  { item = 49, file = PLACE, from = [[function place.put(stage)
]], to = [[function place.put(stage)
  for _, entry in ipairs(fs.walk(stage.dir) or {}) do
    local file = fs.join(stage.dir, entry.path)
    if entry.type == "file" then fs.write(file, fs.read(file, 64 * 2 ^ 20) or "") end
  end
]] },
  { item = 50, file = DIRECTORY,
    from = [[  local held, text, name = locks.wait(names.copy, false)
]], to = [[  local held, text, name = locks.wait(names.copy .. "2", false)
]] },

  { item = 51, file = OBJECT, from = [[  if self.filesystem.is_local then
    local good]], to = [[  if self.filesystem.is_local and fs.exists(self.path) then
    local good]] },
  { item = 52, file = OBJECT, from = [[  if self.filesystem.is_local then
    local good]], to = [[  if fs.exists(self.path) then
    local good]] },
  { item = 53, file = READERS, from = [[  mark, text, name = write_mark(dir)
]], to = [[  mark = readers.mark_path(dir)
]] },
  { item = 54, file = READERS,
    from = [[  if not done then log.warn((]], to = [[  if not done then error((]] },
  { item = 55, file = READERS, from = [[  if clear_marks(dir) == 0 then
]], to = [[  if clear_marks(dir) >= 0 then
]] },
  { item = 56, file = READERS, from = [[    if held then
      remove(dir, names)
      locks.drop(held)
    end
]], to = [[    remove(dir, names)
    if held then locks.drop(held) end
]] },
  { item = 57, file = READERS, from = [[  place.remove(dir)
]], to = [[]] },
  { item = 58, file = OBJECT,
    from = "return finally(function() handle:close() end, fn, handle.path)",
    to = "return (function(...) handle:close() return ... end)(fn(handle.path))" },
  { item = 59, file = OBJECT, from = [[  if not fine then error(path, 0) end
  return nil, why, code
]], to = [[  if not fine then error(path, 0) end
  return nil, "the download failed", code
]] },
  { item = 60, file = OBJECT, from = [[  readers.leave(reader)
  if not fine then error(path, 0) end
]], to = [[  reader.lock:release()
  if not fine then error(path, 0) end
]] },
  { item = 61, file = READERS, from = [[    if name ~= "EEXISTS" then return nil, text, name end
]], to = [[    if name == "EEXISTS" then return mark end
    if name ~= "EEXISTS" then return nil, text, name end
]] },
  { item = 62, file = READERS,
    from = [[  return identity ~= nil and process.is_dead(identity)
]], to = [[  return false
]] },
  { item = 63, file = READERS, from = [[  if record and not record.handed then return true end
]], to = [[  if record then return true end
]] },
  { item = 64, file = READERS,
    from = [[  local alone = names and locks.try(names.readers, false)
]], to = [[  local alone = names and locks.try(names.readers, true)
]] },
  { item = 65, file = READERS, from = [[  return (dir:gsub("/+$", "")) .. MARK ..]],
    to = [[  return dir .. MARK ..]] },
  { item = 66, file = READERS, from = [[    if name:sub(1, #begin) == begin then]],
    to = [[    if name:find("^" .. begin) then]] },
  { item = 67, file = DIRECTORY, from = [[joins = not keeps, mode = tonumber("700", 8),]],
    to = [[joins = not keeps, mode = tonumber("500", 8),]] },
  { item = 68, file = DIRECTORY, from = [[return fs.join(fs.temp(), PREFIX .. id)]],
    to = [[return fs.join("/tmp", PREFIX .. id)]] },

  { item = 70, file = LOCKS, from = [[fs.join(private, "_ckpt_lockfiles")]],
    to = [[fs.join(private, "locks")]] },
  { item = 70, file = LOCKS,
    from = [[digest.sha256(resolved .. suffix)]], to = [[digest.xxh3(resolved .. suffix)]] },
  { item = 71, file = LOCKS,
    from = "shared = shared, timeout = math.huge", to = "shared = shared, timeout = 1" },
  { item = 72, file = LOCKS, from = [[  local resolved, why, code = locks.resolve(path)
]], to = [[  local resolved, why, code = fs.absolute(path)
]] },
}
