-- What ends with the work that it was begun for.

package.path = "./spec/?.lua;" .. package.path
local ckpt = require "ckpt"
local finally = require "ckpt.base.finally"
local scratch = require "ckpt.prims.scratch"
local support = require "support"
local trial_transfer = require "ckpt.ray.sync.trial_transfer"

describe("finally", function()
  local ended

  before_each(function() ended = 0 end)

  local function ending() ended = ended + 1 end

  it("hands on all that the work returned, nils too", function()
    local results = { n = select("#", finally(ending, function(...) return ... end, nil, 2, nil)) }
    assert.are.equal(3, results.n)
    local first, second = finally(ending, function(...) return ... end, nil, 2)
    assert.are.same({ nil, 2 }, { first, second })
    assert.are.equal(2, ended)
  end)

  it("ends after an error, which goes on as it was", function()
    local what = {}
    local fine, said = pcall(finally, ending, function() error(what, 0) end)
    assert.is_false(fine)
    assert.are.equal(what, said)
    assert.are.equal(1, ended)
  end)

  it("lets a task yield in the work", function()
    local work = ckpt.job.task(function()
      return finally(ending, function()
        ckpt.job.yield()
        return ended
      end)
    end)
    assert.are.equal(0, work:wait())
    assert.are.equal(1, ended)
  end)
end)

describe("a directory for some work", function()
  local dir

  before_each(function() dir = support.directory() end)
  after_each(function() os.execute("rm -rf " .. dir) end)

  it("is gone when the work is done, has failed, or was cancelled", function()
    local function work(at)
      assert(ckpt.fs.write(at .. "/a", "a"))
      return nil, "no more", "EIO"
    end
    assert.are.same({ nil, "no more", "EIO" }, { scratch(dir, ".work-", work) })
    assert.is_false((pcall(scratch, dir, ".work-", function() error "no" end)))
    assert.are.same({}, ckpt.fs.list(dir))
    local task = ckpt.job.task(function()
      return scratch(dir, ".work-", function()
        while true do ckpt.job.yield() end
      end)
    end)
    assert.are.equal(1, #ckpt.fs.list(dir))
    task:cancel()
    assert.are.same({}, ckpt.fs.list(dir))
  end)

  it("is there no more after a copy of a trial's directory that was cancelled", function()
    assert(ckpt.fs.mkdirs(dir .. "/from"))
    os.execute("truncate -s 2G '" .. dir .. "/from/a'") -- it is not over before it is cancelled
    local copy = trial_transfer(dir .. "/from", dir .. "/to", {})
    assert(copy:running())
    copy:cancel()
    assert.are.same({ "from", "to.lock" }, ckpt.fs.list(dir))
  end)
end)
