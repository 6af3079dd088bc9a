--- Reads the recordings of spec/data/oracle, whose README.md says how they are written.

local decode = require "ckpt.base.json_decode"
local marks = require "ckpt.base.json_marks"
local support = require "support"

local DEPTH_MAX = 100

local recording = {}

--- What stands for `null`.
recording.null = marks.null

-- A record of a list: its values in the order of `members`. A record that has others is an object.
local function record_of(row, members)
  if row[1] == nil then return row end
  local record = {}
  for i, value in ipairs(row) do record[members[i]] = value end
  return record
end

local function name_members(value, members)
  for key, member in pairs(value) do
    if type(member) == "table" then
      if members[key] then
        for i, row in ipairs(member) do member[i] = record_of(row, members[key]) end
      end
      name_members(member, members)
    end
  end
end

--- A recording, with the members of all its records.
---@param name string its file, without the ending
function recording.read(name)
  local path = ("%s/spec/data/oracle/%s.json"):format(support.root, name)
  -- With wrong values in one of them: spec/contract/wrong_values.lua.
  local wrong = os.getenv "CKPT_RECORDINGS"
  local text = wrong and support.read(("%s/%s.json"):format(wrong, name)) or support.read(path)
  local recorded = assert(decode(assert(text, path), nil, DEPTH_MAX))
  local members = recorded.members or {}
  recorded.members = nil
  name_members(recorded, members)
  return recorded
end

return recording
