--- Lists a checkpoint path for the functions of `ckpt.restarts`.

jit.off(true, true)
local fs = require "ckpt.prims.fs"
local log = require "ckpt.base.log"
local restarts = require "ckpt.adaptdl.restarts"

local RECORD_MAX = 2 ^ 20 -- bytes

local restart_listing = {}

-- Adds the order that the commit record of a checkpoint tells. Checkpoints of AdaptDL have none.
local function add_record(entry, path)
  local data, text, name = fs.read(path, RECORD_MAX)
  if not data and name == "ENOENT" then return end
  local record = data and restarts.decode(data)
  if record then
    entry.sequence, entry.replaced = record.sequence, record.replaced
  else
    log.warn(("the number alone orders %s: its commit record cannot be used: %s"):format(
      entry.name, text or path))
  end
end

--- Reads it.
---@param path string
---@return ckpt.RestartEntry[]? entries those with the prefix
---@return integer|string count of all entries, whatever their names; else the error's text
---@return string? name
function restart_listing.read(path)
  local names, text, name = fs.list(path)
  if not names then return nil, text, name end
  local entries = {}
  for _, each in ipairs(names) do
    local entry = { name = each }
    if restarts.number(each) then add_record(entry, fs.join(path, each, restarts.RECORD)) end
    if restarts.has_prefix(each) then entries[#entries + 1] = entry end
  end
  return entries, #names
end

return restart_listing
