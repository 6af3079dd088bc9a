--- ckpt.CheckpointManager: decides which of a trial's checkpoints are kept, as Ray 1.0.0 does: the
--- best by a score, of equal ones those that were there before, and the newest, whatever its score.
---
---   local keeper = ckpt.CheckpointManager(2, "min-loss", function(c) fs.remove_tree(c.value) end)
---   keeper:on_checkpoint { value = "/out/checkpoint_000007", result = { loss = 0.3 } }

jit.off(true, true)
local class = require "ckpt.base.class"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local score_heap = require "ckpt.ray.checkpoint.score_heap"

local ITERATION = "training_iteration"

---@class ckpt.KeptCheckpoint
---@field value any where it is; equal values are one checkpoint
---@field memory? boolean it is held in memory, and needs no deletion
---@field result? table what was reported with it; nested tables are named as in "info/loss"

---@class ckpt.CheckpointManager: ckpt.Class
---@overload fun(keep?: integer, score?: string, delete?: function): ckpt.CheckpointManager
---@field newest_persistent_checkpoint? ckpt.KeptCheckpoint
---@field newest_memory_checkpoint? ckpt.KeptCheckpoint
local CheckpointManager = class("CheckpointManager")

---@param keep? integer how many of the best; nil or 0: all of them
---@param score? string a name in the results, "min-" before it: low is good; nil: the
---iteration
---@param delete? fun(checkpoint: ckpt.KeptCheckpoint): any?, string?, string? removes one
function CheckpointManager:init(keep, score, delete)
  keep, score = keep or 0, score or ITERATION
  if type(keep) ~= "number" or keep ~= math.floor(keep) or keep < 0 then
    misuse(("how many to keep is 1 or more, 0 for all of them, not %s"):format(tostring(keep)))
  end
  if type(score) ~= "string" then
    misuse("the score is the name of something in the results, not a " .. type(score))
  end
  self.keep = keep == 0 and math.huge or keep
  self.sign = score:sub(1, 4) == "min-" and -1 or 1
  self.score = self.sign < 0 and score:sub(5) or score
  self.delete = delete or function() return true end
  self.best = {} -- a score_heap of { checkpoint, priority }
end

-- A number in a result by its name, or by its path: "info/loss".
local function lookup(result, name)
  local value = result[name]
  for part in name:gmatch "[^/]+" do
    if value ~= nil then break end
    result = type(result) == "table" and result[part]
  end
  if value == nil then value = result end
  return type(value) == "number" and value == value and value or nil
end

local function is_among(list, checkpoint)
  for _, row in ipairs(list) do
    if row.checkpoint == checkpoint then return true end
  end
  return false
end

-- Gives a checkpoint its place among the best; returns the one that has none there any more. One
-- that is as good as the worst of them gets no place: the older ones stay.
local function place(self, checkpoint, priority)
  local row = { checkpoint = checkpoint, priority = priority }
  if #self.best >= self.keep then return score_heap.push_pop(self.best, row).checkpoint end
  score_heap.push(self.best, row)
end

--- Takes note of a checkpoint, and deletes those that are no longer kept. A result without the
--- score is an error in the log; its checkpoint is the newest, but never one of the best.
---@param checkpoint ckpt.KeptCheckpoint
---@return true?
---@return string? text of the first deletion that failed; the checkpoint is forgotten all the same
---@return string? name
function CheckpointManager:on_checkpoint(checkpoint)
  if type(checkpoint) ~= "table" or checkpoint.value == nil then
    misuse("on_checkpoint: a checkpoint is a table with a `value`")
  end
  if checkpoint.memory then
    self.newest_memory_checkpoint = checkpoint
    return true
  end
  local before = self.newest_persistent_checkpoint
  if before and before.value == checkpoint.value then return true end
  self.newest_persistent_checkpoint = checkpoint

  local gone = {}
  if before and not is_among(self.best, before) then gone[1] = before end
  local number = lookup(checkpoint.result or {}, self.score)
  if number then
    local worst = place(self, checkpoint, self.sign * number)
    -- The newest stays until the next one comes; so does an older one at the same place, which a
    -- trial that went back has saved to again.
    if worst and worst.value ~= checkpoint.value then gone[#gone + 1] = worst end
  else
    log.error(("%s is not ranked: its result has no number \"%s\", which is the score"):format(
      tostring(checkpoint.value), self.score))
  end

  local text, name
  for _, old in ipairs(gone) do
    local done, why, kind = self.delete(old)
    if not done and type(why) == "string" and not text then text, name = why, kind or "EIO" end
  end
  if text then return nil, text, name end
  return true
end

--- Returns the best ones, the worst of them first.
---@return ckpt.KeptCheckpoint[]
function CheckpointManager:best_checkpoints()
  local list = {}
  for i, row in ipairs(score_heap.sorted(self.best)) do list[i] = row.checkpoint end
  return list
end

--- The newest of all by the iteration in its result, in memory or not; nil: there was none. (292.)
---@return ckpt.KeptCheckpoint?
function CheckpointManager:newest_checkpoint()
  local persistent, memory = self.newest_persistent_checkpoint, self.newest_memory_checkpoint
  if not persistent or not memory then return persistent or memory end
  local function iteration(checkpoint) return lookup(checkpoint.result or {}, ITERATION) or -1 end
  return iteration(memory) > iteration(persistent) and memory or persistent
end

return CheckpointManager
