--- Places where files are kept: a directory, a bucket, memory, or a store written in Lua.
---
---     local place = assert(ckpt.store.open("s3://bucket/notes"))
---     assert(place:put("today.txt", "rain"))
---     local job = assert(ckpt.store.upload { dir = "out", uri = "s3://bucket/out" })
---
--- Trees are moved as jobs (`ckpt.job`). Beside the files of a tree lies a record of them: digests,
--- modes, times, links, empty directories. Where it is, the tree is whole, and a download is held
--- against it. A tree without one, which another tool put there, is fetched as it is listed.

jit.off(true, true)
local core = require "ckpt.core"
local job = require "ckpt.job.job"
local Store = require "ckpt.store.store_object"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"
local resolve = require "ckpt.store.store_resolve"

---@class ckpt.store
local store = {}

---@class ckpt.StoreType
---@field open fun(uri: string): table a store: a table with the methods `get`, `put`, `list` and
---  `delete` of ckpt.Store, and as many of the others as it can have
---@field no_host? boolean its URIs are "scheme:///path", as Arrow's "mock" has them: a host is
---  passed over

-- Scheme -> the argument of register(); false: one of the engine's.
---@type table<string, ckpt.StoreType|false>
local schemes = {}
for _, scheme in ipairs(core.store.schemes) do schemes[scheme] = false end

-- Objects in memory live as long as somebody has their store open: as long as this process, here.
local memories = {}

local function keep_memory(uri)
  local host = uri:match("^[mM][eE][mM]://([^/]+)")
  if host and not memories[host] then memories[host] = core.store.open("mem://" .. host) end
end

--- Makes a scheme of URIs known, which opens stores written in Lua. A scheme that was registered
--- before is replaced; those of the engine (file, gs, s3, mem) cannot be.
---@param scheme string letters, digits, "+", "-", "."
---@param store_type ckpt.StoreType
function store.register(scheme, store_type)
  if type(scheme) ~= "string" or not scheme:match("^%a[%w+.-]*$") then
    misuse("store.register: a scheme is a text of letters, digits, +, - and dots")
  end
  if type(store_type) ~= "table" or type(store_type.open) ~= "function" then
    misuse("store.register: a store type is a table with a function `open`")
  end
  if store_type.no_host ~= nil and type(store_type.no_host) ~= "boolean" then
    misuse(("store.register: `no_host` is a %s, not a boolean"):format(type(store_type.no_host)))
  end
  scheme = scheme:lower()
  if schemes[scheme] == false then
    misuse(("store.register: %s:// is one of the engine's own"):format(scheme))
  end
  schemes[scheme] = store_type
end

--- Resolves the name of a path or URI.
---@param uri string an absolute path, "~/x", or a URI
---@return ckpt.Filesystem?
---@return string # the path on it, without the scheme; else the error's text
---@return string? name "EINVAL", "EUNSUPPORTED"
function store.resolve(uri)
  if type(uri) ~= "string" then
    misuse("store.resolve: a path or URI is a text, not a " .. type(uri))
  end
  return resolve.resolve(uri, schemes)
end

-- Returns the address for the engine, or for a Lua store's open; and that store's type.
local function address(uri)
  local filesystem, path, name = resolve.resolve(uri, schemes)
  if not filesystem then return nil, path, name end
  if filesystem.is_local then return path, nil end
  keep_memory(uri)
  return filesystem:uri(path), schemes[filesystem.type_name] or nil
end

local function open(uri, environment)
  local where, kind, name = address(uri)
  if not where then return nil, kind, name end
  local inner, text
  if kind then
    inner, text, name = kind.open(where)
  else
    inner, text, name = core.store.open(where, environment and { environment = environment })
  end
  if kind and type(inner) ~= "table" and (inner or type(text) ~= "string") then
    return nil, ("the scheme of %s: its open returned a %s, not a store"):format(uri, type(inner)),
      "EINVAL"
  end
  if not inner then return nil, text, name end
  return Store(inner, uri)
end

local function check_open(options)
  if type(options) ~= "table" then misuse("store.open: options are a table") end
  for key, value in pairs(options) do
    if key ~= "environment" then misuse("store.open: unknown option " .. tostring(key)) end
    if type(value) ~= "table" then misuse("store.open: `environment` is a list of NAME=VALUE") end
  end
end

--- Opens a store. Nothing is created, and nothing has to be there.
---@param uri string as for resolve
---@param options? { environment?: string[] } "NAME=VALUE" texts, laid over the process's
---  environment where the keys, the region and the endpoint are looked for
---@return ckpt.Store?
---@return string? text
---@return string? name
function store.open(uri, options)
  if type(uri) ~= "string" then
    misuse("store.open: a path or URI is a text, not a " .. type(uri))
  end
  if options ~= nil then check_open(options) end
  return open(uri, options and options.environment)
end

-- ---- trees ----

local function check(what, options, needed)
  if type(options) ~= "table" then
    misuse(("store.%s: it takes a table of options"):format(what))
  end
  local known = {
    exclude = "table", merge = "boolean", unfinished = "boolean", environment = "table",
  }
  for key, kind in pairs(needed) do known[key] = kind end
  for key, value in pairs(options) do
    local kind = known[key]
    if not kind then
      misuse(("store.%s: unknown option %s%s"):format(what, tostring(key),
        options_of.hint(key, known)))
    elseif type(value) ~= kind then
      misuse(("store.%s: `%s` is a %s, not a %s%s"):format(what, key, type(value), kind,
        key ~= "exclude" and type(value) == "table" and getmetatable(value)
        and "; of a Checkpoint, to_directory() and as_directory() give a path" or ""))
    end
  end
  for key in pairs(needed) do
    if options[key] == nil then misuse(("store.%s: `%s` is missing"):format(what, key)) end
  end
  for i, pattern in ipairs(options.exclude or {}) do
    if type(pattern) ~= "string" then
      misuse(("store.%s: pattern %d of `exclude` is a %s"):format(what, i, type(pattern)))
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
    return require("ckpt.store.store_trees")[what](place, options)
  end
  return job.transfer({
    kind = what, dir = options.dir, uri = where, exclude = options.exclude, merge = options.merge,
    unfinished = options.unfinished, environment = options.environment,
  }, ("the %s of %s"):format(what, options.uri))
end

---@class ckpt.TreeOptions
---@field dir string a directory
---@field uri string the place
---@field exclude? string[] patterns, as ckpt.fs.excluded has them
---@field merge? boolean of a download: into a directory that may be there
---@field unfinished? boolean of a download: what an upload that was cut off has sent, too
---@field environment? string[] "NAME=VALUE", as for open

--- Starts to bring a place up to a directory: each file that is not there with the same size and
--- time is sent. Nothing is removed there. An upload that was cut off goes on where it was. The job
--- fails with ENOENT if the directory is not there, with ERETIRED if it goes on changing while it
--- is read.
---@param options ckpt.TreeOptions
---@return ckpt.Job?
---@return string? text
---@return string? name
function store.upload(options)
  check("upload", options, { dir = "string", uri = "string" })
  return start("upload", options)
end

--- Starts to fetch all files of a place. The directory must be absent (EEXISTS); it appears at
--- once, when everything is there and agrees with the record (ECORRUPT). With `merge` the files are
--- moved over those that are there, each at once, when all have come. ENOENT: nothing is at the
--- place. ECONFLICT: an upload to it goes on, or was cut off; with `unfinished` it brings the files
--- that there are.
---@param options ckpt.TreeOptions
---@return ckpt.Job?
---@return string? text
---@return string? name
function store.download(options)
  check("download", options, { dir = "string", uri = "string" })
  return start("download", options)
end

--- Starts to remove all files of a place; if there are none, that is no error.
---@param options { uri: string, environment?: string[] }
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
