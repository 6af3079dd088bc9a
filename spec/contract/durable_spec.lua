-- ckpt.DurableTrainable: what is in the store when, and what never happens there.
local ckpt = require "ckpt"
local names = require("contract.files").names
local support = require "support"

require "contract.shelf"

local fs = ckpt.fs

describe("ckpt.DurableTrainable", function()
  local dir, events, answers, Mine, mine

  -- A client that writes down what it is told; `answers[method]` are its next answers.
  local function recording_client()
    local client = {}
    for _, method in ipairs { "sync_up", "sync_down", "delete", "wait" } do
      client[method] = function(_, ...)
        events[#events + 1] = table.concat({ method, ... }, " ")
        local answer = table.remove(answers[method] or {}, 1)
        if answer then return unpack(answer, 1, 3) end
        return method ~= "wait" or nil
      end
    end
    return client
  end

  local function said(method, ...) answers[method] = { ... } end

  support.with_directory(function(made)
    dir = made
    events, answers = {}, {}
    Mine = ckpt.DurableTrainable:extend "Mine"
    function Mine:setup(config)
      events[#events + 1] = "setup"
      self.x = config.x
    end
    function Mine:create_storage_client(remote)
      events[#events + 1] = "client for " .. remote
      self.before = self.x
      return recording_client()
    end
    function Mine:step()
      self.x = self.x + 1
      return {}
    end
    function Mine:save_checkpoint(directory)
      events[#events + 1] = "local save"
      assert(fs.write(directory .. "/m", tostring(self.x)))
      return directory .. "/m"
    end
    function Mine:load_checkpoint(path)
      events[#events + 1] = "local restore"
      self.x = tonumber(assert(fs.read(path)))
    end
    mine = Mine("s3://b/trial", { x = 5 }, { logdir = dir .. "/log", trial_id = "t7" })
  end)

  local function take()
    local list = events
    events = {}
    return list
  end

  local up, down = nil, nil
  before_each(function()
    up = "sync_up " .. dir .. "/log/ s3://b/trial"
    down = "sync_down s3://b/trial " .. dir .. "/log/"
  end)

  it("[119, 134 G] a wait that says false is a save that failed", function()
    mine = Mine("shelf://b/trial", { x = 1 }, { logdir = dir .. "/trial" })
    mine:train()
    said("wait", { false })
    local path, _, name = mine:save()
    assert.is_nil(path)
    assert.equal("EIO", name)
  end)

  it("[116] a client without a needed function is refused when the object is made", function()
    function Mine:create_storage_client() return { sync_up = true } end -- luacheck: ignore 212
    local fine, text = pcall(Mine, "shelf://b/trial", { x = 1 }, { logdir = dir .. "/trial" })
    assert.is_false(fine)
    assert.truthy(text:find("no function `sync_down`", 1, true))
  end)

  it("[115] keeps the remote directory, and makes the client after the set-up", function()
    assert.equal("s3://b/trial", mine.remote_checkpoint_dir)
    assert.same({ "setup", "client for s3://b/trial" }, take())
    assert.equal(5, mine.before)
    assert.error_matches(function() Mine({ x = 5 }) end, "first argument is the URI", 1)
  end)

  it("[116] asks an own factory for the client, with the remote directory", function()
    assert.equal("client for s3://b/trial", events[2])
    Mine.create_storage_client = nil
    local plain = Mine("mem://durable/t", { x = 1 }, { logdir = dir .. "/log" })
    assert.is_true(ckpt.class.is(plain.storage_client, ckpt.DefaultSyncer))
    assert.error_matches(function() Mine("nope://x", { x = 1 }, { logdir = dir }) end, "nope")
  end)

  it("[119, 121] saves here, uploads the whole log directory, and waits", function()
    take()
    mine:train()
    assert.equal(dir .. "/log/checkpoint_000001/m", mine:save())
    assert.same({ "local save", up, "wait" }, take())
  end)

  it("[120] has not saved if the upload failed", function()
    said("wait", { nil, "no space there", "ENOSPACE" })
    local path, text, name = mine:save()
    assert.is_nil(path)
    assert.same({ "no space there", "ENOSPACE" }, { text, name })
    said("sync_up", { nil, "no such bucket", "ENOENT" })
    assert.equal("ENOENT", (select(3, mine:save())))
  end)

  it("[122 G] saves into the log directory and below, and nowhere else", function()
    for _, inside in ipairs { mine.logdir, dir .. "/log", dir .. "/log/sub/deep" } do
      assert.is_truthy(mine:save(inside))
    end
    take()
    for _, outside in ipairs { dir, dir .. "/other", dir .. "/log/../other", "/" } do
      assert.error_matches(function() mine:save(outside) end, "is not in the log directory")
    end
    assert.same({}, take())
    assert.is_nil(fs.stat(dir .. "/other"))
  end)

  it("[123 G] compares components, of where a path really is", function()
    assert.error_matches(function() mine:save(dir .. "/log2") end, "not in the log directory")
    assert(fs.symlink("log", dir .. "/alias"))
    assert(fs.symlink(dir, dir .. "/log/out"))
    assert.is_truthy(mine:save(dir .. "/alias/sub"))
    assert.error_matches(function() mine:save(dir .. "/log/out/x") end, "not in the log directory")
    assert.error_matches(function() mine:save("relative") end, "not in the log directory")
    local up_to_root = ("../"):rep(20)
    assert.is_truthy(mine:save(up_to_root .. dir .. "/log/sub2"))
  end)

  it("[124 G] uploads every checkpoint that it has saved", function()
    take()
    assert(mine:save(dir .. "/log/sub"))
    assert.same({ "local save", up, "wait" }, take())
  end)

  it("[125] downloads, waits, then restores from the path", function()
    local path = assert(mine:save())
    take()
    mine.x = 0
    assert.is_true(mine:restore(path))
    assert.same({ down, "wait", "local restore" }, take())
    assert.equal(5, mine.x)
    said("wait", { nil, "no route", "EIO" })
    assert.equal("EIO", (select(3, mine:restore(path))))
    assert.same({ down, "wait" }, take())
  end)

  it("restores no path of another log directory, and says so before it downloads", function()
    local path = assert(mine:save())
    take()
    local other = path:gsub("/log/", "/old/")
    local done, text, name = mine:restore(other)
    assert.same({ nil, "EINVAL" }, { done, name })
    assert.is_truthy(text:find(other .. " is not in the log directory", 1, true), text)
    assert.is_truthy(text:find("s3://b/trial", 1, true), text)
    assert.same({}, take())
    -- One that is there is restored from, wherever it is.
    assert(fs.copy_tree(dir .. "/log", dir .. "/old"))
    assert.is_true(mine:restore(other))
    assert.same({ down, "wait", "local restore" }, take())
  end)

  it("takes an object and gives one without a word to the store", function()
    mine.x = 7
    take()
    local object = assert(mine:save_to_object())
    mine.x = 0
    assert.is_true(mine:restore_from_object(object))
    assert.equal(7, mine.x)
    assert.same({ "local save", "local restore" }, take())
    assert.same({}, names(dir .. "/log"))
  end)

  it("[126] downloads everything at each restore", function()
    local path = assert(mine:save())
    take()
    mine:restore(path)
    mine:restore(path)
    assert.same({ down, "wait", "local restore", down, "wait", "local restore" }, take())
  end)

  it("[127] deletes the remote twin of a checkpoint's directory, then the directory", function()
    local path = assert(mine:save())
    take()
    mine.storage_client.delete = function(_, uri)
      assert.is_truthy(fs.stat(path))
      events[#events + 1] = uri
      return true
    end
    assert.is_true(mine:delete_checkpoint(path))
    assert.same({ "s3://b/trial/checkpoint_000000", "wait" }, take())
    assert.same({}, names(dir .. "/log"))
  end)

  it("[128 G] deletes the remote twin of a checkpoint that is not here, and says so", function()
    local path = assert(mine:save())
    support.sh("rm -r " .. dir .. "/log/checkpoint_000000")
    take()
    local log, restore = ckpt.testing.capture_log()
    assert.is_true(mine:delete_checkpoint(path))
    restore()
    assert.same({ "delete s3://b/trial/checkpoint_000000", "wait" }, take())
    assert.equal("warning", log[1].level)
    assert.is_truthy(log[1].text:find("^Trial t7: .*checkpoint_000000 is not here"))
  end)

  it("[128 G] deletes no remote copy of what is here and is no checkpoint", function()
    assert(fs.mkdirs(dir .. "/log/plots"))
    assert(fs.write(dir .. "/log/result.json", "{}"))
    take()
    for _, path in ipairs { "/log/plots", "/log/plots/", "/log/result.json" } do
      local done, _, name = mine:delete_checkpoint(dir .. path)
      assert.is_nil(done)
      assert.equal("EINVAL", name)
    end
    assert.same({}, take())
  end)

  it("[129 G] waits for the remote delete; if that fails, says so and deletes nothing", function()
    local path = assert(mine:save())
    take()
    said("wait", { nil, "access denied", "EACCESS" })
    local done, text, name = mine:delete_checkpoint(path)
    assert.is_nil(done)
    assert.same({ "access denied", "EACCESS" }, { text, name })
    assert.is_truthy(fs.stat(path))
    assert.is_true(mine:delete_checkpoint(path))
  end)

  it("[130] maps paths by what follows the log directory", function()
    for inside, uri in pairs {
      ["checkpoint_000001"] = "s3://b/trial/checkpoint_000001", ["a/b/c"] = "s3://b/trial/a/b/c",
      ["a/../x"] = "s3://b/trial/x", ["50%"] = "s3://b/trial/50%",
    } do
      assert.equal(uri, (mine:storage_path(dir .. "/log/" .. inside)))
    end
    mine.remote_checkpoint_dir = "file:///far/away//"
    assert.equal("file:///far/away/50%25", (mine:storage_path(dir .. "/log/50%")))
  end)

  it("[131 G] maps the log directory to the remote one, and refuses what is not in it", function()
    assert.equal("s3://b/trial", (mine:storage_path(mine.logdir)))
    assert(fs.symlink("/etc", dir .. "/log/link"))
    local log = dir .. "/log"
    for _, outside in ipairs { "/elsewhere", log .. "/../x", log .. "2", log .. "/link" } do
      local uri, text, name = mine:storage_path(outside)
      assert.is_nil(uri)
      assert.equal("EINVAL", name)
      assert.is_truthy(text:find(outside, 1, true))
    end
  end)

  it("[131 G] deletes nothing that is outside, and never the whole remote directory", function()
    local outside = assert(ckpt.TrainableUtil.make_checkpoint_dir(dir, 1))
    assert(fs.write(dir .. "/log/.is_checkpoint", ""))
    take()
    local log, restore = ckpt.testing.capture_log()
    for _, path in ipairs { outside, mine.logdir, dir .. "/gone", "/" } do
      local done, _, name = mine:delete_checkpoint(path)
      assert.is_nil(done)
      assert.equal("EINVAL", name)
    end
    restore()
    assert.same({}, log, "nothing was deleted, so nothing is said to be")
    assert.same({}, take())
    assert.is_truthy(fs.stat(outside))
  end)

  it("[132] drops a slash at the end", function()
    assert.equal("s3://b/trial/a/b", (mine:storage_path(dir .. "/log/a/b/")))
    assert.equal("s3://b/trial", (mine:storage_path(dir .. "/log//")))
  end)

  it("[133] has a log directory that ends in a slash", function()
    assert.equal(dir .. "/log/", mine.logdir)
  end)

  it("[134 G] waits for what the client is doing, then uploads", function()
    said("sync_up", { false })
    take()
    assert.is_truthy(mine:save())
    assert.same({ "local save", up, "wait", up, "wait" }, take())
  end)

  it("[134 G] has not saved if the client refuses the upload", function()
    said("sync_up", { false }, { false })
    local path, text, name = mine:save()
    assert.is_nil(path)
    assert.equal("EHELD", name)
    assert.is_truthy(text:find("refuses sync_up", 1, true))
  end)

  it("[136] is left alone by the callback that fetches trials", function()
    local callback = ckpt.SyncerCallback { transfer = function() error("copied twice") end }
    local trial = { id = mine.trial_id, logdir = mine.logdir, uri = "/elsewhere",
      uses_cloud_checkpointing = mine.uses_cloud_checkpointing }
    assert.is_false(callback:on_checkpoint(trial, { path = dir .. "/nowhere" }))
    assert.same({}, callback:status().processes)
  end)
end)

describe("ckpt.DurableTrainable over a store", function()
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
      assert(fs.write(directory .. "/m 50%", tostring(self.x)))
      return directory
    end
    function Mine:load_checkpoint(path) self.x = tonumber((fs.read(path .. "m 50%"))) end
  end)

  local function start(remote) return Mine(remote, {}, { logdir = dir .. "/log" }) end

  it("[135] goes on from the store's copy after its machine was lost", function()
    for _, remote in ipairs { "file://" .. dir .. "/store/trial", "mem://durable/trial" } do
      local mine = start(remote)
      mine:train()
      local path = assert(mine:save())
      mine:train()
      local last = assert(mine:save())
      support.sh("rm -rf " .. dir .. "/log")
      mine = start(remote)
      assert(mine:restore(path))
      assert.same({ 1, 1 }, { mine.x, mine.iteration })
      assert(mine:restore(last))
      assert.equal(2, mine.x)
    end
  end)

  it("[121 G] leaves nothing of an object in the store, nor what a killed one left here", function()
    local mine = start("mem://durable/objects")
    local path = assert(mine:save())
    local function stored()
      local keys = {}
      for _, object in ipairs(ckpt.store.open("mem://durable/objects"):list()) do
        keys[#keys + 1] = object.key
      end
      return keys
    end
    local before = stored()
    for _ = 1, 3 do
      mine:train()
      assert(mine:restore_from_object(assert(mine:save_to_object())))
    end
    assert.same(before, stored())
    assert(fs.mkdirs(mine.logdir .. "save_to_object7adf/checkpoint_000001"))
    assert(fs.mkdirs(mine.logdir .. "checkpoint_tmp123456"))
    assert(fs.write(mine.logdir .. "checkpoint_tmp123456/.temp_marker", ""))
    assert(mine:save(mine.logdir))
    assert(ckpt.store.delete { uri = "mem://durable/objects" }:wait())
    assert(mine:save())
    support.sh("rm -rf " .. dir .. "/log")
    assert(mine:restore(path))
    for _, name in ipairs(names(dir .. "/log")) do
      assert.is_nil(name:match("save_to_object") or name:match("tmp"), name)
    end
  end)

  it("counts its iterations by their name in the results, too", function()
    local mine = start("mem://durable/count")
    assert.equal(0, mine.training_iteration)
    assert.equal(mine:train().training_iteration, mine.training_iteration)
    local path = assert(mine:save())
    mine:train()
    assert.equal(2, mine.training_iteration)
    assert(mine:restore(path))
    assert.equal(1, mine.training_iteration)
  end)

  it("[126] keeps files that the store does not have", function()
    local mine = start("file://" .. dir .. "/store/trial")
    local path = assert(mine:save())
    assert(fs.write(mine.logdir .. "own", "o"))
    assert(fs.write(path .. "m 50%", "9"))
    assert(mine:restore(path))
    assert.equal("o", fs.read(mine.logdir .. "own"))
    assert.equal(0, mine.x)
  end)

  it("[127] restores another checkpoint after one was deleted", function()
    for _, remote in ipairs {
      "file://" .. dir .. "/store/trial", "mem://durable/kept", "shelf://at" .. dir .. "/shelf/a",
    } do
      local mine = start(remote)
      local first = assert(mine:save())
      mine:train()
      local second = assert(mine:save())
      assert(mine:delete_checkpoint(first))
      assert.is_nil(fs.stat(first))
      support.sh("rm -rf " .. dir .. "/log")
      mine = start(remote)
      assert(mine:restore(second))
      assert.equal(1, mine.x)
      assert.is_nil(fs.stat(first))
      support.sh("rm -rf " .. dir .. "/log")
    end
  end)

  it("[128 G] deletes what is on one side only, and what is nowhere", function()
    local function stored()
      local found = {}
      for _, entry in ipairs(assert(fs.walk(dir .. "/store"))) do
        if entry.type == "file" then found[#found + 1] = entry.path:match("checkpoint_%d+") end
      end
      return found
    end
    local mine = start("file://" .. dir .. "/store/trial")
    local path = assert(mine:save())
    assert.is_truthy(stored()[1])
    support.sh("rm -r " .. path)
    local _, restore = ckpt.testing.capture_log()
    assert(mine:delete_checkpoint(path))
    assert.same({}, stored())
    assert(mine:delete_checkpoint(path))
    restore()
  end)
end)
