--- Places where files are kept: a directory, a bucket, memory, or a store written in Lua.
---
---     local place = assert(ckpt.store.open("s3://bucket/notes"))
---     assert(place:put("today.txt", "rain"))
---     local job = assert(ckpt.store.upload { dir = "out", uri = "s3://bucket/out" })
---
--- Trees are moved as jobs (`ckpt.job`). Beside the files of a tree lies a record of them: digests,
--- modes, times, links, empty directories. Where it is, the tree is whole, and a download is held
--- against it. A tree without one, which another tool put there, is fetched as it is listed.

local core = require "ckpt.core"
local job = require "ckpt.job"
local Store = require "ckpt.store_object"
local resolve = require "ckpt.store_resolve"

---@class ckpt.store
local store = {}

---@class ckpt.StoreType
---@field open fun(uri: string): table a store: a table with the methods `get`, `put`, `list` and
---  `delete` of ckpt.Store, and as many of the others as it can have

-- Scheme -> what register() was given; false: one of the engine's.
---@type table<string, ckpt.StoreType|false>
local schemes = { s3 = false, mem = false }

-- What is in memory lives as long as somebody has it open: as long as this process, here.
local memories = {}

local function keep_memory(uri)
  local host = uri:match("^[mM][eE][mM]://([^/]+)")
  if host and not memories[host] then memories[host] = core.store.open("mem://" .. host) end
end

--- Makes a scheme of URIs known, which opens stores written in Lua. A scheme that was registered
--- before is replaced; those of the engine (file, s3, mem) cannot be.
---@param scheme string letters, digits, "+", "-", "."
---@param store_type ckpt.StoreType
function store.register(scheme, store_type)
  if type(scheme) ~= "string" or not scheme:match("^%a[%w+.-]*$") then
    error("store.register: a scheme is a text of letters, digits, +, - and dots", 2)
  end
  if type(store_type) ~= "table" or type(store_type.open) ~= "function" then
    error("store.register: a store type is a table with a function `open`", 2)
  end
  scheme = scheme:lower()
  if scheme == "file" or schemes[scheme] == false then
    error(("store.register: %s:// is one of the engine's own"):format(scheme), 2)
  end
  schemes[scheme] = store_type
end

--- What a path or URI names. (Items 4, 7-9.)
---@param uri string an absolute path, "~/x", or a URI
---@return ckpt.Filesystem?
---@return string # the path on it, without the scheme; else the error's text
---@return string? name "EINVAL", "EUNSUPPORTED"
function store.resolve(uri)
  if type(uri) ~= "string" then
    error("store.resolve: a path or URI is a text, not a " .. type(uri), 2)
  end
  return resolve.resolve(uri, schemes)
end

-- What the engine, or a Lua store's open, is asked with; and that store's type.
local function address(uri)
  local filesystem, path, name = resolve.resolve(uri, schemes)
  if not filesystem then return nil, path, name end
  if filesystem.is_local then return path, nil end
  keep_memory(uri)
  return filesystem:uri(path), schemes[filesystem.type_name] or nil
end

local function open(uri)
  local where, kind, name = address(uri)
  if not where then return nil, kind, name end
  local inner, text
  if kind then
    inner, text, name = kind.open(where)
  else
    inner, text, name = core.store.open(where)
  end
  if kind and type(inner) ~= "table" and (inner or type(text) ~= "string") then
    return nil, ("the scheme of %s: its open returned a %s, not a store"):format(uri, type(inner)),
      "EINVAL"
  end
  if not inner then return nil, text, name end
  return Store(inner, uri)
end

--- Opens a store. Nothing is created, and nothing has to be there.
---@param uri string as for resolve
---@return ckpt.Store?
---@return string? text
---@return string? name
function store.open(uri)
  if type(uri) ~= "string" then
    error("store.open: a path or URI is a text, not a " .. type(uri), 2)
  end
  return open(uri)
end

-- ---- trees ----

local function check(what, options, needed)
  if type(options) ~= "table" then
    error(("store.%s: it takes a table of options"):format(what), 3)
  end
  for key, value in pairs(options) do
    local kind = needed[key] or (key == "exclude" and "table")
      or ((key == "merge" or key == "unfinished") and "boolean")
    if not kind then
      error(("store.%s: unknown option %s"):format(what, tostring(key)), 3)
    elseif type(value) ~= kind then
      error(("store.%s: `%s` is a %s, not a %s%s"):format(what, key, type(value), kind,
        key ~= "exclude" and type(value) == "table" and getmetatable(value)
        and "; of a Checkpoint, to_directory() and as_directory() give a path" or ""), 3)
    end
  end
  for key in pairs(needed) do
    if options[key] == nil then error(("store.%s: `%s` is missing"):format(what, key), 3) end
  end
  for i, pattern in ipairs(options.exclude or {}) do
    if type(pattern) ~= "string" then
      error(("store.%s: pattern %d of `exclude` is a %s"):format(what, i, type(pattern)), 3)
    end
  end
end

local function start(what, options)
  local where, kind, name = address(options.uri)
  if not where then return nil, kind, name end
  if kind then
    local place, text
    place, text, name = open(options.uri)
    if not place then return nil, text, name end
    return require("ckpt.store_trees")[what](place, options)
  end
  return job.transfer({
    kind = what, dir = options.dir, uri = where, exclude = options.exclude, merge = options.merge,
    unfinished = options.unfinished,
  }, ("the %s of %s"):format(what, options.uri))
end

---@class ckpt.TreeOptions
---@field dir string a directory
---@field uri string the place
---@field exclude? string[] patterns, as ckpt.fs.excluded has them
---@field merge? boolean of a download: into a directory that may be there
---@field unfinished? boolean of a download: what an upload that was cut off has sent, too

--- Starts to bring a place up to a directory: each file that is not there with the same size and
--- time is sent. Nothing is removed there. One that was cut off goes on where it was.
--- (Items 183, 184, G 47, 48, 178.) The job fails with
--- ENOENT if the directory is not there, with ERETIRED if it goes on changing while it is read.
---@param options ckpt.TreeOptions
---@return ckpt.Job?
---@return string? text
---@return string? name
function store.upload(options)
  check("upload", options, { dir = "string", uri = "string" })
  return start("upload", options)
end

--- Starts to fetch all that is at a place. The directory must be absent (EEXISTS); it appears at
--- once, when everything is there and agrees with the record (ECORRUPT). With `merge` the files are
--- moved over what is there, each at once, when all have come. ENOENT: nothing is at the place.
--- ECONFLICT: an upload to it goes on, or was cut off; with `unfinished` it brings what there is.
--- (Items 38, 186, G 38, 41, 44.)
---@param options ckpt.TreeOptions
---@return ckpt.Job?
---@return string? text
---@return string? name
function store.download(options)
  check("download", options, { dir = "string", uri = "string" })
  return start("download", options)
end

--- Starts to remove all that is at a place; that there is nothing is no error. (Item 185.)
---@param options { uri: string }
---@return ckpt.Job?
---@return string? text
---@return string? name
function store.delete(options)
  check("delete", options, { uri = "string" })
  return start("delete", options)
end

--- Starts to copy a directory of this machine, as a download does: `to` must be absent, or `merge`.
---@param options { from: string, to: string, exclude?: string[], merge?: boolean }
---@return ckpt.Job?
---@return string? text
---@return string? name
function store.copy(options)
  check("copy", options, { from = "string", to = "string" })
  return job.transfer({
    kind = "copy", dir = options.from, to = options.to, exclude = options.exclude,
    merge = options.merge,
  }, ("the copy of %s"):format(options.from))
end

return store
