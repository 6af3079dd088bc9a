-- luacheck: std +busted
-- Trials whose directories are in a bucket of a real server; trials_s3_spec.sh starts that.

local ckpt = require "ckpt"
local files = require "contract.files"
local support = require "support"

local fs = ckpt.fs
local data = assert(os.getenv("S3_DATA"))

describe("trials and a bucket", function()
  local dir, Mine

  support.with_directory(function(made)
    dir = made
    Mine = ckpt.DurableTrainable:extend "Mine"
    function Mine:setup() self.x = 0 end
    function Mine:step()
      self.x = self.x + 1
      return {}
    end
    function Mine:save_checkpoint(directory)
      assert(fs.write(directory .. "/a model+1", tostring(self.x)))
      return directory .. "/a model+1"
    end
    function Mine:load_checkpoint(path) self.x = tonumber((fs.read(path))) end
  end)

  local function start(place)
    return Mine("s3://ckpt-test/" .. place, {}, { logdir = dir .. "/log" })
  end

  it("go on after a machine was lost, and after another checkpoint was deleted", function()
    local mine = start "durable/trial"
    mine:train()
    local first = assert(mine:save())
    mine:train()
    local second = assert(mine:save())
    assert.is_truthy(fs.stat(data .. "/durable/trial/checkpoint_000001/a model+1"))
    assert.is_true(mine:delete_checkpoint(first))
    assert.is_nil(fs.stat(data .. "/durable/trial/checkpoint_000001/a model+1"))
    support.sh("rm -rf " .. dir .. "/log")
    mine = start "durable/trial"
    assert.is_true(mine:restore(second))
    assert.same({ 2, 2 }, { mine.x, mine.iteration })
    assert.is_nil(fs.stat(first))
  end)

  it("are saved while their logs grow, at the first attempt", function()
    assert(fs.mkdirs(dir .. "/log"))
    local program = assert(ckpt.job.command { "sh", "-c",
      "while :; do echo step; sleep 0.001; done >> " .. dir .. "/log/train.log" })
    support.await("the log", function() return fs.exists(dir .. "/log/train.log") end)
    local mine, path = start "durable/live", nil
    for _ = 1, 3 do
      mine:train()
      path = assert(mine:save())
    end
    program:cancel()
    support.sh("rm -rf " .. dir .. "/log")
    mine = start "durable/live"
    assert.is_true(mine:restore(path))
    assert.equal(3, mine.x)
    assert.matches("^[step\n]+$", fs.read(dir .. "/log/train.log"))
  end)

  it("save nothing into a bucket that is not there, and say so", function()
    local mine = Mine("s3://no-such-bucket/trial", {}, { logdir = dir .. "/log" })
    local path, text = mine:save()
    assert.is_nil(path)
    assert.is_truthy(text:find("no-such-bucket", 1, true), text)
  end)

  it("are fetched from it, without what is left out", function()
    for _, name in ipairs { "checkpoint_000003/model", "checkpoint_tmp1/model", "rank_0/log" } do
      files.put(dir .. "/node", name, name)
    end
    local uri = "s3://ckpt-test/fetched/a"
    assert(assert(ckpt.store.upload { dir = dir .. "/node", uri = uri }):wait())
    local trial = { id = "a", logdir = dir .. "/here", uri = uri }
    local callback = ckpt.SyncerCallback()
    assert.is_true(callback:on_checkpoint(trial, { path = dir .. "/here/checkpoint_000003" }))
    assert.same({ "checkpoint_000003" }, fs.list(dir .. "/here"))
    assert.equal("checkpoint_000003/model", fs.read(dir .. "/here/checkpoint_000003/model"))
  end)
end)
