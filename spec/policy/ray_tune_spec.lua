-- policies/ray_tune.lua: a run with it decides as ckpt.SyncerCallback does. Both are held against
-- one model (spec/sync_model.lua); the object's side is spec/contract/oracle/callback_spec.lua.
local library = require "policy.rules"
local model = require "sync_model"
local node_sync = require "policy.node_sync"
local place = require "place"
local recording = require "recording"
local support = require "support"

describe("policies/ray_tune.lua", function()
  -- Replays all traces; returns how many steps there were, and how many are not as recorded.
  local function replay(better)
    local steps, differ, expected, of = 0, 0, nil, nil
    local left_out = node_sync.replay("ray_tune", better, function(trace, i, started, peer)
      if of ~= trace then
        of, expected = trace, model.run(trace, better)
      end
      assert.same(expected:event(trace.events[i]).started, started,
        ("%s, event %d"):format(trace.name, i))
      steps = steps + 1
      differ = differ + (table.concat(started, " ") == table.concat(peer.started, " ") and 0 or 1)
    end)
    return steps, differ, left_out
  end

  it("decides as the recorded node sync did", function()
    local steps, differ, left_out = replay {}
    assert.same({ 1137, 0 }, { steps, differ })
    -- Three thresholds that are refused there too, and one that is infinite.
    assert.equal(4, #left_out)
  end)

  it("decides as the object does, where that is better too", function()
    local steps, differ = replay(model.BETTER)
    assert.equal(1137, steps)
    assert.is_true(differ > 0)
  end)

  it("saves each checkpoint at once, unless it is told not to", function()
    local event = library.event { event = "complete", result = { training_iteration = 0 } }
    event.since.seconds = 1
    local M = library.shipped "ray_tune"
    assert.equal("sync", (M.ask("sync", event)))
    M = library.shipped("ray_tune", { on_checkpoint = "false" })
    assert.equal("skip", (M.ask("sync", event)))
  end)

  it("leaves out what the object leaves out, in the same order", function()
    local _, data = library.shipped "ray_tune"
    assert.same(recording.read("syncer_traces").exclude, data.exclude)
  end)

  -- What a run commits of a job that makes directories of all kinds, each of which may be one.
  local function committed_with(dir, policies)
    support.write(dir .. "/names.lua", [[
      return { api = 1, unit = { "checkpoint_{*}/", "rank_{*}/" } }]])
    support.write(dir .. "/job.sh", [[
      for name in checkpoint_-00001 checkpoint_tmp1a2b3c rank_0 checkpoint_000002
      do
        mkdir -p out/.new/rank_1
        echo weights >out/.new/model.bin
        echo part >out/.new/rank_1/model.bin
        mv out/.new out/$name
        sleep 0.4
      done]])
    place.sh "rm -rf out store && mkdir out"
    place.must(("run --dir out --to store %s -p ./names.lua -- sh job.sh"):format(policies))
    local names = place.objects((place.ckpt "ls store --json"))
    for i, row in ipairs(names) do names[i] = row.name end
    table.sort(names)
    return names
  end

  it("leaves these out in a run, at the top and nowhere else", function()
    local dir = place.begin()
    assert.same({ "checkpoint_-00001", "checkpoint_000002", "checkpoint_tmp1a2b3c", "rank_0" },
      committed_with(dir, ""))
    assert.same({ "checkpoint_000002" },
      committed_with(dir, ("-p '%s/policies/ray_tune.lua'"):format(support.root)))
    assert.equal("part\n", support.read(dir .. "/store/checkpoint_000002/rank_1/model.bin"))
    support.sh("rm -rf " .. dir)
  end)

  it("is alone, beside excludes.lua, in leaving out what other ranks write", function()
    for _, name in ipairs { "default", "markers", "retention", "adaptdl", "sync_thresholds" } do
      local _, data = library.shipped(name)
      for _, glob in ipairs(data.exclude or {}) do assert.is_nil(glob:find("rank_", 1, true)) end
    end
  end)
end)
