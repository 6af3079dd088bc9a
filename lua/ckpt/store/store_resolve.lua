--- Resolves the name of a path or URI: to a filesystem and a path on it.

jit.off(true, true)
local fs = require "ckpt.prims.fs"
local octets = require "ckpt.base.octets"

---@class ckpt.Filesystem
---@field type_name string "local", or the scheme: "s3", "mem", one that was registered
---@field is_local boolean
---@field no_host boolean its URIs are those of files: scheme:///path
---@field query? string how a bucket is reached: "region=eu-west-1"
---@field uri fun(self: ckpt.Filesystem, path: string): string what ckpt.store takes for this path
local Filesystem = {}
Filesystem.__index = Filesystem

function Filesystem:uri(path)
  if self.is_local then return path end
  local uri = self.type_name .. (self.no_host and ":///" or "://") .. path
  return self.query and uri .. "?" .. self.query or uri
end

function Filesystem.__tostring(self) return "filesystem " .. self.type_name end

-- Equal ones are one object, so that they can be compared.
local known = {}

local function filesystem(type_name, no_host, query)
  local key = type_name .. (no_host and ":///" or "://") .. (query and "?" .. query or "")
  known[key] = known[key] or setmetatable({
    type_name = type_name, is_local = type_name == "local", no_host = no_host or false,
    query = query,
  }, Filesystem)
  return known[key]
end

-- One slash at the end is dropped; nothing else is changed.
local function trim(path) return #path > 1 and path:gsub("/$", "", 1) or path end

local function local_path(path)
  if path:find("%z") then return nil, "a path has no byte 0", "EINVAL" end
  return filesystem("local"), (trim(path))
end

local function file_uri(rest)
  if rest:sub(1, 1) ~= "/" then
    local host = rest:match("^[^/]*")
    return nil, ("file://%s: the host %q is not supported; a file URI has three slashes, as in "
      .. "file:///data/run"):format(rest, host), "EINVAL"
  end
  return local_path(octets.unescape(rest))
end

local resolve = {}

--- Returns the scheme of a URI in lower case, and the rest behind "://"; nothing for a path.
---@param text string
---@return string?
---@return string?
function resolve.split(text)
  local scheme, rest = text:match("^(%a[%w+.-]*)://(.*)$")
  if not scheme then return nil end
  return scheme:lower(), rest
end

--- Cuts the query off what stands behind "://" of a bucket's URI, as the engine does.
---@param scheme string
---@param rest string
---@return string path
---@return string? query
function resolve.cut(scheme, rest)
  if scheme ~= "s3" and scheme ~= "gs" then return rest end
  local path, query = rest:match("^(.-)%?([%w_.-]+=.*)$")
  return path or rest, query
end

--- A path is absolute, or begins with "~/". A URI has one of the `schemes`.
---@param text string
---@param schemes table<string, ckpt.StoreType|false> those that are known
---@return ckpt.Filesystem?
---@return string # the path on it; else the error's text
---@return string? name "EINVAL", "EUNSUPPORTED"
function resolve.resolve(text, schemes)
  if text == "" then return nil, "the path is empty", "EINVAL" end
  local scheme, rest = resolve.split(text)
  if scheme == "file" then return file_uri(rest) end
  if scheme and schemes[scheme] == nil then
    local names = {}
    for name in pairs(schemes) do names[#names + 1] = name end
    table.sort(names)
    return nil, ("%q: unrecognized scheme %q; there are %s"):format(text, scheme,
      table.concat(names, ", ")), "EUNSUPPORTED"
  end
  if scheme then
    local no_host = schemes[scheme] and schemes[scheme].no_host
    -- What stands where a host would is passed over.
    if no_host then rest = rest:match("^[^/]*/(.*)$") or "" end
    if rest:match("^/") or rest == "" then
      return nil, ("%q: after %s a %s is missing"):format(text, scheme .. (no_host and ":///"
        or "://"), no_host and "path" or "bucket or name"), "EINVAL"
    end
    local path, query = resolve.cut(scheme, rest)
    return filesystem(scheme, no_host, query), (trim(path))
  end
  if text == "~" or text:sub(1, 2) == "~/" then
    local home, why, name = fs.expand(text)
    if not home then return nil, why, name end
    return local_path(home)
  end
  if text:sub(1, 1) ~= "/" then
    return nil, ("%q has an empty scheme: give an absolute path, or a URI"):format(text), "EINVAL"
  end
  return local_path(text)
end

return resolve
