--- The record of a tree in a store that is written in Lua: one object, put last, which describes
--- each file. (The engine's own stores have its manifest instead.)

jit.off(true, true)
local core = require "ckpt.core"
local json = require "ckpt.base.json"
local listing = require "ckpt.store.store_listing"
local octets = require "ckpt.base.octets"
local plain_json = require "ckpt.base.plain_json"

local record = {}

--- Its key, and that of the partial record which stands for it while an upload goes on.
record.KEY, record.PART = ".ckpt-tree.json", ".ckpt-tree.part.json"

---@class ckpt.RecordEntry
---@field type "file"|"directory"|"link"
---@field mode integer
---@field mtime number
---@field size? integer of a file
---@field digest? string of a file, as ckpt.digest.file has it
---@field target? string of a link

---@alias ckpt.Record table<string, ckpt.RecordEntry> by their paths

-- Paths may have any bytes, JSON has texts.
local function escape(text)
  return (text:gsub("[^%w%-_./ ]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function is_entry(path, entry)
  return listing.is_safe(path) and type(entry) == "table" and type(entry.mode) == "number"
    and type(entry.mtime) == "number"
    and (entry.type == "directory" or entry.type == "link" and type(entry.target) == "string"
      or entry.type == "file" and type(entry.size) == "number" and type(entry.digest) == "string")
end

local function parse(text)
  local value = plain_json.decode(text, plain_json.ENTRIES_MAX)
  if type(value) ~= "table" or value.format ~= 1 or type(value.entries) ~= "table" then
    return nil
  end
  local entries = {}
  for escaped, entry in pairs(value.entries) do
    local path = type(escaped) == "string" and octets.unescape(escaped) or ""
    if not is_entry(path, entry) then return nil end
    if entry.target then entry.target = octets.unescape(entry.target) end
    entries[path] = entry
  end
  return entries
end

-- Tells whether the entries make a tree: nothing may be written through a link, or below a file.
local function is_tree(entries)
  for path in pairs(entries) do
    if listing.is_blocked(entries, path) then return false end
  end
  return true
end

--- Reads it.
---@param place ckpt.Store
---@param key? string KEY, PART
---@return ckpt.Record|false|nil # false: there is none
---@return string? text
---@return string? name
function record.read(place, key)
  local text, why, name = place:get(key or record.KEY)
  if not text then
    if name == "ENOENT" then return false end
    return nil, why, name
  end
  local entries = parse(text)
  if entries and is_tree(entries) then return entries end
  return nil, ("%s: its %s is no record of a tree"):format(place.uri, record.KEY), "EFORMAT"
end

--- Puts it, unless it would be too large to be read.
---@param place ckpt.Store
---@param entries ckpt.Record
---@param key? string KEY, PART
---@return true?
---@return string? text
---@return string? name
function record.write(place, entries, key)
  local out = {}
  for path, entry in pairs(entries) do
    out[escape(path)] = {
      type = entry.type, mode = entry.mode, mtime = entry.mtime, size = entry.size,
      digest = entry.digest, target = entry.target and escape(entry.target),
    }
  end
  local text = assert(json.encode { format = 1, entries = out })
  local fine, why, name = core.weigh(text, plain_json.ENTRIES_MAX)
  if not fine then return nil, ("%s: a record of its files: %s"):format(place.uri, why), name end
  return place:put(key or record.KEY, text)
end

return record
