-- A store with the four functions that docs/library/stores.md asks for, and nothing else, is enough
-- for all of the object library.

local ckpt = require "ckpt"
local support = require "support"

local fs, store = ckpt.fs, ckpt.store

-- As on that page: no parts, no levels, no times; what is absent is an error when it is deleted.
local Bare = {}
Bare.__index = Bare

function Bare:get(key)
  local data = self.objects[self.prefix .. key]
  if not data then return nil, "no " .. key, "ENOENT" end
  return data
end

function Bare:put(key, data)
  self.objects[self.prefix .. key] = data
  return true
end

function Bare:delete(key)
  if not self.objects[self.prefix .. key] then return nil, "no " .. key, "ENOENT" end
  self.objects[self.prefix .. key] = nil
  return true
end

function Bare:list(prefix)
  local found, start = {}, self.prefix .. (prefix == "" and "" or prefix .. "/")
  for key, data in pairs(self.objects) do
    if key:sub(1, #start) == start then
      found[#found + 1] = { key = key:sub(#self.prefix + 1), size = #data }
    end
  end
  return found
end

describe("a store of four functions", function()
  local dir, objects

  support.with_directory(function(made)
    dir = made
    objects = {}
    store.register("bare", { open = function(uri)
      local path = uri:match "^bare://(.*)$"
      return setmetatable({ objects = objects, prefix = path .. "/" }, Bare)
    end })
    assert(fs.mkdirs(dir .. "/src/sub/empty"))
    assert(fs.write(dir .. "/src/model", "weights"))
    assert(fs.write(dir .. "/src/sub/log", "noise"))
    assert(fs.symlink("model", dir .. "/src/latest"))
  end)

  local function keys(list)
    local out = {}
    for i, object in ipairs(assert(list)) do
      out[i] = object.key .. (object.prefix and "/" or "")
    end
    table.sort(out)
    return table.concat(out, " ")
  end

  local function must_be_whole(at)
    assert.equal("weights", fs.read(at .. "/model"))
    assert.equal("noise", fs.read(at .. "/sub/log"))
    assert.equal("model", fs.readlink(at .. "/latest"))
    assert.is_true(fs.exists(at .. "/sub/empty"))
  end

  it("has the methods that can be made of them", function()
    local place = assert(store.open "bare://b/x")
    assert(place:put("a", "0123456789"))
    assert(place:put("d/b", "b"))
    assert(place:put("d/e/c", "cc"))
    assert.same({ "234", "89", "" }, { place:get("a", 2, 3), place:get("a", 8, 5),
      (place:get("a", 20, 3)) })
    assert.equal("ENOENT", select(3, place:get("z", 0, 1)))
    assert.equal("a d/b d/e/c", keys(place:list()))
    assert.equal("a d/", keys(place:list(nil, { delimited = true })))
    assert.equal("d/b d/e/", keys(place:list("d", { delimited = true })))
    assert.equal(2, assert(place:head("d/e/c")).size)
    assert.same({ true, false }, { place:exists("a"), place:exists("d") })
    assert.is_true(place:delete("a"))
    assert.is_true(place:delete("a"))
    assert.is_true(place:delete_prefix("d"))
    assert.equal("", keys(place:list()))
    assert.same({ if_absent = false, publish = false, resume = false, tags = false },
      place:caps())
    for _, refused in ipairs { { place:put_if_absent("a", "1") }, { place:get_tagged("a") },
      { place:replace_if("a", "1", "t") } } do
      assert.equal("EUNSUPPORTED", refused[3])
    end
    place:close()
  end)

  it("keeps trees, and brings them back", function()
    assert(store.upload { dir = dir .. "/src", uri = "bare://b/tree" }:wait())
    assert(store.download { uri = "bare://b/tree", dir = dir .. "/to" }:wait())
    must_be_whole(dir .. "/to")
    local again = assert(store.upload { dir = dir .. "/src", uri = "bare://b/tree" }:wait())
    assert.equal(0, again.files)
    assert(store.delete { uri = "bare://b/tree" }:wait())
    assert.equal("", keys(store.open "bare://b/tree":list()))
  end)

  it("holds a Checkpoint with its metadata", function()
    local checkpoint = ckpt.Checkpoint "bare://b/ck"
    assert(store.upload { dir = dir .. "/src", uri = "bare://b/ck" }:wait())
    assert.same({}, checkpoint:get_metadata())
    assert.is_true(checkpoint:set_metadata { a = 1 })
    assert.is_true(checkpoint:update_metadata { b = 2 })
    assert.is_true(checkpoint:update_metadata { a = 3 })
    assert.same({ a = 3, b = 2 }, checkpoint:get_metadata())
    assert.is_true(checkpoint:set_metadata { c = 4 })
    assert.same({ c = 4 }, ckpt.Checkpoint.deserialize(checkpoint:serialize()):get_metadata())
    must_be_whole(assert(checkpoint:to_directory(dir .. "/to")))
    assert.same({ c = 4 }, ckpt.Checkpoint.from_directory(dir .. "/to"):get_metadata())
    checkpoint:as_directory(function(path) must_be_whole(path) end)
    local handle = assert(checkpoint:open_directory())
    must_be_whole(handle.path)
    handle:close()
  end)

  it("is fetched anew when it changed, though its listing has no times", function()
    local checkpoint = ckpt.Checkpoint "bare://b/ck"
    local function fetched()
      return fs.read(assert(checkpoint:to_directory(dir .. "/to")) .. "/model")
    end
    assert(store.upload { dir = dir .. "/src", uri = "bare://b/ck" }:wait())
    assert.equal("weights", fetched())
    local before = assert(fs.stat(dir .. "/to/model")).inode
    assert.equal("weights", fetched())
    assert.equal(before, fs.stat(dir .. "/to/model").inode)
    assert(fs.write(dir .. "/src/model", "WEIGHTS"))
    assert(store.upload { dir = dir .. "/src", uri = "bare://b/ck" }:wait())
    assert.equal("WEIGHTS", fetched())
    -- Objects that no upload brought have no digests.
    local place = store.open "bare://b/loose"
    assert(place:put("model", "one"))
    checkpoint = ckpt.Checkpoint "bare://b/loose"
    assert.equal("one", fetched())
    assert(place:put("model", "two"))
    assert.equal("two", fetched())
  end)

  it("serves a syncer, up, down and away", function()
    local config = ckpt.SyncConfig { upload_dir = "bare://b/run" }
    assert.is_true(config:validate_upload_dir())
    local syncer = ckpt.get_node_to_storage_syncer(config)
    assert(syncer:sync_up(dir .. "/src", "bare://b/run", { "./sub" }))
    assert(syncer:wait())
    assert(syncer:sync_down("bare://b/run", dir .. "/down"))
    assert(syncer:wait_or_retry())
    assert.equal("latest model", table.concat(fs.list(dir .. "/down"), " "))
    assert(syncer:delete("bare://b/run"))
    assert(syncer:wait())
    assert.equal("", keys(store.open "bare://b/run":list()))

    local artifacts = ckpt.ArtifactSync { config = config, syncer = syncer, logdir = dir .. "/src",
      uri = "bare://b/run/a" }
    artifacts:on_result()
    assert.is_true(artifacts:on_stop())
    assert.equal(".ckpt-tree.json model sub/log", keys(store.open "bare://b/run/a":list()))
  end)

  it("brings trials to a SyncerCallback", function()
    assert(fs.mkdirs(dir .. "/src/checkpoint_000001"))
    assert(fs.write(dir .. "/src/checkpoint_000001/model", "1"))
    assert(store.upload { dir = dir .. "/src", uri = "bare://b/trial" }:wait())
    local callback = ckpt.SyncerCallback {}
    local trial = { id = "a", logdir = dir .. "/here", uri = "bare://b/trial" }
    assert(callback:on_checkpoint(trial, { path = dir .. "/here/checkpoint_000001" }))
    must_be_whole(dir .. "/here")
    assert(fs.remove_tree(dir .. "/here"))
    callback:on_trial_complete(trial)
    assert(callback:wait_for_all())
    must_be_whole(dir .. "/here")
  end)

  it("makes trainables and functions durable", function()
    local Mine = ckpt.DurableTrainable:extend "Mine"
    function Mine.save_checkpoint() return { [1] = "one", x = 5 } end
    function Mine:load_checkpoint(saved) self.x = saved.x end
    local mine = Mine("bare://b/mine", {}, { logdir = dir .. "/log" })
    local path = assert(mine:save())
    assert(fs.remove_tree(dir .. "/log"))
    mine = Mine("bare://b/mine", {}, { logdir = dir .. "/log" })
    assert(mine:restore(path))
    assert.equal(5, mine.x)
    assert(mine:delete_checkpoint(path))
    assert.equal(".ckpt-tree.json", keys(store.open "bare://b/mine":list()))

    local Count = ckpt.wrap_function(function(_, checkpoint_dir)
      assert(ckpt.session.checkpoint_dir(1, function(at)
        assert(fs.write(at .. "/n", checkpoint_dir and "again" or "first"))
      end))
      ckpt.session.report { n = 1 }
    end, { durable = true })
    local runner = Count("bare://b/count", {}, { logdir = dir .. "/count" })
    runner:train()
    path = assert(runner:save())
    assert(runner:stop())
    assert(fs.remove_tree(dir .. "/count"))
    runner = Count("bare://b/count", {}, { logdir = dir .. "/count" })
    assert(runner:restore(path))
    assert.equal("first", fs.read(path .. "/n"))
    assert(runner:stop())
  end)
end)
