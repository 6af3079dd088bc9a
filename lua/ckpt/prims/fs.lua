--- Files and directory trees. Paths are texts of any bytes but NUL; a table raises. A failure
--- returns nil, a text and a name ("ENOENT").
---
--- Trees are walked without following the links in them. What is said to be flushed survives a
--- crash of the machine once the function returned.

jit.off(true, true)
local core = require "ckpt.core"
local fs_glob = require "ckpt.prims.fs_glob"
local misuse = require "ckpt.base.misuse"
local path = require "ckpt.prims.fs_path"

---@class ckpt.Stat
---@field type "file"|"directory"|"link"|"other"
---@field size integer bytes
---@field mtime number seconds since 1970
---@field mode integer permission bits
---@field owner integer number of the user
---@field inode integer
---@field device integer

---@class ckpt.TreeEntry: ckpt.Stat
---@field path string relative to the root of the walk
---@field target? string of a link

---@class ckpt.CopyOptions
---@field exclude? string[] patterns of what is left out, as for `excluded`
---@field follow? boolean copies what links lead to, instead of the links
---@field flush? boolean makes the copy durable, but for the entry of its own name

---@class ckpt.fs: ckpt.core.fs
local fs = {}

for _, part in ipairs { core.fs, path } do
  for name, fn in pairs(part) do fs[name] = fn end
end
fs.home, fs.temporary = nil, nil

--- Runs through a tree.
---@param dir string
---@param fn? fun(entry: ckpt.TreeEntry): "skip"|nil called for each entry, a directory before what
---  is in it; "skip" leaves out what is below it
---@return ckpt.TreeEntry[]? # all that was not left out, each directory's names in byte order; at
---  most 2^20 entries (ELIMIT)
---@return string? text
---@return string? name
function fs.walk(dir, fn)
  path.join(dir) -- raises for what is no path
  local entries, text, name = core.fs.walk(dir)
  if not entries or not fn then return entries, text, name end
  local kept, skipped = {}, nil
  for _, entry in ipairs(entries) do
    if not (skipped and entry.path:sub(1, #skipped) == skipped) then
      kept[#kept + 1] = entry
      skipped = fn(entry) == "skip" and entry.path .. "/" or nil
    end
  end
  return kept
end

--- Tells whether a text fits a shell wildcard, as Python's `fnmatch.fnmatchcase`: `*` and `?` cross
--- slashes, case counts, `[...]` and `[!...]` are sets; there is no negation and no `**`.
---@param pattern string
---@param text string
---@return boolean
function fs.match(pattern, text) return core.fs.match(pattern, text) end

--- Tells whether patterns leave a path out: the one rule of all copies. They do if it, or a
--- directory above it, fits one of them, spelled with or without a leading "./".
---@param patterns string[]
---@param relative_path string below the root of the tree
---@return boolean
function fs.excluded(patterns, relative_path) return core.fs.excluded(patterns, relative_path) end

--- Returns the paths that fit a pattern of the shell, sorted: in each component `*`, `?` and
--- `[...]` stand for names that are there; a name that begins with a dot is found only by a pattern
--- that does. A component without these characters is a plain name.
---@param pattern string
---@return string[]
function fs.glob(pattern)
  if type(pattern) ~= "string" then misuse("fs.glob: the pattern is a " .. type(pattern)) end
  return fs_glob(fs, pattern)
end

--- Returns the directory for temporary files: $TMPDIR if it is an absolute path, else /tmp.
---@return string
function fs.temp()
  local named = os.getenv("TMPDIR")
  return named and named:sub(1, 1) == "/" and named or "/tmp"
end

--- Makes an empty directory that only this user may enter.
---@param parent? string where; nil: `temp()`
---@param prefix? string what its name begins with
---@return string? path
---@return string? text
---@return string? name
function fs.temporary_directory(parent, prefix)
  return core.fs.temporary(path.join(parent or fs.temp(), (prefix or "ckpt-")))
end

return fs
