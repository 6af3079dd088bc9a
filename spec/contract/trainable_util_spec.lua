-- ckpt.TrainableUtil: checkpoint directories, their names and markers; and ckpt.Trainable on them.
local ckpt = require "ckpt"
local names = require("contract.files").names
local support = require "support"

local util, fs = ckpt.TrainableUtil, ckpt.fs

describe("ckpt.TrainableUtil", function()
  local dir

  support.with_directory(function(made) dir = made end)

  it("[233 G] names a checkpoint directory as the later releases do, and marks it", function()
    for index, name in pairs {
      [7] = "checkpoint_000007", [-1] = "checkpoint_-00001", [1234567] = "checkpoint_1234567",
      tmpabcdef = "checkpoint_tmpabcdef",
    } do
      local path = assert(util.make_checkpoint_dir(dir, index))
      assert.equal(dir .. "/" .. name, path)
      assert.same({ ".is_checkpoint" }, names(path))
      assert.equal("", fs.read(path .. "/.is_checkpoint"))
    end
    assert.equal(dir .. "/checkpoint", (util.make_checkpoint_dir(dir)))
  end)

  it("[233 G] uses a directory with the short name where it is", function()
    assert(fs.mkdirs(dir .. "/checkpoint_7"))
    assert(fs.write(dir .. "/checkpoint_7/old", "o"))
    assert.equal(dir .. "/checkpoint_7", (util.make_checkpoint_dir(dir, 7)))
    assert.equal(dir .. "/checkpoint_000007", (util.make_checkpoint_dir(dir, 7, true)))
    assert.same({ "checkpoint_000007/", "checkpoint_000007/.is_checkpoint" }, names(dir))
  end)

  it("[234] uses a directory that is there again, or deletes it first", function()
    local path = assert(util.make_checkpoint_dir(dir .. "/a/b", 3))
    assert(fs.write(path .. "/old", "o"))
    assert.equal(path, (util.make_checkpoint_dir(dir .. "/a/b", 3)))
    assert.same({ ".is_checkpoint", "old" }, names(path))
    assert.equal(path, (util.make_checkpoint_dir(dir .. "/a/b", 3, true)))
    assert.same({ ".is_checkpoint" }, names(path))
  end)

  it("[235] keeps metadata beside a file, and in a directory", function()
    local path = assert(util.make_checkpoint_dir(dir, 1))
    assert.equal(path .. "/model.tune_metadata", util.metadata_path(path .. "/model"))
    assert.equal(path .. "/.tune_metadata", util.metadata_path(path .. "/"))
    assert.equal(path .. "/.tune_metadata", util.metadata_path(path))
  end)

  it("[236] finds the first marked directory from a path upwards", function()
    local path = assert(util.make_checkpoint_dir(dir, 1))
    assert(fs.mkdirs(path .. "/a/b"))
    assert(fs.write(path .. "/a/b/f", "f"))
    for _, inside in ipairs { "", "/", "/a", "/a/b/f", "/a/../a/b" } do
      assert.equal(path, (util.find_checkpoint_dir(path .. inside)))
    end
    assert(util.make_checkpoint_dir(path .. "/a", 2))
    assert.equal(path .. "/a/checkpoint_000002",
      (util.find_checkpoint_dir(path .. "/a/checkpoint_000002")))
  end)

  it("[236] does not find what is not there, or in no checkpoint directory", function()
    for _, path in ipairs { dir, dir .. "/nope", "/" } do
      local found, text, name = util.find_checkpoint_dir(path)
      assert.is_nil(found)
      assert.equal("ENOENT", name)
      assert.is_truthy(text:find(path, 1, true))
    end
    assert(util.make_checkpoint_dir(dir, 1))
    assert.is_nil((util.find_checkpoint_dir(dir .. "/checkpoint_000001/gone")))
  end)

  it("[268] refuses a path that does not begin with the directory", function()
    local path = assert(util.make_checkpoint_dir(dir, 1))
    assert(fs.write(dir .. "/outside", "o"))
    assert.error_matches(function() util.process_checkpoint(dir .. "/outside", path, {}) end,
      "not in the directory that it was given", 1, true)
    assert.error_matches(function() util.process_checkpoint(path .. "/../outside", path, {}) end,
      "not in the directory that it was given", 1, true)
    assert.is_false(fs.exists(dir .. "/outside.tune_metadata"))
    assert.error_matches(function() util.process_checkpoint(7, path, {}) end, "returned a number")
  end)

  it("[268] returns a directory with a slash, a file as it is", function()
    local path = assert(util.make_checkpoint_dir(dir, 1))
    assert(fs.write(path .. "/model", "m"))
    assert.equal(path .. "/", (util.process_checkpoint(path, path, { iteration = 1 })))
    assert.equal(path .. "/model", (util.process_checkpoint(path .. "/model", path, {})))
    assert.same({ ".is_checkpoint", ".tune_metadata", "model", "model.tune_metadata" }, names(path))
    local metadata, checkpoint = util.read_checkpoint(path)
    assert.same({ iteration = 1, saved_as_dict = false }, metadata)
    assert.equal(path .. "/", checkpoint)
  end)

  it("keeps a table as a file, and refuses what JSON cannot hold", function()
    local path = assert(util.make_checkpoint_dir(dir, 1))
    local saved = { x = 1.5, list = { 1, 2 }, name = "n" }
    local at = assert(util.process_checkpoint(saved, path, {}))
    assert.equal(path .. "/checkpoint", at)
    local _, checkpoint = util.read_checkpoint(at)
    assert.same(saved, checkpoint)
    assert.error_matches(function() util.process_checkpoint({ f = print }, path, {}) end,
      "a checkpoint that is a table: .*function")
  end)

  it("says what metadata is not there, or not of this library", function()
    local path = assert(util.make_checkpoint_dir(dir, 1))
    local _, _, name = util.read_checkpoint(path)
    assert.equal("ENOENT", name)
    assert(fs.write(path .. "/.tune_metadata", "\128\003}q\000."))
    local read, text
    read, text, name = util.read_checkpoint(path)
    assert.is_nil(read)
    assert.equal("EFORMAT", name)
    assert.is_truthy(text:find(".tune_metadata", 1, true))
    assert(fs.write(path .. "/.tune_metadata", '{"iteration": "7"}'))
    read, text, name = util.read_checkpoint(path)
    assert.is_nil(read)
    assert.equal("EFORMAT", name)
    assert.is_truthy(text:find("`iteration` is no number", 1, true))
  end)

  it("makes no directory elsewhere, whatever the index is", function()
    for _, index in ipairs { "../x", "a/b", 1.5, {}, true } do
      assert.error_matches(function() util.make_checkpoint_dir(dir, index) end, "is no index")
    end
    assert.same({}, names(dir))
  end)

  it("turns a checkpoint into texts and back", function()
    local path = assert(util.make_checkpoint_dir(dir, 1))
    assert(fs.mkdirs(path .. "/a"))
    assert(fs.write(path .. "/a/model", "m\0m"))
    for i, case in ipairs {
      { "", "./", "/" }, { "/", "./", "/" }, { "/a", "a/", "/a/" },
      { "/a/model", "a/model", "/a/model" },
    } do
      local object = assert(util.checkpoint_to_object(path .. case[1]))
      assert.equal(case[2], object.checkpoint_name)
      local other = dir .. "/to" .. i
      assert(fs.mkdirs(other))
      assert.equal(other .. case[3], (util.create_from_object(object, other)))
      assert.equal("m\0m", fs.read(other .. "/a/model"))
    end
  end)

  it("unpacks no object whose name leads elsewhere, and nothing that is no object", function()
    local path = assert(util.make_checkpoint_dir(dir, 1))
    local object = assert(util.checkpoint_to_object(path))
    for _, name in ipairs { "../x", "a/../../x" } do
      object.checkpoint_name = name
      local at, _, why = util.create_from_object(object, dir .. "/to")
      assert.is_nil(at)
      assert.equal("EINVAL", why)
    end
    assert.error_matches(function() util.create_from_object("text", dir) end,
      "not an object of save_to_object")
  end)
end)

describe("ckpt.Trainable", function()
  local dir, Counter, counter

  support.with_directory(function(made)
    dir = made
    Counter = ckpt.Trainable:extend "Counter"
    function Counter:setup(config) self.x = config.x end
    function Counter:step()
      self.x = self.x + 1
      return { x = self.x, timesteps_this_iter = 10 }
    end
    function Counter:save_checkpoint() return { x = self.x } end
    function Counter:load_checkpoint(saved)
      self.x, self.from = saved.x, saved.tune_checkpoint_path
    end
    counter = Counter({ x = 5 }, { logdir = dir .. "/trial" })
  end)

  it("[133] has a log directory that ends in a slash, however it was given", function()
    assert.equal(dir .. "/trial/", counter.logdir)
    assert.equal(dir .. "/trial/", Counter({ x = 0 }, { logdir = dir .. "//trial//" }).logdir)
    local own = Counter({ x = 0 }).logdir
    assert.is_truthy(own:find("^/.*/$"))
    assert.equal("directory", fs.stat(own).type)
    support.sh("rm -rf " .. own)
  end)

  it("completes results", function()
    local clock = ckpt.testing.clock(2000)
    function counter.log_result(_, result) counter.logged = result end
    local slow = counter.step
    function counter:step()
      clock:advance(3)
      return slow(self)
    end
    assert(counter:train())
    local result = assert(counter:train())
    clock:restore()
    assert.equal(result, counter.logged)
    assert.same({
      x = 7, training_iteration = 2, timesteps_this_iter = 10, timesteps_total = 20,
      timesteps_since_restore = 20, time_this_iter_s = 3, time_total_s = 6, time_since_restore = 6,
      iterations_since_restore = 2, timestamp = 2006, done = false, config = { x = 5 },
    }, result)
  end)

  it("counts on after a restore", function()
    counter:train()
    local path = assert(counter:save())
    assert.equal(dir .. "/trial/checkpoint_000001/checkpoint", path)
    local other = Counter({ x = 0 }, { logdir = dir .. "/trial" })
    assert(other:restore(path))
    assert.same({ 6, path, 1, 10 }, { other.x, other.from, other.iteration, other.timesteps_total })
    local result = other:train()
    assert.same({ 2, 1, 20, 10 }, { result.training_iteration, result.iterations_since_restore,
      result.timesteps_total, result.timesteps_since_restore })
  end)

  it("saves into an object, and leaves nothing behind", function()
    counter:train()
    local object = assert(counter:save_to_object())
    local other = Counter({ x = 0 }, { logdir = dir .. "/other" })
    assert(other:restore_from_object(object))
    assert.same({ 6, 1 }, { other.x, other.iteration })
    assert.same({}, names(dir .. "/trial"))
    assert.same({}, names(dir .. "/other"))
    function other.load_checkpoint() error("broken") end
    assert.error_matches(function() other:restore_from_object(object) end, "broken")
    assert.same({}, names(dir .. "/other"))
  end)

  it("deletes a checkpoint, once and again", function()
    local path = assert(counter:save())
    assert.is_true(counter:delete_checkpoint(path))
    assert.same({}, names(dir .. "/trial"))
    assert.is_true(counter:delete_checkpoint(path))
  end)

  it("hands on what a step or a save says of its failure", function()
    function counter.step() return nil, "no data", "EIO" end
    local result, text, name = counter:train()
    assert.is_nil(result)
    assert.same({ "no data", "EIO" }, { text, name })
    function counter.save_checkpoint() return nil, "no memory", "ENOSPACE" end
    assert.equal("ENOSPACE", (select(3, counter:save())))
    function counter.step() return 7 end
    assert.error_matches(function() counter:train() end, "Counter:step%(%) returned a number")
  end)

  it("says what a class must have", function()
    local bare = ckpt.Trainable(nil, { logdir = dir })
    for _, call in ipairs { "train", "save" } do
      assert.error_matches(function() bare[call](bare) end, "not implemented")
    end
  end)
end)
