-- What the checkpoint manager of Ray 1.0.0 was seen to do (spec/data/oracle/retention_ray100.json),
-- replayed through ckpt.CheckpointManager and through the rules of policies.
--
-- Of equal scores the object keeps those that were there before (Ray's heap), and which of several
-- equal ones goes is as recorded, too. The rules of policies keep the newer one (docs/policies.md):
-- where the last place hangs on equal scores they are compared with those words instead.

local ckpt = require "ckpt"
local library = require "policy.rules"
local recording = require "recording"

local record = recording.read "retention_ray100"

local function values_of(list)
  local values = {}
  for i, checkpoint in ipairs(list) do values[i] = checkpoint.value end
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

-- Replays a trace; calls `check(i, step, seen)` after each step.
local function replay(trace, check)
  local name, sign = score_of(trace)
  local seen = { deleted = {}, scores = {} }
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
      local score = step.result[name]
      seen.scores[step.value] = score and sign * score
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
    local steps = 0
    for _, trace in ipairs(record.traces) do
      local alive = {}
      replay(trace, function(i, step, seen)
        local title = ("trace %d, step %d"):format(trace.id, i)
        local best = values_of(seen.manager:best_checkpoints())
        assert.same({ best = { unpack(step.best) }, deleted = { unpack(step.deleted) },
          newest = step.newest, exception = recording.null },
          { best = best, deleted = seen.deleted, newest = seen.manager:newest_checkpoint().value,
            exception = step.exception }, title)
        -- Nothing is deleted twice, and what is neither among the best nor the newest is gone.
        if seen.is_new then alive[step.value] = true end
        for _, value in ipairs(seen.deleted) do
          assert.is_true(alive[value], title)
          alive[value] = nil
        end
        local kept = {}
        for _, value in ipairs(best) do kept[value] = true end
        local newest = seen.manager.newest_persistent_checkpoint
        if newest then kept[newest.value] = true end
        assert.same(kept, alive, title)
        steps = steps + 1
      end)
    end
    assert.same({ 40, 516 }, { #record.traces, steps })
  end)

  it("[287] the object: a negative number", function()
    assert.equal("keep_checkpoints_num must be greater than 0.", record.keep_minus_1)
    assert.is_false((pcall(ckpt.CheckpointManager, -1, "acc")))
  end)

  -- What the rules keep of a list, said in another way: the first by score, the newer before the
  -- older, and the newest. Also: whether the last of these places hangs on equal scores.
  local function by_rules(there, scores, limit)
    local ranked, wanted = {}, {}
    for at, step in ipairs(there) do
      local score = scores[step.value]
      if score then ranked[#ranked + 1] = { at = at, score = score } end
    end
    table.sort(ranked, function(a, b)
      if a.score ~= b.score then return a.score > b.score end
      return a.at > b.at
    end)
    for i = 1, math.min(limit, #ranked) do wanted[ranked[i].at] = true end
    wanted[#there] = true
    local names = {}
    for at, step in ipairs(there) do
      if wanted[at] then names[#names + 1] = step.value end
    end
    local last, next_one = ranked[limit], ranked[limit + 1]
    return table.concat(names, " "), #ranked, next_one and last.score == next_one.score or false
  end

  it("[287, 288, 289] the rules keep.best and keep.last: every report on disk", function()
    local count = { same = 0, tied = 0, blind = 0, all = 0 }
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
        local wanted, ranked, is_tied = by_rules(there, seen.scores, limit)
        for _, value in ipairs(seen.deleted) do gone[value] = true end
        for k = #there, 1, -1 do
          table.insert(all, 1, there[k].value)
          if gone[there[k].value] then
            table.remove(there, k)
          else
            table.insert(left, 1, all[1])
          end
        end
        local case = limit == math.huge and "all" or ranked == 0 and "blind"
          or is_tied and "tied" or "same"
        count[case] = count[case] + 1
        local answers = {
          all = table.concat(all, " "),
          -- A rule that cannot judge keeps all; the object keeps the newest alone.
          blind = table.concat(all, " "),
          tied = wanted,
          same = table.concat(left, " "),
        }
        assert.equal(answers[case], kept, ("trace %d, step %d"):format(trace.id, i))
        if case == "same" then assert.equal(wanted, kept) end
      end)
    end
    assert.same({ same = 267, tied = 76, blind = 36, all = 68 }, count)
  end)
end)
