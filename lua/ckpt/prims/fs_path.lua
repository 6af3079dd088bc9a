--- Paths as texts: nothing here looks at a disk. Part of `ckpt.fs`.

jit.off(true, true)
local core = require "ckpt.core"
local misuse = require "ckpt.base.misuse"

local path = {}

local function check(text, name)
  if type(text) == "string" and not text:find("%z") then return text end
  local what = type(text) == "string" and "a text with a NUL byte" or "a " .. type(text)
  local hint = type(text) == "table"
      and "; where a Checkpoint's files are, its to_directory() or as_directory(fn) tell" or ""
  misuse(("fs.%s: a path is a text, not %s%s"):format(name, what, hint))
end

--- Joins with single slashes. An absolute part begins anew; empty parts are left out.
---@param first string
---@param ... string
---@return string
function path.join(first, ...)
  local out = check(first, "join")
  for i = 1, select("#", ...) do
    local part = check((select(i, ...)), "join")
    if part:sub(1, 1) == "/" or out == "" then
      out = part ~= "" and part or out
    elseif part ~= "" then
      out = out .. (out:sub(-1) == "/" and "" or "/") .. part
    end
  end
  return out
end

--- Returns the last component, without slashes behind it; "/" for the root, "" for "".
---@param text string
---@return string
function path.base(text)
  local bare = check(text, "base"):gsub("(.)/+$", "%1")
  return bare == "/" and bare or bare:match("[^/]*$")
end

--- Returns the part before the last component: "." for a bare name, "/" for the root and its
--- children.
---@param text string
---@return string
function path.parent(text)
  local bare = check(text, "parent"):gsub("(.)/+$", "%1")
  local head = bare:match("^(.*)/[^/]*$")
  if not head then return "." end
  head = head:gsub("/+$", "")
  return head == "" and "/" or head
end

--- Returns the shortest spelling, by the text alone: without ".", "..", and slashes that mean
--- nothing. Where a component is a link, "x/.." may be another place: `real` follows them.
---@param text string
---@return string
function path.normalize(text)
  local root = check(text, "normalize"):sub(1, 1) == "/"
  local parts = {}
  for part in text:gmatch("[^/]+") do
    if part == ".." and #parts > 0 and parts[#parts] ~= ".." then
      parts[#parts] = nil
    elseif part ~= "." and not (part == ".." and root) then
      parts[#parts + 1] = part
    end
  end
  local out = (root and "/" or "") .. table.concat(parts, "/")
  return out == "" and "." or out
end

--- Returns the normalized path from the root, by the working directory.
---@param text string
---@return string? path
---@return string? text
---@return string? name
function path.absolute(text)
  if check(text, "absolute"):sub(1, 1) == "/" then return path.normalize(text) end
  local here, why, name = core.fs.cwd()
  if not here then return nil, why, name end
  return path.normalize(here .. "/" .. text)
end

--- Replaces "~" and "~user" at the beginning by a home directory ($HOME first). An unknown user
--- stays as it is written.
---@param text string
---@return string
function path.expand(text)
  local user, rest = check(text, "expand"):match("^~([^/]*)(.*)$")
  if not user then return text end
  local home
  if user == "" then home = os.getenv("HOME") end
  if not home or home == "" then
    home = user == "" and core.fs.home() or user ~= "" and core.fs.home(user) or nil
  end
  if not home then return text end
  local out = home:gsub("/+$", "") .. rest
  return out == "" and "/" or out
end

return path
