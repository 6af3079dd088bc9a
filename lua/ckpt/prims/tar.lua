--- Archives of directories: tar, as it is or compressed with gzip or zstd. A helper process reads
--- and writes them, so that a hostile archive cannot harm this one. All of it blocks, and streams.

jit.off(true, true)
local core = require "ckpt.core"
local fs = require "ckpt.prims.fs"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"
local scratch = require "ckpt.prims.scratch"

---@class ckpt.tar
local tar = {}

-- An archive in memory may have so many bytes.
local TEXT_MAX = 2 ^ 30

---@class ckpt.UnpackLimits
---@field bytes_max? integer what it may grow to; 1 TiB
---@field entries_max? integer 4 million

local LIMITS = { bytes_max = true, entries_max = true }

local function check(what, ...)
  for i = 1, select("#", ...) do
    local value = select(i, ...)
    if type(value) ~= "string" then
      misuse(("tar.%s: argument %d is a %s, not a text"):format(what, i, type(value)))
    end
  end
end

--- Packs all files in a directory. Links stay links, modes and times are kept.
---@param dir string
---@param file string not there yet; its name tells how it is compressed: .tar, .tar.gz, .tar.zst
---@return true?
---@return string? text
---@return string? name "ERETIRED": something vanished meanwhile
function tar.pack(dir, file)
  check("pack", dir, file)
  return core.tar.pack { dir = dir, file = file }
end

--- Unpacks into a directory that is absent or empty. It takes files, directories and links that
--- stay inside; an archive with anything else is refused (EFORMAT), and so is one that is larger
--- than the limits (ELIMIT): then the directory is as it was.
---@param file string
---@param dir string
---@param limits? ckpt.UnpackLimits
---@return true?
---@return string? text
---@return string? name
function tar.unpack(file, dir, limits)
  check("unpack", file, dir)
  limits = options_of.check("tar.unpack", limits, LIMITS)
  return core.tar.unpack {
    file = file, dir = dir, bytes_max = limits.bytes_max, entries_max = limits.entries_max,
  }
end

-- Calls `fn` with the path of a file in a directory that is gone afterwards.
local function with_file(fn)
  return scratch(nil, nil, function(dir) return fn(fs.join(dir, "text.tar")) end)
end

--- Packs a directory into a text, an archive that is not compressed. At most 1 GiB (ELIMIT).
---@param dir string
---@return string?
---@return string? text
---@return string? name
function tar.pack_text(dir)
  check("pack_text", dir)
  return with_file(function(file)
    local done, text, name = tar.pack(dir, file)
    if not done then return nil, text, name end
    return fs.read(file, TEXT_MAX)
  end)
end

--- Unpacks such a text, as unpack() does.
---@param archive string
---@param dir string
---@param limits? ckpt.UnpackLimits
---@return true?
---@return string? text
---@return string? name
function tar.unpack_text(archive, dir, limits)
  check("unpack_text", archive, dir)
  if #archive > TEXT_MAX then return nil, "the archive is larger than 1 GiB", "ELIMIT" end
  return with_file(function(file)
    local done, text, name = fs.write(file, archive)
    if not done then return nil, text, name end
    return tar.unpack(file, dir, limits)
  end)
end

return tar
