-- ckpt.DefaultSyncer on real transfers, its retries, and the other files of a trial.

local ckpt = require "ckpt"
local files = require "contract.files"
local support = require "support"
local fs, store = ckpt.fs, ckpt.store

describe("the default syncer", function()
  local dir, place, count, logged, restore_log
  count = 0

  before_each(function()
    dir = support.directory()
    count = count + 1
    place = "mem://default-syncer/" .. count
    logged, restore_log = ckpt.testing.capture_log()
  end)
  after_each(function()
    restore_log()
    os.execute("rm -rf '" .. dir .. "'")
  end)

  local function put(path, text) files.put(dir, path, text) end
  local function names(path) return files.paths(dir .. "/" .. path) end

  local function done(syncer)
    local _, text = syncer:wait()
    assert.is_nil(text)
  end

  -- What a download of the place gives.
  local function stored()
    assert(store.download({ uri = place, dir = dir .. "/stored" }):wait())
    local list = names("stored")
    fs.remove_tree(dir .. "/stored")
    return list
  end

  it("[182] uploads with patterns, downloads, and deletes by URI", function()
    put("a/model.bin", "weights")
    put("a/x.tmp")
    local s = ckpt.DefaultSyncer()
    assert.is_true(s:sync_up(dir .. "/a", place, { "*.tmp" }))
    done(s)
    assert.is_true(s:sync_down(place, dir .. "/b"))
    done(s)
    assert.same({ "model.bin" }, names("b"))
    assert.equal("weights", fs.read(dir .. "/b/model.bin"))
    assert.is_true(s:delete(place))
    done(s)
    assert.is_true(s:sync_down(place, dir .. "/c"))
    local _, _, name = s:wait()
    assert.equal("ENOENT", name)
  end)

  it("[182] runs while the script goes on, and is over when told so", function()
    put("a/f", ("x"):rep(100000))
    local s = ckpt.DefaultSyncer()
    s:sync_up(dir .. "/a", place)
    local text = support.await("the upload", function() return not s:is_running() end)
    assert.is_true(text)
    done(s)
    assert.same({ "f" }, stored())
  end)

  it("[178 G] leaves out of a download what the patterns say", function()
    put("a/keep.bin")
    put("a/rank_0/big.bin")
    local s = ckpt.DefaultSyncer()
    s:sync_up(dir .. "/a", place)
    done(s)
    s:sync_down(place, dir .. "/b", { "./rank_*" })
    done(s)
    assert.same({ "keep.bin" }, names("b"))
  end)

  it("[183] makes the place, and all directories above, without patterns and with them", function()
    put("a/one/two/f")
    local s = ckpt.DefaultSyncer()
    for i, exclude in ipairs { false, { "*.tmp" } } do
      local target = dir .. "/deep/er/" .. i
      s:sync_up(dir .. "/a", "file://" .. target, exclude or nil)
      done(s)
      assert.equal("a/one/two/f", fs.read(target .. "/one/two/f"))
    end
  end)

  it("[183 G] leaves out a directory that fits with all below it", function()
    put("a/rank_0/deep/f")
    put("a/other/rank_1")
    local s = ckpt.DefaultSyncer()
    s:sync_up(dir .. "/a", place, { "./rank_*" })
    done(s)
    assert.same({ "other", "other/rank_1" }, stored())
  end)

  it("[184] never removes what is gone locally", function()
    put("a/old")
    put("a/new")
    local s = ckpt.DefaultSyncer()
    s:sync_up(dir .. "/a", place)
    done(s)
    fs.remove(dir .. "/a/old")
    put("a/newer")
    s:sync_up(dir .. "/a", place)
    done(s)
    local there = {}
    for _, entry in ipairs(assert(store.open(place)):list("")) do there[entry.key] = true end
    assert.is_true(there["old"])
    assert.is_true(there["new"])
    assert.is_true(there["newer"])
  end)

  it("[184 G] keeps directories that are empty, with patterns too", function()
    assert(fs.mkdirs(dir .. "/a/empty"))
    put("a/f")
    local s = ckpt.DefaultSyncer()
    s:sync_up(dir .. "/a", place, { "*.tmp" })
    done(s)
    assert.same({ "empty", "f" }, stored())
  end)

  it("[185 G] reports the failure of a deletion", function()
    local s = ckpt.DefaultSyncer()
    s:delete("file:///proc/self/fdinfo") -- the kernel's, which nobody may change
    local result, text, name = s:wait()
    assert.is_nil(result)
    assert.matches("^Sync process failed: ", text)
    assert.matches("/proc/self/fdinfo", text)
    assert.is_string(name)
  end)

  it("[185] cannot delete at a URI that it does not know", function()
    local s = ckpt.DefaultSyncer()
    assert.is_true(s:delete("weird://x/y"))
    local _, text, name = s:wait()
    assert.matches("weird", text)
    assert.equal("EUNSUPPORTED", name)
  end)

  it("[186] fails for a URI where nothing is, and leaves no directory", function()
    local s = ckpt.DefaultSyncer()
    s:sync_down(place .. "/nothing", dir .. "/b")
    local _, _, name = s:wait()
    assert.equal("ENOENT", name)
    assert.is_nil(fs.stat(dir .. "/b"))
  end)

  it("[186] leaves a target that was there as it was when the download fails", function()
    put("b/mine")
    local s = ckpt.DefaultSyncer()
    s:sync_down(place .. "/nothing", dir .. "/b")
    assert.equal("ENOENT", select(3, s:wait()))
    assert.same({ "mine" }, names("b"))
  end)

  it("[186] removes a target that a failed download has made", function()
    local download = store.download
    store.download = function(options)
      assert(fs.mkdirs(options.dir .. "/half"))
      return nil, "cut off", "EIO"
    end
    local s = ckpt.DefaultSyncer()
    s:sync_down(place, dir .. "/b")
    local _, text = s:wait()
    put("c/mine")
    s:sync_down(place, dir .. "/c")
    s:wait()
    store.download = download
    assert.matches("cut off", text)
    assert.is_nil(fs.stat(dir .. "/b"))
    assert.same({ "half", "mine" }, names("c"))
  end)

  it("[186] downloads over what is there", function()
    put("a/f", "new")
    put("b/f", "older") -- with the same size and time it would be taken for the same (226)
    put("b/other")
    local s = ckpt.DefaultSyncer()
    s:sync_up(dir .. "/a", place)
    done(s)
    s:sync_down(place, dir .. "/b")
    done(s)
    assert.same({ "f", "other" }, names("b"))
    assert.equal("new", fs.read(dir .. "/b/f"))
  end)

  it("[186] waits for the lock beside the target", function()
    put("a/f")
    local s = ckpt.DefaultSyncer()
    s:sync_up(dir .. "/a", place)
    done(s)
    local lock = assert(ckpt.lock.take(dir .. "/b.lock"))
    s:sync_down(place, dir .. "/b/")
    for _ = 1, 30 do
      assert.is_true(s:is_running())
      ckpt.clock.sleep(0.01)
    end
    assert.is_nil(fs.stat(dir .. "/b"))
    lock:release()
    done(s)
    assert.same({ "f" }, names("b"))
    assert(ckpt.lock.take(dir .. "/b.lock")):release()
  end)

  it("[159 G] uploads nothing any more after its timeout", function()
    local puts = 0
    store.register("slow", {
      open = function()
        return {
          get = function(_, key) return nil, "no " .. key, "ENOENT" end,
          put = function()
            ckpt.job.yield(0.02)
            puts = puts + 1
            return true
          end,
          list = function() return {} end,
          delete = function() return true end,
        }
      end,
    })
    for i = 1, 20 do put("a/" .. i) end
    local s = ckpt.DefaultSyncer { sync_timeout = 0.1 }
    s:sync_up(dir .. "/a", "slow://x/y")
    assert.equal("ETIMEOUT", select(3, s:wait()))
    local before = puts
    assert.is_true(before > 0 and before < 20)
    local other = ckpt.job.task(function() ckpt.job.yield(0.1) end)
    other:wait()
    assert.equal(before, puts)
  end)

  it("[159 G] downloads nothing any more after its timeout", function()
    put("a/f")
    local lock = assert(ckpt.lock.take(dir .. "/b.lock"))
    local s = ckpt.DefaultSyncer { sync_timeout = 0.05 }
    s:sync_up(dir .. "/a", place)
    done(s)
    s:sync_down(place, dir .. "/b")
    assert.equal("ETIMEOUT", select(3, s:wait()))
    lock:release()
    ckpt.job.yield(0.02)
    assert.is_nil(fs.stat(dir .. "/b"))
    assert.same({}, logged)
  end)
end)

describe("retries of transfers to a store", function()
  -- The environment of a process is its own: a second one reads these.
  local function retries(setting)
    local script = os.tmpname()
    support.write(script, "print(require 'ckpt'.DefaultSyncer.cloud_retries())")
    local text, status = support.sh(("env %s CKPT_LUADIR='%s/lua' '%s/libexec/ckpt-script' '%s'")
      :format(setting, support.root, support.build, script))
    os.remove(script)
    return text:gsub("%s+$", ""), status
  end

  it("[187] are three, 1 s apart, or what the environment says", function()
    local clean = "-u TUNE_CHECKPOINT_CLOUD_RETRY_NUM -u TUNE_CHECKPOINT_CLOUD_RETRY_WAIT_TIME_S"
    assert.equal("3\t1", (retries(clean)))
    assert.equal("7\t0", (retries("TUNE_CHECKPOINT_CLOUD_RETRY_NUM=7 "
      .. "TUNE_CHECKPOINT_CLOUD_RETRY_WAIT_TIME_S=0")))
    local text, status = retries("TUNE_CHECKPOINT_CLOUD_RETRY_NUM=many")
    assert.not_equal(0, status)
    assert.matches('TUNE_CHECKPOINT_CLOUD_RETRY_NUM is "many"', text)
  end)
end)

describe("the other files of a trial", function()
  local clock, seen, answers, logged, restore_log

  before_each(function()
    clock = ckpt.testing.clock()
    logged, restore_log = ckpt.testing.capture_log()
    seen, answers = {}, {}
  end)
  after_each(function()
    restore_log()
    clock:restore()
  end)

  local function artifacts(config, more)
    local syncer = ckpt.Syncer {
      sync_up = function(_, from, to, exclude)
        seen[#seen + 1] = { from, to, exclude }
        return true
      end,
      sync_down = function() end,
      delete = function() end,
      wait = function()
        local failure = table.remove(answers, 1)
        if failure then return nil, failure, "EIO" end
        return true
      end,
    }
    local options = {
      config = ckpt.SyncConfig(config or { upload_dir = "mem://x" }), syncer = syncer,
      logdir = "/results/a", uri = "mem://x/a",
    }
    for name, value in pairs(more or {}) do options[name] = value end
    return ckpt.ArtifactSync(options)
  end

  it("[188] are uploaded without checkpoints and without what loggers write", function()
    local a = artifacts(nil, { logger_files = { "wandb/*" } })
    a:on_result()
    assert.is_true(a:on_checkpoint())
    assert.equal("/results/a", seen[1][1])
    assert.equal("mem://x/a", seen[1][2])
    local kept = {}
    for _, path in ipairs { "checkpoint_000001/model", "result.json", "progress.csv",
      "params.json", "params.pkl", "events.out.tfevents.1", "wandb/run", "plot.png",
      "plots/result.json" } do
      if not fs.excluded(seen[1][3], path) then kept[#kept + 1] = path end
    end
    assert.same({ "plot.png", "plots/result.json" }, kept)
  end)

  it("[188] go with checkpoints, on reset and on stop, if there was a result since", function()
    for _, event in ipairs { "on_checkpoint", "on_reset", "on_stop" } do
      seen = {}
      local a = artifacts()
      assert.is_false(a[event](a))
      a:on_result()
      a:on_result()
      assert.equal(0, #seen)
      assert.is_true(a[event](a))
      assert.is_false(a[event](a))
      assert.equal(1, #seen)
      a:on_result()
      assert.is_true(a[event](a))
      assert.equal(2, #seen)
    end
  end)

  it("[187, 188] are tried again by the knobs, and again later if that failed", function()
    local a = artifacts()
    a:on_result()
    answers = { false, "one", "two", "three" }
    local _, text = a:on_checkpoint()
    assert.equal("Failed sync even after 3 retries: three", text)
    assert.same({ 1, 1 }, clock.slept)
    assert.equal(2, #logged)
    assert.is_true(a:on_checkpoint())
  end)

  it("[152] stay where they are without sync_artifacts or without an upload directory", function()
    for _, config in ipairs { {}, { upload_dir = "mem://x", sync_artifacts = false } } do
      local a = artifacts(config)
      a:on_result()
      assert.is_false(a:on_checkpoint())
    end
    assert.equal(0, #seen)
    local a = artifacts { upload_dir = "mem://x", sync_on_checkpoint = false }
    a:on_result()
    assert.is_true(a:on_checkpoint())
  end)
end)
