--- policies/sync_thresholds.lua against what Ray's node sync decided (its thresholds, its period,
--- when it is forced), and by hand at the edges.
local library = require "policy.rules"
local node_sync = require "policy.node_sync"

describe("policies/sync_thresholds.lua", function()
  it("decides as Ray did, trace by trace", function()
    local steps = 0
    node_sync.replay("sync_thresholds", {}, function(trace, i, started, peer)
      assert.same(peer.started, started, ("%s, event %d"):format(trace.name, i))
      steps = steps + 1
    end)
    assert.equal(1137, steps) -- all but those of the thresholds that it cannot be set to
  end)

  local function ask(result, since, event, settings)
    local M = library.shipped("sync_thresholds", settings)
    return M.ask("sync", library.event { event = event, result = result, since = since })
  end

  for _, row in ipairs {
    { "both below", { 1, 9.99 }, {}, "skip", "iteration 1 of 2, and 10.0 of 10 s of training" },
    { "the iteration reached", { 2, 0 }, {}, "sync" },
    { "the time reached", { 0, 10 }, {}, "sync" },
    { "no result at all", nil, {}, "skip", "iteration 0 of 2, and 0.0 of 10 s of training" },
    { "a result without an iteration", { nil, 0 }, {}, "sync" },
    { "a result without a time", { 0, nil }, {}, "sync" },
    { "one that is no number", { "x", 0 }, {}, "sync" },
    { "just before the period", { 9, 99 }, { seconds = 299.9 }, "skip" },
    { "exactly at the period", { 9, 99 }, { seconds = 300 }, "sync" },
  } do
    it(("says %s for %s"):format(row[4], row[1]), function()
      local result = row[2] and { training_iteration = row[2][1], time_total_s = row[2][2] }
      local answer, reason = ask(result, row[3])
      assert.equal(row[4], answer)
      if row[5] then assert.equal(row[5], reason) end
    end)
  end

  it("skips again after a rewind below both", function()
    local M = library.shipped "sync_thresholds"
    local function at(n)
      local result = { training_iteration = n, time_total_s = n }
      return (M.ask("sync", library.event { result = result }))
    end
    assert.same({ "sync", "skip" }, { at(5), at(1) })
  end)

  it("saves at the end of the job, and before it is ended", function()
    assert.equal("sync", (ask(nil, { seconds = 0 }, "end")))
    assert.equal("sync", (ask(nil, { seconds = 0 }, "preempt")))
  end)

  it("saves each checkpoint if told to, but not for each result", function()
    local set = { on_checkpoint = "true" }
    assert.equal("sync", (ask(nil, {}, "complete", set)))
    assert.equal("skip", (ask(nil, {}, "result", set)))
  end)

  it("says only when to save", function()
    local _, data = library.shipped "sync_thresholds"
    assert.same({ sync = { "sync_thresholds" } }, data.has)
    assert.is_nil(data.complete)
  end)
end)
