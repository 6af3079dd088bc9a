-- luacheck: std +busted
-- Checkpoint in a bucket of a real server; checkpoint_s3_spec.sh starts that.

local ckpt = require "ckpt"
local world = require "contract.checkpoint_world"

local fs = ckpt.fs
local data = assert(os.getenv("S3_DATA"))

describe("Checkpoint in a bucket", function()
  local w, uri, count = nil, nil, 0

  before_each(function()
    w = world.open()
    count = count + 1
    uri = "s3://ckpt-test/checkpoint-" .. count
  end)
  after_each(function() w:close() end)

  local function upload(files)
    assert(assert(ckpt.store.upload { dir = w:tree("source", files), uri = uri }):wait())
    return ckpt.Checkpoint(uri)
  end

  it("is fetched, with or without a record of its files", function()
    local checkpoint = upload()
    assert.are.equal("Checkpoint(filesystem=s3, path=ckpt-test/checkpoint-1)",
      tostring(checkpoint))
    assert.are.same(world.files, world.files_of(assert(checkpoint:to_directory(w.dir .. "/a"))))
    uri = "s3://ckpt-test/plain"
    local place = assert(ckpt.store.open(uri))
    for path, text in pairs(world.files) do assert(place:put(path, text)) end
    assert.are.same(world.files, assert(ckpt.Checkpoint(uri):as_directory(world.files_of)))
    assert.are.same({}, w:left())
  end)

  it("is not shown if it differs from its record", function()
    local checkpoint = upload()
    assert(assert(ckpt.store.open(uri)):put("a.txt", "data:X"))
    local path, text, name = checkpoint:to_directory(w.dir .. "/a")
    assert.is_nil(path)
    assert.are.equal("ECORRUPT", name, text)
    assert.is_false(fs.exists(w.dir .. "/a"))
  end)

  it("that is not there leaves nothing here", function()
    local path, _, name = ckpt.Checkpoint(uri):to_directory(w.dir .. "/a")
    assert.is_nil(path)
    assert.are.equal("ENOENT", name)
    assert.is_nil((ckpt.Checkpoint(uri):as_directory(print)))
    assert.is_false(fs.exists(w.dir .. "/a"))
    assert.are.same({}, w:left())
  end)

  it("keeps its metadata, and loses no key of many updates at once", function()
    local checkpoint = upload()
    assert.are.same({}, checkpoint:get_metadata())
    assert(checkpoint:set_metadata { start = 1 })
    w:together(5, checkpoint, [[
      for n = 1, 6 do assert(checkpoint:update_metadata { ["kNUMBER_" .. n] = n }) end]])
    local expected = { start = 1 }
    for i = 1, 5 do
      for n = 1, 6 do expected[("k%d_%d"):format(i, n)] = n end
    end
    assert.are.same(expected, checkpoint:get_metadata())
    assert.is_truthy(fs.read(data .. uri:match("/[^/]*$") .. "/.metadata.json"))
    -- A download has it too.
    assert(checkpoint:as_directory(function(path) return fs.read(path .. "/.metadata.json") end))
  end)

  it("is shared by 8 processes", function()
    local checkpoint = upload { ["model.bin"] = ("x"):rep(3000000) }
    w:together(8, checkpoint, [[
      assert(checkpoint:as_directory(function(path)
        ckpt.clock.sleep(0.5)
        return #assert(ckpt.fs.read(path .. "/model.bin")) == 3000000
      end))]])
    assert.are.same({}, w:left())
  end)
end)
