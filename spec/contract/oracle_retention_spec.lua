-- What the checkpoint manager of Ray 1.0.0 was seen to do (spec/data/oracle/retention_ray100.json),
-- replayed through ckpt.CheckpointManager and through the rules of policies.
--
-- The recording and item 290 part where scores are equal: its heap gives back the newer one of two
-- equals, or the one that happens to be at its root; here the newer one always stays, as item 290
-- and `keep.best` say. So after the first tie of a trace its names may differ; the newest and the
-- scores of the best may not, and what is kept is compared with item 290's words instead.

package.path = "./spec/policy/?.lua;" .. package.path
local ckpt = require "ckpt"
local json = require "ckpt.json"
local library = require "library"
local support = require "support"

local record = json.decode(support.read "spec/data/oracle/retention_ray100.json")

local function values_of(list)
  local values = {}
  for i, checkpoint in ipairs(list) do values[i] = checkpoint.value end
  table.sort(values)
  return values
end

-- The score attribute: its name and 1, or -1 if low is good.
local function score_of(trace)
  local name = trace.score_attr:match "^min%-(.*)"
  return name or trace.score_attr, name and -1 or 1
end

local function limit_of(trace)
  local keep = trace.keep
  return type(keep) == "number" and keep > 0 and keep or math.huge
end

-- The first place in a trace whose outcome hangs on which of equal scores is better.
local function first_tie(trace)
  local name = score_of(trace)
  local limit, scores = limit_of(trace), {}
  for i, step in ipairs(trace.steps) do
    local best = i > 1 and trace.steps[i - 1].best or {}
    local is_new = not step.memory and scores[step.value] == nil
    local score = is_new and step.result[name] or nil
    scores[step.value] = scores[step.value] or score
    if score and #best == limit then
      if scores[best[1]] == score or (best[2] and scores[best[2]] == scores[best[1]]) then
        return i
      end
    end
  end
  return #trace.steps + 1
end

-- Item 290 said in another way: the first of all ranked ones by score, the newer before the older.
local function best_of(ranked, limit)
  local rows = {}
  for i, row in ipairs(ranked) do rows[i] = { value = row.value, score = row.score, at = i } end
  table.sort(rows, function(a, b)
    if a.score ~= b.score then return a.score > b.score end
    return a.at > b.at
  end)
  local best = {}
  for i = 1, math.min(limit, #rows) do best[i] = rows[i].value end
  table.sort(best)
  return best
end

-- Replays a trace; calls `check(i, step, seen)` after each step.
local function replay(trace, check)
  local name, sign = score_of(trace)
  local seen = { ranked = {}, deleted = {}, reported = {}, scores = {} }
  local log, stop = ckpt.testing.capture_log()
  local keep = type(trace.keep) == "number" and trace.keep or nil
  seen.manager = ckpt.CheckpointManager(keep, trace.score_attr, function(checkpoint)
    table.insert(seen.deleted, checkpoint.value)
  end)
  local before
  for i, step in ipairs(trace.steps) do
    seen.deleted = {}
    seen.manager:on_checkpoint { value = step.value, memory = step.memory, result = step.result }
    seen.is_new = not step.memory and step.value ~= before
    if seen.is_new then
      before = step.value
      table.insert(seen.reported, step)
      local score = step.result[name]
      seen.scores[step.value] = score
      if score then
        table.insert(seen.ranked, { value = step.value, score = sign * score })
      end
      -- The one error in the log is about a score that is missing.
      assert.equal(score and 0 or 1, #log)
      while #log > 0 do table.remove(log) end
    end
    check(i, step, seen)
  end
  stop()
end

describe("retention, as recorded", function()
  it("[287, 288, 289, 290, 291, 292] the object: every step of every trace", function()
    local count = { steps = 0, exact = 0, tied = 0 }
    for _, trace in ipairs(record.traces) do
      local tie, limit = first_tie(trace), limit_of(trace)
      local alive = {}
      replay(trace, function(i, step, seen)
        local title = ("trace %d, step %d"):format(trace.id, i)
        assert.is_true(step.exception == json.null, title)
        local best = seen.manager:best_checkpoints()
        assert.equal(step.newest, seen.manager:newest_checkpoint().value, title)
        local ours, theirs = {}, {}
        for k, checkpoint in ipairs(best) do ours[k] = seen.scores[checkpoint.value] end
        for k, value in ipairs(step.best) do theirs[k] = seen.scores[value] end
        assert.same(theirs, ours, title)
        assert.same(best_of(seen.ranked, limit), values_of(best), title)
        if i < tie then
          table.sort(step.best)
          assert.same(step.best, values_of(best), title)
          assert.same(step.deleted, seen.deleted, title)
          count.exact = count.exact + 1
        else
          count.tied = count.tied + 1
        end
        -- Nothing is deleted twice, and what is neither among the best nor the newest is gone.
        if seen.is_new then alive[step.value] = true end
        for _, value in ipairs(seen.deleted) do
          assert.is_true(alive[value], title)
          alive[value] = nil
        end
        local kept = {}
        for _, checkpoint in ipairs(best) do kept[checkpoint.value] = true end
        local newest = seen.manager.newest_persistent_checkpoint
        if newest then kept[newest.value] = true end
        assert.same(kept, alive, title)
        count.steps = count.steps + 1
      end)
    end
    assert.equal(40, #record.traces)
    assert.same({ steps = 516, exact = 324, tied = 192 }, count)
  end)

  it("[287] the object: a negative number", function()
    assert.equal("keep_checkpoints_num must be greater than 0.", record.keep_minus_1)
    assert.is_false((pcall(ckpt.CheckpointManager, -1, "acc")))
  end)

  it("[287, 288, 289, 290] the rules keep.best and keep.last: every report on disk", function()
    local count = { same = 0, blind = 0, all = 0 }
    for _, trace in ipairs(record.traces) do
      local name, sign = score_of(trace)
      local limit = limit_of(trace)
      local M = library.keys(limit == math.huge and "keep = keep.all()" or
        ("keep = any { keep.best('%s', %d, '%s'), keep.last(1) }"):format(name, limit,
          sign < 0 and "min" or "max"))
      local there = {} -- what the object has on disk, the oldest first
      replay(trace, function(i, step, seen)
        if not seen.is_new then return end
        there[#there + 1] = step
        local items = library.items(#there, function(item, k)
          item.name, item.metrics = there[k].value, there[k].result
        end)
        local kept = library.kept(M, items)
        local all, left, gone = {}, {}, {}
        for _, value in ipairs(seen.deleted) do gone[value] = true end
        for k = #there, 1, -1 do
          table.insert(all, 1, there[k].value)
          if gone[there[k].value] then
            table.remove(there, k)
          else
            table.insert(left, 1, all[1])
          end
        end
        local title = ("trace %d, step %d"):format(trace.id, i)
        if limit == math.huge then
          assert.equal(table.concat(all, " "), kept, title)
          count.all = count.all + 1
        elseif #seen.ranked == 0 then
          -- A rule that cannot judge keeps all; the object keeps the newest alone.
          assert.equal(table.concat(all, " "), kept, title)
          count.blind = count.blind + 1
        else
          assert.equal(table.concat(left, " "), kept, title)
          count.same = count.same + 1
        end
      end)
    end
    assert.same({ same = 343, blind = 36, all = 68 }, count)
  end)
end)
