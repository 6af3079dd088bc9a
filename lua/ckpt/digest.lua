--- Digests, as lower-case hexadecimal digits. Kinds: "xxh3-128" finds damage and is fast, "sha256"
--- withstands people.

local class = require "ckpt.class"
local core = require "ckpt.core"

---@alias ckpt.DigestKind "xxh3-128"|"sha256"

local KINDS = { ["xxh3-128"] = true, sha256 = true }

---@class ckpt.digest
local digest = {}

local function check_kind(kind)
  if kind == nil or KINDS[kind] then return end
  error(("unknown digest %s: use xxh3-128 or sha256"):format(tostring(kind)), 3)
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
  if self.text then error("this digest has ended: hex() was called", 2) end
  if type(data) ~= "string" then error("a digest is of texts, not of a " .. type(data), 2) end
  local ok, text, name = core.digest.add(self.handle, data)
  if not ok then return nil, text, name end
  return self
end

--- The digest of all pieces, which ends it: later calls answer the same.
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

--- A digest over data that comes in pieces.
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

--- XXH3 of 128 bits.
---@param data string
---@return string hex 32 digits
function digest.xxh3(data) return core.digest.of(data, "xxh3-128") end

---@param data string
---@return string? hex 64 digits
---@return string? text
---@return string? name
function digest.sha256(data) return core.digest.of(data, "sha256") end

--- The digest of a file as a checkpoint's manifest has it: the digest of the concatenated digests
--- of its blocks of 8 MiB. Not that of its content in one piece.
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
