--- Digests, as lower-case hexadecimal digits. Kinds: "xxh3-128" finds damage and is fast, "sha256"
--- withstands people.

jit.off(true, true)
local class = require "ckpt.base.class"
local core = require "ckpt.core"
local misuse = require "ckpt.base.misuse"

---@alias ckpt.DigestKind "xxh3-128"|"sha256"

local KINDS = { ["xxh3-128"] = true, sha256 = true }

---@class ckpt.digest
local digest = {}

local function check_kind(kind)
  if kind == nil or KINDS[kind] then return end
  misuse(("unknown digest %s: use xxh3-128 or sha256"):format(tostring(kind)))
end

---@class ckpt.Digest: ckpt.Class
local Digest = class("Digest")

function Digest:init(handle) self.handle = handle end

--- Adds a piece.
---@param data string
---@return ckpt.Digest? # itself
---@return string? text
---@return string? name
function Digest:update(data)
  if self.text then misuse("this digest has ended: hex() was called") end
  if type(data) ~= "string" then misuse("a digest is of texts, not of a " .. type(data)) end
  local ok, text, name = core.digest.add(self.handle, data)
  if not ok then return nil, text, name end
  return self
end

--- Returns the digest of all pieces, which ends it: later calls answer the same.
---@return string? hex
---@return string? text
---@return string? name
function Digest:hex()
  if not self.text then
    local hex, text, name = core.digest.finish(self.handle)
    if not hex then return nil, text, name end
    self.text, self.handle = hex, nil
  end
  return self.text
end

--- Makes a digest over data that comes in pieces.
---@param kind? ckpt.DigestKind "xxh3-128" if it is nil
---@return ckpt.Digest?
---@return string? text
---@return string? name
function digest.new(kind)
  check_kind(kind)
  local handle, text, name = core.digest.begin(kind)
  if not handle then return nil, text, name end
  return Digest(handle)
end

--- Returns the XXH3 digest of 128 bits.
---@param data string
---@return string hex 32 digits
function digest.xxh3(data) return core.digest.of(data, "xxh3-128") end

---@param data string
---@return string? hex 64 digits
---@return string? text
---@return string? name
function digest.sha256(data) return core.digest.of(data, "sha256") end

--- Returns the digest of a file as a checkpoint's manifest has it: the digest of the concatenated
--- digests of its blocks of 8 MiB. It is not that of its content in one piece.
---@param path string
---@param kind? ckpt.DigestKind "xxh3-128" if it is nil
---@return string? hex
---@return string? text
---@return string? name
function digest.file(path, kind)
  check_kind(kind)
  return core.digest.file(path, kind)
end

return digest
