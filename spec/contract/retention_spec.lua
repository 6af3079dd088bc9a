-- Keeping the best and the newest: items 287-292, by the object and by the rules of policies.

local ckpt = require "ckpt"
local library = require "policy.rules"

describe("ckpt.CheckpointManager", function()
  local log, stop
  before_each(function() log, stop = ckpt.testing.capture_log() end)
  after_each(function() stop() end)

  -- An object and what it deleted; `report(score...)` takes checkpoints 1, 2, ... with "acc".
  local function keeper(keep, score)
    local deleted = {}
    local self = ckpt.CheckpointManager(keep, score or "acc", function(checkpoint)
      deleted[#deleted + 1] = checkpoint.value
      return true
    end)
    local count = 0
    local function report(...)
      for i = 1, select("#", ...) do
        count = count + 1
        local acc = select(i, ...)
        self:on_checkpoint { value = count,
          result = { training_iteration = count, acc = acc or nil } }
      end
      return deleted
    end
    return self, report
  end

  local function best(self)
    local values = {}
    for i, checkpoint in ipairs(self:best_checkpoints()) do values[i] = checkpoint.value end
    return values
  end

  it("[287] keeps all of them without a number, or with 0; a negative one is an error", function()
    for _, keep in ipairs { 0, false } do
      local self, report = keeper(keep or nil)
      assert.same({}, report(5, 4, 3, 2, 1, 6))
      assert.same({ 5, 4, 3, 2, 1, 6 }, best(self))
    end
    for _, keep in ipairs { -1, 1.5, "2" } do
      local fine, why = pcall(ckpt.CheckpointManager, keep, "acc")
      assert.is_false(fine)
      assert.truthy(why:find("how many to keep", 1, true), why)
    end
    local self, report = keeper(2)
    assert.same({ 1, 2, 3 }, report(1, 2, 3, 4, 5))
    assert.same({ 4, 5 }, best(self))
  end)

  it("[288] with min- before the name low is good", function()
    local self, report = keeper(2, "min-acc")
    assert.same({ 3 }, report(1, 2, 3, 2.5))
    assert.same({ 2, 1 }, best(self))
    self, report = keeper(2, "acc")
    assert.same({ 1, 2 }, report(1, 2, 3, 2.5))
    assert.same({ 4, 3 }, best(self))
  end)

  it("[288] without the score it is an error in the log, and not ranked, but the newest", function()
    local self, report = keeper(2)
    assert.same({}, report(1, false))
    assert.equal(1, #log)
    assert.equal("error", log[1].level)
    assert.truthy(log[1].text:find('"acc"', 1, true), log[1].text)
    assert.same({ 1 }, best(self))
    assert.equal(2, self:newest_checkpoint().value)
    assert.same({ 2 }, report(0.5))
    assert.same({ 3, 1 }, best(self))
    for _, score in ipairs { 0 / 0, "high", {}, true } do
      report(score)
      assert.same({ 3, 1 }, best(self))
    end
    assert.equal(5, #log)
  end)

  it("[288] finds a score in nested results", function()
    local self = ckpt.CheckpointManager(1, "min-info/loss")
    for i, loss in ipairs { 3, 1, 2 } do
      self:on_checkpoint { value = i, result = { info = { loss = loss } } }
    end
    assert.same({ 2 }, best(self))
    self:on_checkpoint { value = 4, result = { ["info/loss"] = 0 } }
    assert.same({ 4 }, best(self))
    self:on_checkpoint { value = 5, result = { info = 7 } }
    assert.same({ 4 }, best(self))
    assert.equal(1, #log)
  end)

  it("[289] keeps the newest even if it is the worst; it goes with the next one", function()
    local self, report = keeper(1)
    assert.same({}, report(5, 1))
    assert.same({ 1 }, best(self))
    assert.equal(2, self:newest_checkpoint().value)
    assert.same({ 2 }, report(2))
    assert.same({ 2, 3, 1 }, report(7))
    assert.same({ 4 }, best(self))
  end)

  it("[290] of equal scores the older ones stay; which of them goes is as in Ray's heap", function()
    local self, report = keeper(2)
    assert.same({}, report(3, 3, 3))
    assert.same({ 1, 2 }, best(self))
    assert.same({ 3, 1 }, report(9))
    assert.same({ 2, 4 }, best(self))
    assert.same({ 3, 1, 5, 2 }, report(3, 9, 9))
    assert.same({ 4, 6 }, best(self))
    -- A better one than several equal ones: the one at the heap's root goes, here the oldest.
    self, report = keeper(3)
    assert.same({ 1 }, report(3, 3, 3, 5))
    assert.same({ 3, 2, 4 }, best(self))
    assert.same({ 1, 3 }, report(4))
    assert.same({ 2, 5, 4 }, best(self))
  end)

  it("[291] the same path twice in a row changes nothing", function()
    local self, report = keeper(1)
    report(5)
    local deleted = report(1)
    for _ = 1, 3 do
      self:on_checkpoint { value = 2, result = { training_iteration = 9, acc = 100 } }
    end
    assert.same({}, deleted)
    assert.same({ 1 }, best(self))
    assert.equal(2, self:newest_checkpoint().result.training_iteration)
    -- Not in a row: it takes its own place, and what was just saved there stays.
    self:on_checkpoint { value = 1, result = { training_iteration = 10, acc = 7 } }
    assert.same({ 2 }, deleted)
    assert.same({ 1 }, best(self))
  end)

  -- What Ray 1.0.0 does, in its own words: a heap of the best, and a set of those in it.
  local function model(keep)
    local heap, members, newest = {}, {}, nil
    return function(checkpoint)
      local gone = {}
      if newest and newest.value == checkpoint.value then return gone end
      if newest and not members[newest] then gone[#gone + 1] = newest.value end
      newest = checkpoint
      if #heap < keep or checkpoint.result.acc >= heap[1].result.acc then
        heap[#heap + 1], members[checkpoint] = checkpoint, true
        table.sort(heap, function(a, b) return a.result.acc < b.result.acc end)
      end
      if #heap > keep then
        local worst = table.remove(heap, 1)
        members[worst] = nil
        if worst.value ~= checkpoint.value then gone[#gone + 1] = worst.value end
      end
      return gone, heap
    end
  end

  it("[289, 291] a trial that goes back, and saves a path again, never loses that", function()
    local state = 77
    local function random(n)
      state = state * 48271 % 2147483647
      return state % n
    end
    for _ = 1, 300 do
      local keep = 1 + random(3)
      local deleted, decide = {}, model(keep)
      local self = ckpt.CheckpointManager(keep, "acc", function(checkpoint)
        deleted[#deleted + 1] = checkpoint.value
      end)
      local step = 0
      for i = 1, 15 do
        step = random(4) == 0 and random(step + 1) or step + 1
        -- No two scores are equal.
        local checkpoint = { value = "f" .. step, result = { acc = random(50) + i / 100 } }
        local gone, heap = decide(checkpoint)
        deleted = {}
        self:on_checkpoint(checkpoint)
        assert.same(gone, deleted)
        for _, path in ipairs(deleted) do assert.not_equal(checkpoint.value, path) end
        for k, kept in ipairs(heap or {}) do assert.equal(kept, self:best_checkpoints()[k]) end
      end
    end
  end)

  it("[292] one in memory is the newest in memory, and nothing is deleted", function()
    local self, report = keeper(1)
    report(5)
    local deleted = report(1)
    local last
    for i = 3, 6 do
      last = { value = "object " .. i, memory = true, result = { training_iteration = i } }
      self:on_checkpoint(last)
      assert.equal(last, self.newest_memory_checkpoint)
      assert.equal(last, self:newest_checkpoint())
    end
    assert.same({}, deleted)
    assert.same({ 1 }, best(self))
    assert.equal(2, self.newest_persistent_checkpoint.value)
    self:on_checkpoint { value = 7, result = { training_iteration = 7, acc = 0 } }
    assert.equal(7, self:newest_checkpoint().value)
    assert.same({ 2 }, deleted)
    -- An object of an earlier iteration is not the newest.
    self:on_checkpoint { value = "late", memory = true, result = { training_iteration = 3 } }
    assert.equal(7, self:newest_checkpoint().value)
  end)

  it("[289] tells of a deletion that failed, with the books in order", function()
    local answer = { nil, "no route", "EIO" }
    local self = ckpt.CheckpointManager(1, "acc", function() return unpack(answer, 1, 3) end)
    assert.is_true(self:on_checkpoint { value = 1, result = { acc = 1 } })
    assert.same({ nil, "no route", "EIO" },
      { self:on_checkpoint { value = 2, result = { acc = 2 } } })
    assert.same({ 2 }, best(self))
    answer = {}
    assert.is_true(self:on_checkpoint { value = 3, result = { acc = 3 } })
    assert.is_false((pcall(self.on_checkpoint, self, "path")))
    assert.is_false((pcall(self.on_checkpoint, self, {})))
    assert.is_false((pcall(ckpt.CheckpointManager, 1, 7)))
  end)
end)

describe("the rules of policies", function()
  local function rules(keep, mode)
    local rule = keep > 0
      and ("any { keep.best('acc', %d, '%s'), keep.last(1) }"):format(keep, mode or "max")
      or "keep.all()"
    return (library.keys("keep = " .. rule))
  end

  -- Checkpoints c1, c2, ... with these scores; false: none.
  local function list(...)
    local scores = { ... }
    return library.items(#scores, function(item, i) item.metrics.acc = scores[i] or nil end)
  end

  local function kept(M, items) return (library.kept(M, items)) end

  it("[287] keep.all keeps all of them, and a negative number is an error", function()
    assert.equal("c1 c2 c3", kept(rules(0), list(3, 2, 1)))
    assert.truthy(library.refusal "return { api = 1, keep = keep.best('a', -1, 'max') }")
    assert.equal("c2 c3", kept(rules(2), list(1, 2, 3)))
  end)

  it("[288] low is good in mode min; without the number it is never among the best", function()
    assert.equal("c1 c3", kept(rules(1, "min"), list(1, 2, 3)))
    assert.equal("c3", kept(rules(1, "max"), list(1, 2, 3)))
    assert.equal("c1 c3", kept(rules(1), list(1, false, false)))
  end)

  it("[289] the newest is kept, and goes with the next one", function()
    assert.equal("c1 c2", kept(rules(1), list(5, 1)))
    assert.equal("c1 c3", kept(rules(1), list(5, 1, 2)))
    assert.equal("c4", kept(rules(1), list(5, 1, 2, 7)))
  end)

  -- On purpose other than the object (docs/decisions.md).
  it("keep the newer of equal scores", function()
    assert.equal("c2 c3", kept(rules(2), list(3, 3, 3)))
    assert.equal("c4 c6", kept(rules(2), list(3, 3, 3, 9, 3, 9)))
  end)

  it("[287, 288, 289] decide as the object does, whatever is reported, but equal scores", function()
    local state = 5150
    local function random(n)
      state = state * 48271 % 2147483647
      return state % n
    end
    for _ = 1, 60 do
      local keep, mode = random(4), random(2) == 0 and "min" or "max"
      local M = rules(keep, mode)
      local there = {} -- what neither has deleted
      local object = ckpt.CheckpointManager(keep, (mode == "min" and "min-" or "") .. "acc",
        function(checkpoint) there[checkpoint.value] = nil end)
      for i = 1, 12 do
        local acc = random(5) + i / 100
        there["c" .. i] = { step = i, acc = acc }
        local before = library.items(i, function(item) item.metrics.acc = nil end)
        local items = {}
        for _, item in ipairs(before) do
          local known = there[item.name]
          if known then
            item.metrics.acc = known.acc
            items[#items + 1] = item
          end
        end
        object:on_checkpoint { value = "c" .. i, result = { acc = acc } }
        local left = {}
        for _, item in ipairs(items) do
          if there[item.name] then left[#left + 1] = item.name end
        end
        assert.equal(table.concat(left, " "), kept(M, items))
      end
    end
  end)
end)
