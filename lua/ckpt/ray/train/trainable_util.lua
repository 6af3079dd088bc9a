--- ckpt.TrainableUtil: the directories that checkpoints of a trainable are in.
---
--- A checkpoint directory holds an empty file `.is_checkpoint`. It is called `checkpoint_000007`,
--- after the iteration; a directory with the short name `checkpoint_7` of older releases is the
--- same one and is used where it is. Beside the checkpoint itself, or in it if that is a directory,
--- stands `.tune_metadata`: what the trainable has to know of itself to go on from there.

jit.off(true, true)
local fs = require "ckpt.prims.fs"
local json = require "ckpt.base.json"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local scratch = require "ckpt.prims.scratch"
local table_checkpoint = require "ckpt.ray.train.table_checkpoint"
local tar = require "ckpt.prims.tar"

local METADATA = ".tune_metadata"
local TABLE_FILE = "checkpoint" -- a checkpoint that is a table, as JSON
local COUNTERS = { "iteration", "time_total", "timesteps_total", "episodes_total" }
local LARGE = 10e6 -- bytes of an object from which on its size is logged

---@class ckpt.TrainableUtil
local TrainableUtil = { MARKER = ".is_checkpoint" }

---@class ckpt.CheckpointObject a checkpoint without a directory: two texts, to be kept anywhere
---@field checkpoint_name string the checkpoint's path inside its directory, "./" if it is all of it
---@field data string the directory as a tar

local function number(value) return type(value) == "number" and value == math.floor(value) end

-- The later releases pad to six characters, the sign among them: checkpoint_-00001.
local function name_of(index)
  if index == nil then return "checkpoint" end
  return "checkpoint_" .. (number(index) and ("%06d"):format(index) or index)
end

local function short_name_of(index)
  return number(index) and ("checkpoint_%d"):format(index) or name_of(index)
end

--- Returns the path of the checkpoint directory of an index, whether it is there or not.
---@param parent string
---@param index? integer|string nil: the name is `checkpoint`
---@return string path
---@return string short its name in older releases, the same for a text
function TrainableUtil.checkpoint_paths(parent, index)
  return fs.join(parent, name_of(index)), fs.join(parent, short_name_of(index))
end

--- Makes a directory that is there a checkpoint directory.
---@param path string
---@return true?
---@return string? text
---@return string? name
function TrainableUtil.mark_checkpoint_dir(path)
  local marker = fs.join(path, TrainableUtil.MARKER)
  if fs.exists(marker) then return true end
  return fs.write(marker, "")
end

--- Makes a checkpoint directory with its marker. One that is there is used again with what is in
--- it; with `override` it is deleted first.
---@param parent string
---@param index? integer|string nil: the name is `checkpoint`
---@param override? boolean
---@return string? path
---@return string? text
---@return string? name
function TrainableUtil.make_checkpoint_dir(parent, index, override)
  if type(parent) ~= "string" then
    misuse("make_checkpoint_dir: `parent` is a " .. type(parent) .. ", not a path")
  end
  if index ~= nil and not number(index) and (type(index) ~= "string" or index:find("/")) then
    misuse(("make_checkpoint_dir: %s is no index: use a whole number, or a text without a slash")
      :format(tostring(index)))
  end
  local path, short = TrainableUtil.checkpoint_paths(parent, index)
  if override then
    for _, old in ipairs { short, path } do
      if fs.lstat(old) then
        local done, text, name = fs.remove_tree(old)
        if not done then return nil, text, name end
      end
    end
  elseif fs.exists(short) and not fs.exists(path) then
    path = short
  end
  local made, text, name = fs.mkdirs(path)
  if made then made, text, name = TrainableUtil.mark_checkpoint_dir(path) end
  if not made then return nil, text, name end
  return path
end

--- Returns the checkpoint directory that a path is in: from the path upwards the first with the
--- marker. The root directory never is one.
---@param path string of a file or directory that is there
---@return string? directory
---@return string? text
---@return string? name "ENOENT": no such path, or it is in no checkpoint directory
function TrainableUtil.find_checkpoint_dir(path)
  if type(path) ~= "string" then
    misuse("find_checkpoint_dir: `path` is a " .. type(path) .. ", not a path")
  end
  local at, text, name = fs.stat(path)
  if not at then return nil, text, name end
  local directory = at.type == "directory" and path:gsub("(.)/+$", "%1") or fs.parent(path)
  -- The text of "x/.." does not tell what is above it.
  if directory:find("..", 1, true) then directory = fs.real(directory) or directory end
  while fs.absolute(directory) ~= "/" do
    if fs.exists(fs.join(directory, TrainableUtil.MARKER)) then return directory end
    local above = fs.parent(directory)
    -- A relative path ends before the root does.
    directory = above ~= directory and above or fs.parent(fs.absolute(directory))
  end
  return nil, ("%s: no directory above it has a file %s, so it is no part of a checkpoint; save " ..
    "into a directory from make_checkpoint_dir"):format(path, TrainableUtil.MARKER), "ENOENT"
end

--- Returns a directory's path with the slash at its end that says so; any other path as it is.
---@param path string
---@return string
function TrainableUtil.with_slash(path)
  if type(path) ~= "string" then misuse("the checkpoint is a " .. type(path) .. ", not a path") end
  local at = path:sub(-1) ~= "/" and fs.stat(path)
  return at and at.type == "directory" and path .. "/" or path
end

--- Returns the path of a checkpoint's metadata: `<path>.tune_metadata`, for a directory
--- `.tune_metadata` in it.
---@param path string
---@return string
function TrainableUtil.metadata_path(path) return TrainableUtil.with_slash(path) .. METADATA end

local function no_checkpoint(problem)
  misuse(("a checkpoint that is a table: %s"):format(problem))
end

local function write_json(path, value)
  local text, problem = json.encode(value)
  if not text then no_checkpoint(problem) end
  return fs.write(path, text)
end

-- Compares paths as texts, and refuses one that leads out again: "checkpoint_000001/../other".
local function begins_with(path, parent)
  local plain = fs.normalize(parent)
  return path:sub(1, #parent) == parent and fs.normalize(path):sub(1, #plain) == plain
end

--- Makes a checkpoint that `restore` finds of the result of `save_checkpoint`: a table is written
--- to the file `checkpoint` in `parent`, a path must be in `parent`; then the metadata is written,
--- so a checkpoint that has it was complete.
---@param checkpoint string|table a path that begins with `parent`, or a table of texts, numbers,
---  booleans and such tables
---@param parent string the checkpoint directory
---@param state table the metadata; it is not changed
---@return string? path of the checkpoint; a directory's ends with a slash
---@return string? text
---@return string? name
function TrainableUtil.process_checkpoint(checkpoint, parent, state)
  local path
  local metadata = { saved_as_dict = type(checkpoint) == "table" }
  if type(checkpoint) == "table" then
    path = fs.join(parent, TABLE_FILE)
    local content, typed = table_checkpoint.encode(checkpoint)
    if not content then no_checkpoint(typed) end
    metadata.typed = typed or nil
    local written, text, name = fs.write(path, content)
    if not written then return nil, text, name end
  elseif type(checkpoint) ~= "string" then
    misuse(("save_checkpoint returned a %s: return the path of what was saved, or a table")
      :format(type(checkpoint)))
  elseif not begins_with(checkpoint, parent) then
    misuse(("save_checkpoint returned %s, which is not in the directory that it was given, %s")
      :format(checkpoint, parent))
  else
    path = TrainableUtil.with_slash(checkpoint)
  end
  for key, value in pairs(state) do metadata[key] = value end
  local written, text, name = write_json(path .. METADATA, metadata)
  if not written then return nil, text, name end
  return path
end

local function read_json(path)
  local data, text, name = fs.read(path)
  if not data then return nil, text, name end
  local value, problem = json.decode(data)
  if type(value) == "table" then return value end
  return nil, ("%s: not a checkpoint of this library: %s"):format(path, problem or "no object"),
    "EFORMAT"
end

--- Returns the metadata of a checkpoint, and the checkpoint itself: the table that was saved, or
--- the path.
---@param path string as `process_checkpoint` returned it
---@return table? metadata
---@return table|string|nil checkpoint
---@return string? name "ENOENT", "EFORMAT"
function TrainableUtil.read_checkpoint(path)
  path = TrainableUtil.with_slash(path)
  local metadata, text, name = read_json(path .. METADATA)
  if not metadata then return nil, text, name end
  for _, field in ipairs(COUNTERS) do
    if metadata[field] ~= nil and type(metadata[field]) ~= "number" then
      return nil, ("%s%s: `%s` is no number"):format(path, METADATA, field), "EFORMAT"
    end
  end
  if not metadata.saved_as_dict then return metadata, path end
  local checkpoint
  checkpoint, text, name = read_json(path)
  if not checkpoint then return nil, text, name end
  if metadata.typed then
    checkpoint, text = table_checkpoint.restore(checkpoint)
    if not checkpoint then
      return nil, ("%s: not a checkpoint of this library: %s"):format(path, text), "EFORMAT"
    end
  end
  return metadata, checkpoint
end

--- Returns a checkpoint as texts: its directory as a tar, and its own path in it. From 10 MB on the
--- size is logged.
---@param path string of the checkpoint
---@return ckpt.CheckpointObject?
---@return string? text
---@return string? name
function TrainableUtil.checkpoint_to_object(path)
  local directory, text, name = TrainableUtil.find_checkpoint_dir(path)
  if not directory then return nil, text, name end
  local data
  data, text, name = tar.pack_text(directory)
  if not data then return nil, text, name end
  if #data > LARGE then log.info(("The checkpoint object is %d bytes large."):format(#data)) end
  local inside = fs.normalize(path):sub(#fs.normalize(directory) + 2)
  if inside == "" then inside = "." end
  local at = fs.stat(path)
  return { checkpoint_name = inside .. (at and at.type == "directory" and "/" or ""), data = data }
end

-- Unpacks into a directory that is not empty.
local function unpack_beside(archive, directory)
  return scratch(directory, ".unpack-", function(fresh)
    local done, text, name = tar.unpack_text(archive, fresh)
    for _, entry in ipairs(done and fs.list(fresh) or {}) do
      if done then
        done, text, name = fs.rename(fs.join(fresh, entry), fs.join(directory, entry))
      end
    end
    return done, text, name
  end)
end

--- Unpacks such an object into a directory. Other files in the directory stay beside it.
---@param object ckpt.CheckpointObject
---@param directory string
---@return string? path of the checkpoint, for `restore`
---@return string? text
---@return string? name "EINVAL": its name leads out of the directory; "EFORMAT": no tar
function TrainableUtil.create_from_object(object, directory)
  if type(object) ~= "table" or type(object.checkpoint_name) ~= "string"
    or type(object.data) ~= "string" then
    misuse("restore_from_object: not an object of save_to_object")
  end
  local path = fs.normalize(fs.join(directory, object.checkpoint_name))
  local root = fs.normalize(directory)
  if path ~= root and path:sub(1, #root + 1) ~= root .. "/" then
    return nil, ("%s leads out of the checkpoint"):format(object.checkpoint_name), "EINVAL"
  end
  local done, text, name = unpack_beside(object.data, directory)
  if not done then return nil, text, name end
  return TrainableUtil.with_slash(path)
end

return TrainableUtil
