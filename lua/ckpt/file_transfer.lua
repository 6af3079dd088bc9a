--- Trees between machines that share no store: the target says what it has, the source packs what
--- differs, the target unpacks it. How the two texts and the file travel is the user's affair.
---
---     local known = ckpt.file_transfer.stats("/results/a")             -- at the target
---     ckpt.file_transfer.pack("/results/a", "a.tar", { known = known }):wait()   -- at the source
---     ckpt.file_transfer.unpack("a.tar", "/results/a"):wait()          -- at the target

local fs = require "ckpt.fs"
local job = require "ckpt.job"
local log = require "ckpt.log"
local tar = require "ckpt.tar"
local target_lock = require "ckpt.target_lock"

local GIB = 2 ^ 30

---@class ckpt.file_transfer
local file_transfer = {}

--- The files and links of a tree, each with its own size and time; of no directory: none. (Items
--- 226, 227.)
---@param dir string
---@return table<string, { size: integer, mtime: number }>? # by the path in the tree
---@return string? text
---@return string? name
function file_transfer.stats(dir)
  local entries, text, name = fs.walk(dir)
  if not entries and name ~= "ENOENT" then return nil, text, name end
  local stats = {}
  for _, entry in ipairs(entries or {}) do
    if entry.type ~= "directory" then
      stats[entry.path] = { size = entry.size, mtime = entry.mtime }
    end
  end
  return stats
end

-- What is to be packed: all directories, and each file that is not the same at the target. A file
-- that differs in any way is sent, also if the target's is newer. (Items 224, 226.)
local function choose(dir, options)
  local known, patterns = options.known or {}, options.exclude or {}
  local chosen, bytes = {}, 0
  local entries, text, name = fs.walk(dir, function(entry)
    if fs.excluded(patterns, entry.path) then return "skip" end
    local there = known[entry.path]
    local same = there and there.size == entry.size and there.mtime == entry.mtime
    if entry.type == "directory" or not same then
      chosen[#chosen + 1] = entry
      bytes = bytes + (entry.type == "file" and entry.size or 0)
    end
    return nil
  end)
  if not entries then return nil, text, name end
  if options.bytes_max and bytes > options.bytes_max then
    return nil, ("%s is %.2f GiB to send, which is over the limit of %.2f GiB"):format(dir,
      bytes / GIB, options.bytes_max / GIB), "ELIMIT"
  end
  return chosen, bytes
end

-- The checkpoint that a file belongs to; the file itself if to none.
local function unit_of(path)
  local at = 1
  while at do
    local stop = path:find("/", at, true)
    if path:find("^checkpoint_", at) and stop then return path:sub(1, stop - 1) end
    at = stop and stop + 1
  end
  return path
end

local function is_below(path, dir) return path == dir or path:sub(1, #dir + 1) == dir .. "/" end

local function copy_entry(entry, from, to)
  if entry.type == "directory" then return fs.mkdirs(to) end
  if entry.type == "link" then return fs.symlink(entry.target, to) end
  if entry.type == "file" then return fs.copy_file(from, to) end
  return true -- a socket or a device is nothing to send
end

-- Copies what is to be packed, so that nothing changes under the packer. What vanishes meanwhile
-- takes the checkpoint that it is part of with it, which was deleted; that is no failure. (G 227.)
local function stage(dir, chosen, at)
  local retired = {}
  local made, problem, cause = fs.mkdirs(at)
  if not made then return nil, problem, cause end
  for _, entry in ipairs(chosen) do
    local last = retired[#retired]
    if not (last and is_below(entry.path, last)) then
      local done, text, name = copy_entry(entry, fs.join(dir, entry.path), fs.join(at, entry.path))
      if not done and (name == "ENOENT" or name == "ERETIRED") then
        local unit = unit_of(entry.path)
        retired[#retired + 1] = unit
        log.info(("%s vanished while %s was packed: it is left out"):format(unit, dir))
        fs.remove_tree(fs.join(at, unit))
      elseif not done then
        return nil, text, name
      end
    end
    job.yield(0)
  end
  return retired
end

local function pack(dir, file, options)
  local chosen, bytes, cause = choose(dir, options)
  if not chosen then return nil, bytes, cause end
  local at, problem, why = fs.temporary_directory(fs.parent(fs.absolute(file)), ".ckpt-pack-")
  if not at then return nil, problem, why end
  local fine, retired, text, name = pcall(stage, dir, chosen, fs.join(at, "tree"))
  local done = fine and retired
  if done then
    local packed = fs.join(at, fs.base(file)) -- its ending says how it is compressed
    done, text, name = tar.pack(fs.join(at, "tree"), packed)
    if done then
      done, text, name = fs.rename(packed, file)
    end
  end
  fs.remove_tree(at)
  if not fine then error(retired, 0) end
  if not done then return nil, text, name end
  return { entries = #chosen, bytes = bytes, retired = retired }
end

local KNOWN = { exclude = "table", known = "table", bytes_max = "number" }

--- Packs what differs from `known` into a tar file, which replaces the one that is there. It goes
--- through the disk: nothing is held whole in memory. (Items 223, 224, 226, 228, G 227.)
---@param dir string
---@param file string
---@param options? { exclude?: string[], known?: table, bytes_max?: integer } `known`: the target's
---stats(); `bytes_max`: more than that is refused ("ELIMIT"), none: any size
---@return ckpt.Job # its result: `{ entries=, bytes=, retired= }`; `retired` lists what vanished
function file_transfer.pack(dir, file, options)
  for name, value in pairs(options or {}) do
    if type(value) ~= KNOWN[name] then
      error(("pack: `%s` is no option, or of a wrong type"):format(tostring(name)), 2)
    end
  end
  return job.task(pack, dir, file, options or {})
end

local function put_in_place(entry, from, to)
  local there = fs.lstat(to)
  local is_directory = there ~= nil and there.type == "directory"
  if there and is_directory ~= (entry.type == "directory") then fs.remove_tree(to) end
  if entry.type == "directory" then return fs.mkdirs(to) end
  return fs.rename(from, to)
end

local function unpack_into(file, dir, at)
  local tree = fs.join(at, "tree")
  local done, text, name = tar.unpack(file, tree)
  if not done then return nil, text, name end
  if not fs.exists(dir) then return fs.rename(tree, dir) end
  local entries
  entries, text, name = fs.walk(tree)
  if not entries then return nil, text, name end
  for _, entry in ipairs(entries) do
    done, text, name =
      put_in_place(entry, fs.join(tree, entry.path), fs.join(dir, entry.path))
    if not done then return nil, text, name end
  end
  return true
end

local function unpack_file(file, dir)
  local at, problem, cause = fs.temporary_directory(fs.parent(fs.absolute(dir)), ".ckpt-unpack-")
  if not at then return nil, problem, cause end
  local done, text, name = unpack_into(file, dir, at)
  fs.remove_tree(at)
  return done, text, name
end

--- Unpacks over what is in a directory; what is there and not in the file stays. Who finds another
--- unpacking there waits for it instead. (Items 229, 230.)
---@param file string
---@param dir string
---@return ckpt.Job
function file_transfer.unpack(file, dir)
  return job.task(target_lock.fill, dir, function() return unpack_file(file, dir) end)
end

return file_transfer
