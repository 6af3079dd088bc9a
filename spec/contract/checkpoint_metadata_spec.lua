-- Checkpoint: metadata (items 18-32).

local ckpt = require "ckpt"
local shelf = require "contract.shelf"
local world = require "contract.checkpoint_world"

local fs, json = ckpt.fs, ckpt.json

describe("Checkpoint, metadata", function()
  local w, checkpoint, file

  before_each(function()
    w = world.open()
    checkpoint = ckpt.Checkpoint(w:tree("source", {}))
    file = checkpoint.path .. "/.metadata.json"
  end)
  after_each(function() w:close() end)

  local function fails(name, result, text, code)
    assert.is_nil(result)
    assert.are.equal(name, code)
    return text
  end

  it("[18] is an empty table if there is none, and reading makes none", function()
    assert.are.same({}, checkpoint:get_metadata())
    assert.are.same({}, fs.list(checkpoint.path))
    local remote = w:remote()
    assert.are.same({}, remote:get_metadata())
    assert.is_false(fs.exists(w.dir .. "/remote/.metadata.json"))
  end)

  it("[19] is an empty table of a directory that is not there", function()
    assert.are.same({}, ckpt.Checkpoint(w.dir .. "/none"):get_metadata())
    assert.are.same({}, ckpt.Checkpoint("mem://nowhere-at-all/x"):get_metadata())
  end)

  it("[20] is replaced as a whole when it is set", function()
    assert(checkpoint:set_metadata { a = 1, b = 2 })
    assert(checkpoint:set_metadata { c = 3 })
    assert.are.same({ c = 3 }, checkpoint:get_metadata())
    assert(checkpoint:set_metadata {})
    assert.are.equal("{}", fs.read(file))
  end)

  it("[21] is overlaid at the top level only by an update", function()
    assert(checkpoint:set_metadata { a = { x = 1, y = 2 }, b = 2 })
    assert(checkpoint:update_metadata { a = { x = 9 }, c = 3 })
    assert.are.same({ a = { x = 9 }, b = 2, c = 3 }, checkpoint:get_metadata())
  end)

  it("[21] keeps what an update does not name, to the last digit", function()
    local text = '{"z": [], "big": 12345678901234567890, "f": 1.10, "a": {}, "n": null}'
    assert(fs.write(file, text))
    assert(checkpoint:update_metadata { new = true })
    assert.are.equal(text:sub(1, -2) .. ', "new": true}', fs.read(file))
  end)

  it("[22 G] loses no key when many update at once, in a directory", function()
    w:together(6, checkpoint, [[
      for n = 1, 10 do assert(checkpoint:update_metadata { ["kNUMBER_" .. n] = n }) end]])
    local metadata, count = checkpoint:get_metadata(), 0
    for i = 1, 6 do
      for n = 1, 10 do
        assert.are.equal(n, metadata[("k%d_%d"):format(i, n)])
        count = count + 1
      end
    end
    assert.are.equal(60, count)
  end)

  it("[22 G] loses no key when somebody updates the store in between", function()
    local remote = w:remote()
    local path = w.dir .. "/remote/.metadata.json"
    local opened = getmetatable(assert(ckpt.store.open("shelf://at" .. w.dir .. "/remote")))
    assert(opened)
    for _, start in ipairs { '{"old": 1}', false } do
      if start then assert(fs.write(path, start)) else assert(fs.remove(path)) end
      local real, raced = shelf.Store.get_tagged, 0
      shelf.Store.get_tagged = function(...)
        local data, tag, name = real(...)
        raced = raced + 1
        if raced <= 2 then assert(fs.write(path, ('{"other": %d}'):format(raced))) end
        return data, tag, name
      end
      local done, text = remote:update_metadata { mine = 1 }
      shelf.Store.get_tagged = real
      assert(done, text)
      assert.are.equal(3, raced)
      assert.are.same({ other = 2, mine = 1 }, remote:get_metadata())
    end
  end)

  it("[23] is JSON in one piece, in ASCII, with blanks behind commas and colons", function()
    assert(checkpoint:set_metadata(json.order(
      { b = 1, a = { 1, json.null, true, 1.5 }, u = "é\n" }, { "b", "a", "u" })))
    assert.are.equal('{"b": 1, "a": [1, null, true, 1.5], "u": "\\u00e9\\n"}', fs.read(file))
    local metadata = checkpoint:get_metadata()
    assert.are.same({ b = 1, a = { 1, json.null, true, 1.5 }, u = "é\n" }, metadata)
    -- The order stays through reading and writing; without one it is that of the bytes.
    assert(checkpoint:set_metadata(metadata))
    assert.are.equal('{"b": 1, "a": [1, null, true, 1.5], "u": "\\u00e9\\n"}', fs.read(file))
    assert(checkpoint:set_metadata { b = 1, a = 2, ["😀"] = { x = "a" } })
    assert.are.equal('{"a": 2, "b": 1, "\\ud83d\\ude00": {"x": "a"}}', fs.read(file))
  end)

  it("[24] has NaN and Infinity, and keys of numbers as texts", function()
    assert(checkpoint:set_metadata(json.order({ n = 0 / 0, i = math.huge, m = -math.huge },
      { "n", "i", "m" })))
    assert.are.equal('{"n": NaN, "i": Infinity, "m": -Infinity}', fs.read(file))
    local metadata = checkpoint:get_metadata()
    assert(metadata.n ~= metadata.n and metadata.i == math.huge and metadata.m == -math.huge)
    assert(checkpoint:set_metadata { [7] = 2 })
    assert.are.same({ ["7"] = 2 }, checkpoint:get_metadata())
  end)

  it("[25] refuses what has no place in JSON, at the caller's line", function()
    local loop = {}
    loop.loop = loop
    for _, value in ipairs { { f = print }, { c = coroutine.create(print) }, loop, "text", 7,
      { [{}] = 1 }, { t = "\255" }, { [1] = 1, ["1"] = 2, x = 3 } } do
      for _, method in ipairs { "set_metadata", "update_metadata" } do
        local fine, text = pcall(function() return (checkpoint[method](checkpoint, value)) end)
        assert.is_false(fine)
        assert.is_truthy(text:find("checkpoint_metadata_spec.lua:", 1, true), text)
      end
    end
  end)

  it("[26 G] leaves the old metadata as it is when the new cannot be encoded", function()
    assert(checkpoint:set_metadata { old = 1 })
    assert.is_false(pcall(checkpoint.set_metadata, checkpoint, { f = print }))
    assert.is_false(pcall(checkpoint.update_metadata, checkpoint, { f = print }))
    assert.are.same({ old = 1 }, checkpoint:get_metadata())
    assert.are.same({ ".metadata.json" }, fs.list(checkpoint.path))
    local remote = w:remote()
    assert(remote:set_metadata { old = 1 })
    assert.is_false(pcall(remote.set_metadata, remote, { f = print }))
    assert.are.same({ old = 1 }, remote:get_metadata())
  end)

  it("[27 G] replaces the file in one step", function()
    assert(checkpoint:set_metadata { a = 1 })
    local before = fs.stat(file).inode
    -- Who has the old file open reads the old text to its end.
    local reader = assert(io.open(file, "rb"))
    assert(checkpoint:set_metadata { a = ("x"):rep(10000) })
    assert.are.equal('{"a": 1}', reader:read("*a"))
    reader:close()
    assert.are_not.equal(before, fs.stat(file).inode)
    assert.are.same({ ".metadata.json" }, fs.list(checkpoint.path))
  end)

  it("[27 G] clears what a killed process left of its write", function()
    local left = file .. "." .. ("0a"):rep(16) .. ".tmp"
    assert(fs.write(left, "{"))
    assert(fs.write(checkpoint.path .. "/x.metadata.json.0a.tmp", "mine"))
    assert(checkpoint:set_metadata { a = 1 })
    assert.are.same({ ".metadata.json", "x.metadata.json.0a.tmp" }, fs.list(checkpoint.path))
  end)

  it("[28] tells what is no JSON, and does not take it for nothing", function()
    for text, part in pairs {
      ["{garbage"] = "line 1 column 2", [""] = "Expecting value", ['{"a": 1} x'] = "Extra data",
      ['{"a": "\1"}'] = "control character", ['{"a": "\\q"}'] = "escape",
    } do
      assert(fs.write(file, text))
      local why = fails("EFORMAT", checkpoint:get_metadata())
      assert.is_truthy(why:find(part, 1, true), why)
      assert.is_truthy(why:find(file, 1, true), why)
      fails("EFORMAT", checkpoint:update_metadata { b = 1 })
      assert.are.equal(text, fs.read(file))
    end
  end)

  it("[29] gives what is stored if it is no object, and cannot update that", function()
    for text, value in pairs { ["[1]"] = { 1 }, ["5"] = 5, ['"x"'] = "x", ["[]"] = {} } do
      assert(fs.write(file, text))
      assert.are.same(value, checkpoint:get_metadata())
      local why = fails("EFORMAT", checkpoint:update_metadata { b = 1 })
      assert.is_truthy(why:find("no object", 1, true), why)
      assert.are.equal(text, fs.read(file))
    end
  end)

  it("[30] does not make the directory", function()
    local missing = ckpt.Checkpoint(w.dir .. "/none")
    fails("ENOENT", missing:set_metadata { a = 1 })
    fails("ENOENT", missing:update_metadata { a = 1 })
    assert.is_false(fs.exists(missing.path))
  end)

  it("[31] tells that .metadata.json is a directory", function()
    assert(fs.mkdirs(file))
    local value, text, name = checkpoint:get_metadata()
    assert.is_nil(value)
    assert.is_truthy(text:find(file, 1, true), text)
    assert.is_truthy(name:match("^E%u+$") and name ~= "ENOENT" and name ~= "EFORMAT", name)
    assert.is_nil((checkpoint:set_metadata { a = 1 }))
    assert.are.equal("directory", fs.stat(file).type)
  end)

  it("[32] is the same on any filesystem", function()
    for _, remote in ipairs { w:remote(), ckpt.Checkpoint("mem://metadata/checkpoint-1") } do
      assert.are.same({}, remote:get_metadata())
      assert(remote:update_metadata { a = 1 })
      assert(remote:update_metadata { b = 2 })
      assert.are.same({ a = 1, b = 2 }, remote:get_metadata())
      assert(remote:set_metadata { c = 3 })
      assert.are.same({ c = 3 }, remote:get_metadata())
    end
    assert.are.equal('{"c": 3}', fs.read(w.dir .. "/remote/.metadata.json"))
  end)
end)
