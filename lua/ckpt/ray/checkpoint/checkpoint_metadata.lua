--- The user's notes about a checkpoint: `.metadata.json` among its files.
---
--- It is encoded before anything is touched, and replaced in one step: in a directory by a rename,
--- with a lock against other updates on this host; in a store only if nobody else wrote it since it
--- was read, else it is read again.

jit.off(true, true)
local finally = require "ckpt.base.finally"
local fs = require "ckpt.prims.fs"
local job = require "ckpt.job.job"
local json = require "ckpt.base.json"
local locks = require "ckpt.ray.checkpoint.checkpoint_locks"
local nonce = require "ckpt.base.nonce"
local store = require "ckpt.store.store"

local metadata = {}

local FILE = ".metadata.json"

-- Each try that fails lost against another update that succeeded: a thousand at once may do that.
local TRIES, NAP = 1000, 0.005

-- Decodes the text of the file. Absent: nothing was noted.
local function decode(text, where, exact)
  local value, problem = json.decode(text, exact)
  if problem then
    return nil, ("the metadata in %s is no JSON: %s"):format(where, problem), "EFORMAT"
  end
  return value
end

-- Encodes a value; a value that has no text is a mistake of the caller.
local function encode(value)
  local text, problem = json.encode(value)
  if not text then return nil, ("metadata: " .. problem) end
  return text
end

-- ---- how the file is read and written, for a directory and for a store ----

---@class ckpt.MetadataFile
---@field where string
---@field read function its text; false: there is none; nil, text, name
---@field write fun(text: string): true?, string?, string?
---@field change function takes function(text|false) -> new text; true, or nil, text, name

local function read_local(path)
  local text, why, name = fs.read(path)
  if text then return text end
  if name == "ENOENT" then return false end
  return nil, why, name
end

-- Removes leftovers: a process that was killed while it wrote has left its file under another name.
-- With the lock held nobody else writes.
local function clear(dir)
  for _, name in ipairs(fs.list(dir) or {}) do
    if name:find("^%.metadata%.json%.%x+%.tmp$") then fs.remove(fs.join(dir, name)) end
  end
end

-- Writes in a directory that is there: noting something makes no checkpoint.
local function write_local(path, text)
  local dir, why, name = fs.stat(fs.parent(path))
  if not dir then return nil, why, name end
  clear(fs.parent(path))
  local there = fs.stat(path)
  return fs.write(path, text, there and there.mode)
end

local function with_lock(path, work)
  local names, text, name = locks.of(path)
  if not names then return nil, text, name end
  local held, why, code = locks.wait(names.target, false)
  if not held then return nil, why, code end
  return finally(function() locks.drop(held) end, work)
end

local function file_in_directory(dir)
  local path = fs.join(dir, FILE)
  return {
    where = path,
    read = function() return read_local(path) end,
    write = function(text)
      return with_lock(path, function() return write_local(path, text) end)
    end,
    change = function(edit)
      return with_lock(path, function()
        local text, why, name = read_local(path)
        if text == nil then return nil, why, name end
        text, why, name = edit(text)
        if not text then return nil, why, name end
        return write_local(path, text)
      end)
    end,
  }
end

-- Returns the text and its tag; no tag from a store that has none.
local function get_tagged(opened)
  local text, tag, name = opened:get_tagged(FILE)
  if text or name ~= "EUNSUPPORTED" then return text, tag, name end
  text, tag, name = opened:get(FILE)
  if text then return text, nil end
  return nil, tag, name
end

-- Puts a new text if the old one is still the one that was read; "EUNSUPPORTED" by stores that
-- cannot compare, and then the last one wins.
local function put_over(opened, text, old, tag)
  local done, why, name
  if not old then
    done, why, name = opened:put_if_absent(FILE, text)
  elseif tag then
    done, why, name = opened:replace_if(FILE, text, tag)
  else
    name = "EUNSUPPORTED"
  end
  if not done and name == "EUNSUPPORTED" then return opened:put(FILE, text) end
  return done, why, name
end

-- From 0 to 1, not from the generator that a training program may have seeded.
local function chance() return tonumber(nonce():sub(1, 4), 16) / 0xffff end

local LOST = { ECONFLICT = true, EEXISTS = true, ENOENT = true }

local function change_in_store(opened, edit)
  local done, why, name
  for try = 1, TRIES do
    local text, tag, code = get_tagged(opened)
    if not text and code ~= "ENOENT" and code ~= "ENOSTORE" then return nil, tag, code end
    local edited, problem, kind = edit(text or false)
    if not edited then return nil, problem, kind end
    done, why, name = put_over(opened, edited, text, tag)
    if done then return true end
    if not LOST[name] then return nil, why, name end
    job.yield(NAP * math.min(try, 10) * chance())
  end
  return nil, why, name
end

local function file_in_store(uri)
  local function with_store(work)
    local opened, text, name = store.open(uri)
    if not opened then return nil, text, name end
    return finally(function() opened:close() end, work, opened)
  end
  return {
    where = uri .. "/" .. FILE,
    read = function()
      return with_store(function(opened)
        local text, why, name = opened:get(FILE)
        if text then return text end
        if name == "ENOENT" or name == "ENOSTORE" then return false end
        return nil, why, name
      end)
    end,
    -- This put is conditional too: the store may not hold a plain put against those that compare.
    write = function(text)
      return with_store(function(opened)
        return change_in_store(opened, function() return text end)
      end)
    end,
    change = function(edit)
      return with_store(function(opened) return change_in_store(opened, edit) end)
    end,
  }
end

local function file_of(checkpoint)
  local filesystem = checkpoint.filesystem
  if filesystem.is_local then return file_in_directory(checkpoint.path) end
  return file_in_store(filesystem:uri(checkpoint.path))
end

-- ---- what users call ----

--- Returns the notes, {} if there are none.
---@param checkpoint ckpt.Checkpoint
---@return any value
---@return string? text
---@return string? name
function metadata.get(checkpoint)
  local file = file_of(checkpoint)
  local text, why, name = file.read()
  if text == nil then return nil, why, name end
  if not text then return {} end
  return decode(text, file.where)
end

--- Notes this and nothing else.
---@param checkpoint ckpt.Checkpoint
---@param value table
---@return true? done nil and one text: the value has no place in JSON
---@return string? text
---@return string? name
function metadata.set(checkpoint, value)
  local text, problem = encode(value)
  if not text then return nil, problem end
  return file_of(checkpoint).write(text)
end

-- Keys of `value` over those of `old`, which keep their order.
local function overlay(old, value)
  for key, item in pairs(value) do old[key] = item end
  return encode(old)
end

--- Notes some keys and leaves the others.
---@param checkpoint ckpt.Checkpoint
---@param value table
---@return true? done nil and one text: the value has no place in JSON
---@return string? text
---@return string? name
function metadata.update(checkpoint, value)
  local text, problem = encode(value)
  if not text then return nil, problem end
  local file = file_of(checkpoint)
  return file.change(function(stored)
    if not stored then return text end
    local old, why, name = decode(stored, file.where, true)
    if why then return nil, why, name end
    if not json.is_object(old) then
      return nil, ("the metadata in %s is no object, so no key of it can be updated: replace it "
        .. "with set_metadata"):format(file.where), "EFORMAT"
    end
    return overlay(old, value)
  end)
end

return metadata
