--- Trees between machines that share no store: the target says what it has, the source packs what
--- differs, the target unpacks it. How the two texts and the file travel is the user's affair.
---
---     local known = ckpt.file_transfer.stats("/results/a")             -- at the target
---     ckpt.file_transfer.pack("/results/a", "a.tar", { known = known }):wait()   -- at the source
---     ckpt.file_transfer.unpack("a.tar", "/results/a"):wait()          -- at the target

jit.off(true, true)
local fs = require "ckpt.prims.fs"
local job = require "ckpt.job.job"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"
local scratch = require "ckpt.prims.scratch"
local tar = require "ckpt.prims.tar"
local target_lock = require "ckpt.job.target_lock"

local GIB = 2 ^ 30

---@class ckpt.file_transfer
local file_transfer = {}

--- Returns the files and links of a tree, each with its own size and time; none if there is no
--- directory.
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

-- Chooses the entries to pack: all directories, and each file that is not the same at the target. A
-- file that differs in any way is sent, also if the target's is newer.
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
  return chosen
end

-- Returns the checkpoint that a file belongs to; the file itself if it belongs to none.
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

-- A file that is rewritten while it is copied is copied anew, so often.
local TRIES = 3

local function copy_file(from, to)
  local done, text, name
  for _ = 1, TRIES do
    done, text, name = fs.copy_file(from, to, { live = true })
    if done or name ~= "ERETIRED" then break end
  end
  return done, text, name
end

local function copy_entry(entry, from, to)
  if entry.type == "directory" then return fs.mkdirs(to) end
  if entry.type == "link" then return fs.symlink(entry.target, to) end
  if entry.type == "file" then return copy_file(from, to) end
  return true -- a socket or a device is nothing to send
end

-- Copies the entries to pack, so that nothing changes under the packer; of a file that grows, what
-- it has when it is opened. One that vanishes meanwhile, or is rewritten each time, takes the
-- checkpoint that it is part of with it, which was deleted, or is being made; that is no failure.
local function stage(dir, chosen, at)
  local retired = {}
  local made, problem, cause = fs.mkdirs(at)
  if not made then return nil, problem, cause end
  for _, entry in ipairs(chosen) do
    local last = retired[#retired]
    if not (last and is_below(entry.path, last)) then
      local from = fs.join(dir, entry.path)
      local done, text, name = copy_entry(entry, from, fs.join(at, entry.path))
      if not done and (name == "ENOENT" or name == "ERETIRED") then
        local unit = unit_of(entry.path)
        retired[#retired + 1] = unit
        local what = fs.lstat(from) and "was rewritten" or "vanished"
        log.info(("%s %s while %s was packed: it is left out"):format(unit, what, dir))
        fs.remove_tree(fs.join(at, unit))
      elseif not done then
        return nil, text, name
      end
    end
    job.yield(0)
  end
  return retired
end

local function bytes_in(tree)
  local bytes = 0
  for _, entry in ipairs(fs.walk(tree) or {}) do
    bytes = bytes + (entry.type == "file" and entry.size or 0)
  end
  return bytes
end

local function pack(dir, file, options)
  local chosen, why, cause = choose(dir, options)
  if not chosen then return nil, why, cause end
  return scratch(fs.parent(fs.absolute(file)), ".ckpt-pack-", function(at)
    local tree = fs.join(at, "tree")
    local packed = fs.join(at, fs.base(file)) -- its ending says how it is compressed
    local retired, text, name = stage(dir, chosen, tree)
    local done, bytes = retired, bytes_in(tree)
    if done then done, text, name = tar.pack(tree, packed) end
    if done then done, text, name = fs.rename(packed, file) end
    if not done then return nil, text, name end
    return { entries = #chosen, bytes = bytes, retired = retired }
  end)
end

local KNOWN = { exclude = "table", known = "table", bytes_max = "number" }

--- Packs the files that differ from `known` into a tar file, which replaces the one that is there.
--- It goes through the disk: nothing is held whole in memory.
---@param dir string
---@param file string
---@param options? { exclude?: string[], known?: table, bytes_max?: integer } `known`: the target's
---stats(); `bytes_max`: more than that is refused ("ELIMIT"), none: any size
---@return ckpt.Job # its result: `{ entries=, bytes=, retired= }`; `retired` lists what vanished or
---  was rewritten meanwhile
function file_transfer.pack(dir, file, options)
  for name, value in pairs(options_of.check("pack", options, KNOWN)) do
    if type(value) ~= KNOWN[name] then
      misuse(("pack: `%s` is a %s, not a %s"):format(name, type(value), KNOWN[name]))
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
  return scratch(fs.parent(fs.absolute(dir)), ".ckpt-unpack-", function(at)
    return unpack_into(file, dir, at)
  end)
end

--- Unpacks over the files in a directory; files that are not in the archive stay. If another
--- process is unpacking there, it waits for that one instead.
---@param file string
---@param dir string
---@return ckpt.Job
function file_transfer.unpack(file, dir)
  return job.task(target_lock.fill, dir, function() return unpack_file(file, dir) end)
end

return file_transfer
