--- Finds the newest one of the directories `checkpoint-<N>` of a job, N being the restart that
--- wrote it. These are functions of a listing alone: nothing here looks at a disk.
---
--- The greatest number is the newest, unless a commit record says otherwise: the counter of
--- restarts can go backwards (a job that is submitted anew begins at 0), and then a save that dies
--- before it has removed the older directories leaves a higher number that is older. The record, a
--- small file in the directory that was renamed with it, counts saves, and names what was there
--- before it.

jit.off(true, true)
local plain_json = require "ckpt.base.plain_json"

local PREFIX = "checkpoint-"
local SEQUENCE_MAX = 1e13 -- the next ones are still written with all their digits

---@class ckpt.Restarts
local restarts = {}

--- The record's name in a checkpoint directory: a dot file, which readers of states never open.
restarts.RECORD = ".commit"

---@class ckpt.RestartEntry an entry of the checkpoint path
---@field name string
---@field sequence? integer of its commit record: the n-th save
---@field replaced? table<string, true> what the record says was there before it

--- Returns the name of the directory of a restart.
---@param number string|integer
---@return string
function restarts.name(number) return PREFIX .. number end

--- Tells whether a name has the prefix, exactly: `checkpoint_1` and `Checkpoint-1` do not.
---@param name string
---@return boolean
function restarts.has_prefix(name) return name:sub(1, #PREFIX) == PREFIX end

--- Returns the number of a directory's name, as text, because there are more digits than a number
--- holds. nil: it lacks the prefix, or a plain decimal number behind it (`03`, `+5`, `best` are
--- none). A negative one is `false`: it is a number, but never beats the 0 that the choice starts
--- with.
---@param name string
---@return string|false|nil
function restarts.number(name)
  local suffix = restarts.has_prefix(name) and name:sub(#PREFIX + 1) or ""
  if suffix:find "^%-[1-9]%d*$" then return false end
  return suffix == "0" and suffix or suffix:match "^[1-9]%d*$"
end

-- Compares plain decimal numbers as text: the longer one is the greater.
local function greater(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end

-- Returns the newest of a set by its records, nil if none has one.
local function last_recorded(set)
  local best
  for _, entry in ipairs(set) do
    if entry.sequence then
      local later = not best or entry.sequence > best.sequence
      local same = best and entry.sequence == best.sequence
      if later or (same and greater(entry.number, best.number)) then best = entry end
    end
  end
  return best
end

-- Returns the place of the newest in a set: by number, among those that the last record does not
-- put behind itself.
local function newest(set)
  local recorded = last_recorded(set)
  local best
  for i, entry in ipairs(set) do
    local stands = entry == recorded
      or not recorded
      or not (entry.sequence or recorded.replaced[entry.name])
    if stands and (not best or greater(entry.number, set[best].number)) then best = i end
  end
  return best
end

---@class ckpt.RestartChoice
---@field number string the restart to load, "0" if there is none
---@field order string[] the numbers that are there, newest first
---@field skipped string[] names with the prefix that are no plain decimal number

--- Chooses. Files count like directories.
---@param entries ckpt.RestartEntry[]
---@return ckpt.RestartChoice
function restarts.choose(entries)
  local set, skipped, order = {}, {}, {}
  for _, entry in ipairs(entries) do
    local number = restarts.number(entry.name)
    if number then
      set[#set + 1] = { name = entry.name, number = number,
        sequence = entry.sequence, replaced = entry.replaced }
    elseif number == nil and restarts.has_prefix(entry.name) then
      skipped[#skipped + 1] = entry.name
    end
  end
  while #set > 0 do order[#order + 1] = table.remove(set, newest(set)).number end
  return { number = order[1] or "0", order = order, skipped = skipped }
end

--- Tells whether a number is the one of the restart before `count`, text against integer.
---@param number string
---@param count integer
---@return boolean
function restarts.is_last(number, count) return number == ("%d"):format(count - 1) end

--- Returns the sequence of the next save.
---@param entries ckpt.RestartEntry[]
---@return integer
function restarts.next_sequence(entries)
  local last = 0
  for _, entry in ipairs(entries) do last = math.max(last, entry.sequence or 0) end
  return last + 1
end

--- Returns the names to remove after the save `sequence` was committed as `name`: everything else
--- with the prefix, but no save that was committed at the same time or after it.
---@param entries ckpt.RestartEntry[]
---@param name string
---@param sequence integer
---@return string[] names
function restarts.outdated(entries, name, sequence)
  local names = {}
  for _, entry in ipairs(entries) do
    local later = entry.sequence and entry.sequence >= sequence
    if restarts.has_prefix(entry.name) and entry.name ~= name and not later then
      names[#names + 1] = entry.name
    end
  end
  return names
end

--- Makes the text of a commit record.
---@param sequence integer
---@param entries ckpt.RestartEntry[] what was there before
---@return string
function restarts.encode(sequence, entries)
  local names = {}
  for _, entry in ipairs(entries) do
    if restarts.number(entry.name) then names[#names + 1] = entry.name end
  end
  return plain_json.encode { sequence = sequence, replaced = names }
end

--- Reads the text of one.
---@param text string
---@return { sequence: integer, replaced: table<string, true> }? # nil: it is none
function restarts.decode(text)
  local record = plain_json.decode(text)
  if type(record) ~= "table" or type(record.replaced) ~= "table" then return nil end
  local sequence = record.sequence
  -- A sequence that cannot be counted on would be the greatest for ever.
  if type(sequence) ~= "number" or sequence ~= math.floor(sequence) then return nil end
  if sequence < 1 or sequence > SEQUENCE_MAX then return nil end
  local replaced = {}
  for _, name in ipairs(record.replaced) do replaced[name] = true end
  return { sequence = sequence, replaced = replaced }
end

return restarts
