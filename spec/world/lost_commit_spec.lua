-- A commit whose data somebody removed from the store: the run that finds it so, and has it whole
-- here, saves it again; without a whole copy nothing is called durable.

local cjson = require "cjson"
local support = require "support"
local targets = require "world.targets"
local uri, change, ckpt = targets.uri, targets.change, targets.ckpt
local save, committed, must_sync = targets.save, targets.committed, targets.must_sync
local must_hold, has = targets.must_hold, targets.has

local dir

before_each(function() dir = targets.begin() end)
after_each(targets.finish)

describe("a newest commit that the store has lost", function()
  before_each(function()
    save(1, 2)
    must_sync("A", 2, 1, 2)
  end)

  -- Saved again from the copy here, and nothing is left to do.
  local function must_mend(args)
    local made, code, text = committed(args, uri("A"))
    assert.are.equal(1, made, text)
    assert.are.equal(0, code, text)
    must_hold("A", 1, 2)
    has((ckpt("latest '%s'", uri("A"))), "checkpoint-2")
    must_sync("A", 0, 1, 2)
  end

  local sync_a = "sync out --settle 0 --to '%s'"
  local run_a = "run --dir out --to '%s' --continue-run -- true"

  it("is saved again by sync", function()
    change("A", "rm -rf DATA/checkpoint-2")
    must_mend(sync_a)
  end)

  it("is saved again by run", function()
    change("A", "rm -rf DATA/checkpoint-2")
    must_mend(run_a)
  end)

  it("is saved again if the state directory is lost, too", function()
    change("A", "rm -rf DATA/checkpoint-2/model.bin out.ckpt")
    must_mend(sync_a .. " --continue-run")
  end)

  it("is saved again if its manifest is gone", function()
    change("A", "rm DATA/checkpoint-2/.ckpt-manifest.json")
    must_mend(sync_a)
  end)

  it("is saved again if one file is gone, or has another size", function()
    change("A", "rm DATA/checkpoint-2/model.bin")
    must_mend(run_a)
    change("A", "truncate -s -1 DATA/checkpoint-2.*/model.bin")
    must_mend(sync_a)
  end)

  it("is foreseen to be saved again", function()
    change("A", "rm DATA/checkpoint-2/model.bin")
    has((ckpt(sync_a .. " -n", uri("A"))), "checkpoint-2")
    must_mend(sync_a)
  end)

  it("is saved again with all others where only the log was left", function()
    change("A", "rm -rf DATA/*")
    must_sync("A", 2, 1, 2)
    must_sync("A", 0, 1, 2)
  end)

  -- The code and the last line say so, and so does what the run left.
  local function must_not_be_durable(args)
    local _, code, text = committed(args, uri("A"))
    assert.are.equal(5, code, text)
    has(text, "NOT durable: checkpoint-2")
    local ended = cjson.decode(support.read(dir .. "/out.ckpt/exit.json"))
    assert.is_false(ended.durable)
    assert.are.equal("checkpoint-2", ended.not_durable[1].unit)
  end

  it("is not called durable if there is no copy here", function()
    change("A", "rm -rf DATA/checkpoint-2 out/checkpoint-2")
    must_not_be_durable(sync_a)
    must_not_be_durable("run --dir out --to '%s' --continue-run --restore never -- true")
    save(3) -- a newer one is what a restart needs
    must_sync("A", 1, 1, 3)
    must_sync("A", 0, 1, 3)
  end)

  it("is not called durable if the copy here is not whole", function()
    change("A", "rm DATA/checkpoint-2/model.bin out/checkpoint-2/trainer_state.json")
    must_not_be_durable(sync_a)
  end)

  it("is passed over by a run that has to restore it", function()
    change("A", "rm -rf DATA/checkpoint-2 out/checkpoint-2")
    local text, code = ckpt(run_a, uri("A"))
    assert.are.equal(0, code, text)
    has(text, "checkpoint-2 CANNOT BE RESTORED")
    has(text, "resume from")
  end)
end)
