-- ckpt.store's trees: upload, download, delete, copy; the same promises of every kind of store.

local ckpt = require "ckpt"
local support = require "support"
local table_store = require "lua.store.store_support"

local fs, store = ckpt.fs, ckpt.store

table_store.register()

local dir
support.with_directory(function(made) dir = made end)

local function write(path, data)
  assert(fs.mkdirs(fs.parent(dir .. "/" .. path)))
  assert(fs.write(dir .. "/" .. path, data))
end

-- All that is below a directory, a line for each.
local function tree(path, with_times)
  local lines = {}
  for i, entry in ipairs(assert(fs.walk(dir .. "/" .. path))) do
    lines[i] = ("%s %s %o %s %s %s"):format(entry.path, entry.type, entry.mode,
      entry.type == "file" and fs.read(dir .. "/" .. path .. "/" .. entry.path) or "",
      entry.target or "",
      with_times and entry.type ~= "link" and ("%.4f"):format(entry.mtime) or "")
  end
  return lines
end

local function names(path)
  local out = {}
  for i, entry in ipairs(assert(fs.walk(dir .. "/" .. path))) do out[i] = entry.path end
  return table.concat(out, " ")
end

local function sample()
  write("src/model.bin", ("weights"):rep(3000))
  write("src/empty file", "")
  write("src/deep/er/odd\nname\255%41", "odd")
  write("src/run.sh", "#!/bin/sh\n")
  assert(fs.chmod(dir .. "/src/run.sh", tonumber("750", 8)))
  assert(fs.utime(dir .. "/src/model.bin", 1500000000.25))
  assert(fs.mkdirs(dir .. "/src/nothing/in here"))
  assert(fs.symlink("model.bin", dir .. "/src/latest"))
  assert(fs.symlink("gone", dir .. "/src/dangling"))
  assert(fs.chmod(dir .. "/src/deep", tonumber("700", 8)))
end

for _, kind in ipairs { "file", "mem", "table" } do
  describe("a tree in a store of " .. kind, function()
    local uri, place
    before_each(function()
      table_store.places.trees, table_store.full = nil, nil
      uri = ({ file = dir .. "/remote/x", mem = "mem://trees/x", table = "table://trees/x" })[kind]
      place = assert(store.open(uri))
    end)
    after_each(function() assert(store.delete { uri = uri }:wait()) end)

    it("has the files that links lead to out of it, each once, and is whole elsewhere", function()
      write("hub/blobs/w1", ("weights"):rep(3000))
      write("hub/blobs/c", "{}")
      write("hub/snapshots/a/own", "own")
      local at = dir .. "/hub/snapshots/a"
      assert(fs.mkdirs(at .. "/sub"))
      assert(fs.symlink("../../blobs/w1", at .. "/model.bin"))
      assert(fs.symlink("../../../blobs/w1", at .. "/sub/again.bin"))
      assert(fs.symlink(dir .. "/hub/blobs/c", at .. "/config.json"))
      assert(fs.symlink("../../blobs", at .. "/blobs"))
      local moved = assert(store.upload { dir = at, uri = uri }:wait())
      assert.are.equal(3, moved.files)
      assert(fs.rename(dir .. "/hub", dir .. "/gone"))
      assert(store.download { uri = uri, dir = dir .. "/back" }:wait())
      assert.are.equal("link", fs.lstat(dir .. "/back/blobs").type)
      assert(fs.remove(dir .. "/back/blobs"))
      for name, data in pairs { ["model.bin"] = ("weights"):rep(3000), own = "own",
        ["sub/again.bin"] = ("weights"):rep(3000), ["config.json"] = "{}" } do
        assert.are.equal(data, fs.read(dir .. "/back/" .. name))
      end
      assert.are.equal("../model.bin", fs.readlink(dir .. "/back/sub/again.bin"))
      assert.are.equal("file", fs.lstat(dir .. "/back/model.bin").type)
    end)

    local function up(exclude)
      return assert(store.upload { dir = dir .. "/src", uri = uri, exclude = exclude }):wait()
    end

    local function down(to, options)
      options = options or {}
      options.uri, options.dir = uri, dir .. "/" .. to
      return assert(store.download(options)):wait()
    end

    it("comes back as it was, with modes, times, links and empty directories", function()
      sample()
      assert.equal(4, assert(up()).files)
      assert.equal(4, assert(down("made/of/to")).files)
      assert.same(tree("src", true), tree("made/of/to", true))
    end)

    it("is sent again only where it differs", function()
      sample()
      assert(up())
      assert.same({ 0, 0 }, { up().files, up().bytes })
      write("src/run.sh", "#!/bin/bash\n")
      assert(fs.utime(dir .. "/src/empty file", 1400000000))
      local moved = assert(up())
      assert.same({ 2, 12 }, { moved.files, moved.bytes })
      assert(down("to"))
      assert.equal("#!/bin/bash\n", fs.read(dir .. "/to/run.sh"))
      assert.equal(1400000000, fs.stat(dir .. "/to/empty file").mtime)
    end)

    it("[G 178] leaves out what is excluded, with all below it, both ways", function()
      for _, path in ipairs { "a", "rank_0/f", "sub/rank_1/f", "sub/b.tmp", "sub/c", "x/y/z" } do
        write("src/" .. path, path)
      end
      assert(up { "./rank_*", "*.tmp" })
      assert(down("to"))
      assert.equal("a sub sub/c sub/rank_1 sub/rank_1/f x x/y x/y/z", names("to"))
      assert(down("less", { exclude = { "x/y", "sub/rank_?" } }))
      assert.equal("a sub sub/c x", names("less"))
    end)

    it("[184] keeps what is gone here, and brings it back", function()
      write("src/a", "a")
      write("src/old/b", "b")
      assert(up())
      assert(fs.remove_tree(dir .. "/src/old"))
      write("src/c", "c")
      assert(up())
      assert(down("to"))
      assert.equal("a c old old/b", names("to"))
      assert.equal(0, up().files)
    end)

    it("keeps what an exclude left out of a later upload", function()
      write("src/a", "a")
      write("src/b", "b")
      assert(up())
      write("src/b", "changed")
      assert(up { "b" })
      assert(down("to"))
      assert.equal("b", fs.read(dir .. "/to/b"))
    end)

    it("of another tool, without a record, is fetched as it is listed", function()
      assert(place:put("a", "1"))
      assert(place:put("d/e/f", "2"))
      assert(place:put("empty", ""))
      assert.equal(3, assert(down("to")).files)
      assert.equal("a d d/e d/e/f empty", names("to"))
      assert.equal("2", fs.read(dir .. "/to/d/e/f"))
    end)

    it("may have more in it than its record says", function()
      write("src/a", "a")
      assert(up())
      assert(place:put("more/b", "b"))
      assert(down("to"))
      assert.equal("a more more/b", names("to"))
    end)

    it("that is not there is ENOENT, and no directory is left of the attempt", function()
      local result, text, name = down("made/of/to")
      assert.is_nil(result)
      assert.equal("ENOENT", name)
      assert.matches("nothing is at", text)
      assert.is_false(fs.exists(dir .. "/made"))
      assert.equal("ENOENT", select(3, up()))
      assert.same({}, place:list())
    end)

    it("that was changed behind its record's back is ECORRUPT, and nothing appears", function()
      write("src/a", "aaaa")
      write("src/b", "bbbb")
      assert(up())
      assert(place:put("a", "AAAA"))
      assert.equal("ECORRUPT", select(3, down("made/of/to")))
      assert.is_false(fs.exists(dir .. "/made"))
      assert(place:delete("a"))
      local _, text, name = down("to")
      assert.equal("ECORRUPT", name)
      assert.matches("a is missing", text)
      assert.is_false(fs.exists(dir .. "/to"))
    end)

    it("goes into a directory that is there only by merge, file by file", function()
      -- Of another size: equal size and time count as equal files.
      write("src/a", "newer")
      write("src/d/b", "b")
      write("to/a", "old")
      write("to/d/mine", "mine")
      assert(up())
      assert.equal("EEXISTS", select(3, down("to")))
      assert.equal("old", fs.read(dir .. "/to/a"))
      assert.equal(2, assert(down("to", { merge = true })).files)
      assert.equal("a d d/b d/mine", names("to"))
      assert.equal("newer", fs.read(dir .. "/to/a"))
      assert.equal(0, assert(down("to", { merge = true })).files)
      write("to/d/b", "changed here")
      assert.equal(1, assert(down("to", { merge = true })).files)
      assert.equal("b", fs.read(dir .. "/to/d/b"))
      assert.same({ "src", "to" }, { unpack(fs.list(dir), #fs.list(dir) - 1) })
    end)

    it("and a directory that disagree on what is a directory are EEXISTS", function()
      write("src/x", "file")
      write("to/x/y", "dir")
      assert(up())
      assert.is_nil((down("to", { merge = true })))
      assert.equal("dir", fs.read(dir .. "/to/x/y"))
    end)

    it("to which an upload was cut off is not taken for whole", function()
      local key = kind == "table" and ".ckpt-tree" or ".ckpt-manifest"
      write("src/a", "a")
      write("src/b", "b")
      assert(up())
      assert(place:put(key .. ".part.json", assert(place:get(key .. ".json"))))
      assert(down("both")) -- it was cut before anything changed, or after all was there
      assert(place:delete(key .. ".json"))
      local _, text, name = down("made/of/to")
      assert.equal("ECONFLICT", name)
      assert.matches("goes on, or was cut off", text)
      assert.is_false(fs.exists(dir .. "/made"))
      assert(down("part", { unfinished = true }))
      assert.equal("a b", names("part"))
      write("src/b", "changed")
      assert.equal(1, assert(up()).files)
      assert(down("to"))
      assert.equal("changed", fs.read(dir .. "/to/b"))
      assert.is_false(place:exists(key .. ".part.json"))
    end)

    it("is removed whole, and once is enough", function()
      sample()
      assert(up())
      assert(store.delete { uri = uri }:wait())
      assert.same({}, place:list())
      assert(store.delete { uri = uri }:wait())
      assert.equal("ENOENT", select(3, down("to")))
    end)

    it("refuses what no store can keep", function()
      write("src/a", "a")
      assert.equal(0, os.execute("mkfifo '" .. dir .. "/src/pipe'"))
      local _, text, name = up()
      assert.equal("EINVAL", name)
      assert.matches("pipe is a socket, pipe or device: exclude it", text)
      assert(up { "pipe" })
    end)
  end)
end

describe("an upload that fails", function()
  it("leaves no record, so that nothing half done looks whole", function()
    write("src/a", "a")
    local uri = "table://trees/y"
    assert(store.upload { dir = dir .. "/src", uri = uri }:wait())
    table_store.full = "^b$"
    write("src/b", "b")
    local _, text, name = store.upload { dir = dir .. "/src", uri = uri }:wait()
    assert.same({ "the table is full", "ENOSPACE" }, { text, name })
    table_store.full = nil
    local place = assert(store.open(uri))
    assert.is_false(place:exists(".ckpt-tree.json"))
    assert.is_true(place:exists(".ckpt-tree.part.json"))
    assert.equal(1, assert(store.upload { dir = dir .. "/src", uri = uri }:wait()).files)
    assert.is_true(place:exists(".ckpt-tree.json"))
    assert.is_false(place:exists(".ckpt-tree.part.json"))
  end)

  it("may send a place that lies in a file", function()
    write("src/a", "a")
    write("file", "x")
    local _, _, name = store.upload { dir = dir .. "/src", uri = dir .. "/file/x" }:wait()
    assert.is_not_nil(name)
    assert.equal("x", fs.read(dir .. "/file"))
  end)
end)

describe("a hostile store", function()
  local uri, place
  before_each(function()
    table_store.places.evil = nil
    uri = "table://evil"
    place = assert(store.open(uri))
  end)

  local function refused()
    assert.equal("EFORMAT", select(3, store.download { uri = uri, dir = dir .. "/d/to" }:wait()))
    assert.same({}, fs.list(dir))
  end

  it("cannot name what is outside of the directory", function()
    table_store.places.evil["../../evil"] = "x"
    refused()
  end)

  it("cannot have a record that does, or that writes through a link", function()
    local function record(entries)
      assert(place:put(".ckpt-tree.json", '{"format":1,"entries":{' .. entries .. "}}"))
      refused()
    end
    record '"../x": {"type":"directory","mode":493,"mtime":1}'
    record '"a/%2E%2E/x": {"type":"directory","mode":493,"mtime":1}'
    record('"a": {"type":"link","mode":511,"mtime":1,"target":"/tmp"}, '
      .. '"a/b": {"type":"directory","mode":493,"mtime":1}')
    record '"a": {"type":"file","mode":493,"mtime":1}'
    record '"a": 7'
    assert(place:put(".ckpt-tree.json", "[]"))
    refused()
  end)

  it("cannot put objects below what its record has as a link", function()
    assert(fs.mkdirs(dir .. "/outside"))
    assert(place:put(".ckpt-tree.json", '{"format":1,"entries":{"a": {"type":"link","mode":511,'
      .. '"mtime":1,"target":"' .. dir .. '/outside"}}}'))
    assert(place:put("a/b", "evil"))
    assert(store.download { uri = uri, dir = dir .. "/to" }:wait())
    assert.same({}, fs.list(dir .. "/outside"))
  end)
end)

describe("a store with mistakes", function()
  -- A store that has one object "k" of one byte, but for these functions.
  local function opened(parts)
    local methods = {
      get = function(_, key)
        if key == "k" then return "x" end
        return nil, "no " .. key, "ENOENT"
      end,
      put = function() return true end,
      delete = function() return true end,
      list = function() return { { key = "k", size = 1 } } end,
    }
    for name, fn in pairs(parts) do methods[name] = fn end
    store.register("mistaken", { open = function() return methods end })
  end

  local function fails(wanted, words)
    local done, text, name = store.download { uri = "mistaken://x", dir = dir .. "/to" }:wait()
    assert.is_nil(done)
    assert.equal(wanted, name)
    assert.truthy(text:find(words, 1, true), text)
    assert.is_false(fs.exists(dir .. "/to"))
  end

  it("is told what it returned, and what it should", function()
    opened { get = function(_, key) return key == "k" and 7 or nil, "no", "ENOENT" end }
    fails("EIO", "its get returned a number")
    opened { list = function() end }
    fails("EIO", "its list returned a nil")
    opened { delete = function() end }
    local done, text = store.open("mistaken://x"):delete("k")
    assert.is_nil(done)
    assert.truthy(text:find("its delete returned a nil", 1, true))
  end)

  it("gives nothing if an object without a record is shorter than it lists", function()
    opened { list = function() return { { key = "k", size = 2 } } end }
    fails("ERETIRED", "2 are listed")
  end)

  it("has to be opened as a table", function()
    store.register("mistaken", { open = function() end })
    local opened_store, text, name = store.open("mistaken://x")
    assert.is_nil(opened_store)
    assert.equal("EINVAL", name)
    assert.truthy(text:find("its open returned a nil", 1, true))
  end)
end)

describe("a path with slashes at its end", function()
  it("is the same directory", function()
    write("src/a", "a")
    for _, uri in ipairs { dir .. "/remote", "table://slash/x" } do
      assert(store.upload { dir = dir .. "/src/", uri = uri .. "/" }:wait())
      assert(store.download { uri = uri, dir = dir .. "/to//" }:wait())
      assert.equal("a", names("to"))
      assert(fs.remove_tree(dir .. "/to"))
    end
    assert(store.copy { from = dir .. "/src/", to = dir .. "/to/" }:wait())
    assert.same({ "remote", "src", "to" }, fs.list(dir))
  end)
end)

describe("places within places", function()
  local outer, inner
  before_each(function()
    outer, inner = dir .. "/remote", dir .. "/remote/trial/checkpoint_1"
    write("src/log", "log 1")
    write("src/trial/checkpoint_1/model", "model 1")
    assert(fs.symlink("model", dir .. "/src/trial/checkpoint_1/best"))
  end)

  local function up(from, uri)
    return assert(store.upload { dir = dir .. "/" .. from, uri = uri }:wait())
  end
  local function down(uri, to)
    return assert(store.download { dir = dir .. "/" .. to, uri = uri }:wait())
  end

  it("are whole after the inner one was uploaded anew", function()
    up("src", outer)
    write("src/trial/checkpoint_1/model", "model 2")
    up("src/trial/checkpoint_1", inner)
    down(outer, "a")
    assert.same(tree("src"), tree("a"))
    down(inner, "b")
    assert.same(tree("src/trial/checkpoint_1"), tree("b"))
  end)

  it("are whole after the outer one was uploaded over it", function()
    up("src/trial/checkpoint_1", inner)
    write("src/trial/checkpoint_1/model", "model 3")
    up("src", outer)
    down(outer, "a")
    assert.same(tree("src"), tree("a"))
    assert(down(inner, "b"))
    assert.equal("model 3", fs.read(dir .. "/b/model"))
  end)

  it("are whole after the inner one was removed", function()
    up("src", outer)
    up("src/trial/checkpoint_1", inner)
    assert(store.delete { uri = inner }:wait())
    down(outer, "a")
    assert.equal("log trial", names("a"))
    assert.equal("log 1", fs.read(dir .. "/a/log"))
  end)

  it("leave out an inner one that an upload was cut off to", function()
    up("src", outer)
    up("src/trial/checkpoint_1", inner)
    write("remote/trial/checkpoint_1/.ckpt-manifest.part.json", "{}")
    assert(fs.remove(inner .. "/.ckpt-manifest.json"))
    assert(fs.write(inner .. "/model", "half"))
    local lines, restore = ckpt.testing.capture_log()
    down(outer, "a")
    restore()
    assert.is_false(fs.exists(dir .. "/a/trial/checkpoint_1/model"))
    assert.equal("log 1", fs.read(dir .. "/a/log"))
    assert.equal(1, #lines)
    assert.matches("trial/checkpoint_1 is left out", lines[1].text)
    assert(store.download { dir = dir .. "/b", uri = outer, unfinished = true }:wait())
    assert.equal("half", fs.read(dir .. "/b/trial/checkpoint_1/model"))
    up("src", outer) -- what is there now is the outer one's
    down(outer, "c")
    assert.same(tree("src"), tree("c"))
    assert.is_false(fs.exists(inner .. "/.ckpt-manifest.part.json"))
  end)

  it("leave nothing of the store's own in a directory", function()
    up("src", outer)
    assert.same({ ".ckpt-manifest.json", "log", "trial" }, fs.list(outer))
    assert.same({ "remote", "src" }, fs.list(dir))
  end)
end)

describe("a place with the log of a run", function()
  it("is neither written to nor removed", function()
    write("src/a", "a")
    write("runs/.ckpt/log/00000000000000000001.json", "{}")
    assert.equal("EUNSUPPORTED",
      select(3, store.upload { dir = dir .. "/src", uri = dir .. "/runs" }:wait()))
    assert.equal("EUNSUPPORTED", select(3, store.delete { uri = dir .. "/runs" }:wait()))
    assert.equal(".ckpt .ckpt/log .ckpt/log/00000000000000000001.json", names("runs"))
  end)
end)

describe("a whole memory, bucket or disk", function()
  it("is not removed", function()
    local place = assert(store.open("mem://whole"))
    assert(place:put("a", "1"))
    for _, uri in ipairs { "mem://whole", "mem://whole/", "mem://whole/x/.." } do
      assert.equal("EINVAL", select(3, store.delete { uri = uri }:wait()))
    end
    assert.equal("1", place:get("a"))
  end)
end)

describe("store.copy", function()
  local function copy(to, options)
    options = options or {}
    options.from, options.to = dir .. "/src", dir .. "/" .. to
    return assert(store.copy(options)):wait()
  end

  it("copies all as it is", function()
    sample()
    assert.equal(4, assert(copy("made/of/to")).files)
    assert.same(tree("src", true), tree("made/of/to", true))
  end)

  it("has the files that links lead to out of it", function()
    write("shared/w", "weights")
    write("src/a", "a")
    assert(fs.symlink("../shared/w", dir .. "/src/model.bin"))
    assert(fs.symlink("../shared", dir .. "/src/shared"))
    assert.equal(2, assert(copy("to")).files)
    assert.equal("file", fs.lstat(dir .. "/to/model.bin").type)
    assert.equal("weights", fs.read(dir .. "/to/model.bin"))
    assert.equal("../shared", fs.readlink(dir .. "/to/shared"))
  end)

  it("leaves out what is excluded", function()
    write("src/a", "a")
    write("src/rank_0/b", "b")
    assert(copy("to", { exclude = { "./rank_*" } }))
    assert.equal("a", names("to"))
  end)

  it("goes over what is there only by merge", function()
    write("src/a", "new")
    write("to/a", "old")
    write("to/b", "b")
    assert.equal("EEXISTS", select(3, copy("to")))
    assert(copy("to", { merge = true }))
    assert.equal("new", fs.read(dir .. "/to/a"))
    assert.equal("b", fs.read(dir .. "/to/b"))
  end)

  it("into itself is refused, unless that part is excluded", function()
    write("src/a", "a")
    assert.equal("EINVAL", select(3, copy("src/b")))
    assert.equal("EINVAL", select(3, copy("src/./../src", { merge = true })))
    local up = store.upload { dir = dir .. "/src", uri = dir .. "/src/b" }
    assert.equal("EINVAL", select(3, up:wait()))
    for _ = 1, 2 do
      assert(store.upload { dir = dir .. "/src", uri = dir .. "/src/b", exclude = { "b" } }:wait())
    end
    assert.equal("a b b/.ckpt-manifest.json b/a", names("src"))
  end)

  it("of nothing is ENOENT, and leaves nothing", function()
    assert.equal("ENOENT", select(3, copy("made/of/to")))
    assert.same({}, fs.list(dir))
  end)

  it("removes what a copy that was killed left beside the target", function()
    write("src/a", "a")
    write(".to.ckpt-0123456789abcdef0123456789abcdef/half", "half")
    assert(copy("to"))
    assert.same({ "src", "to" }, fs.list(dir))
  end)
end)

describe("options", function()
  it("that cannot be meant are refused, at the caller's line", function()
    local ok, text = pcall(function() store.upload { dir = dir } end)
    assert.is_false(ok)
    assert.matches("store_trees_spec.lua:%d+: store.upload: `uri` is missing", text)
    assert.error_matches(function() store.download { dir = 1, uri = "/x" } end,
      "`dir` is a number, not a string")
    assert.error_matches(function() store.delete { uri = "/x", dri = "/y" } end,
      "unknown option dri")
    assert.error_matches(function() store.upload { dir = dir, uri = "/x", exclude = { 1 } } end,
      "pattern 1 of `exclude` is a number")
    assert.error_matches(function() store.upload("/x") end, "takes a table")
    assert.equal("EINVAL", select(3, store.upload { dir = dir, uri = "relative" }))
  end)
end)
