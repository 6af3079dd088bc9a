-- What Ray 2.10.0 did with its Checkpoint, row by row, and that this one does the same; where it
-- does better on purpose the row names the item, and our answer is checked.

local ckpt = require "ckpt"
local peer_words = require "contract.peer_words"
local readers = require "ckpt.ray.checkpoint.checkpoint_readers"
local recording = require "recording"
local shelf = require "contract.shelf"
local support = require "support"
local world = require "contract.checkpoint_world"

local fs, json = ckpt.fs, ckpt.json

local oracle = recording.read "train_checkpoint_2.10.0"

-- How an error of Python comes out here: it is raised, or returned with this name.
local RAISED = { ArrowInvalid = true, AttributeError = true, TypeError = true }
local RETURNED = {
  FileNotFoundError = "ENOENT", JSONDecodeError = "EFORMAT", FileExistsError = "EEXISTS",
  IsADirectoryError = "EINVAL", RuntimeError = "EINTERNAL",
}

-- What Ray answers where ours answers something else, or where a row compares less than all of it:
-- the record has to have it.
local PEER = {
  ["construct ''"] = { "", recording.null },
  ["construct Path"] = { "/abs/x" },
  ["construct uri with filesystem (not stripped)"] = { "file:///abs/x" },
  ["from_directory relative kept as is"] = { "rel/x" },
  ["from_directory tilde kept as is"] = { "~/x" },
  ["from_directory missing dir is accepted"] = { "/no/such" },
  ["set_metadata with unserialisable value destroys the old metadata"] = {
    "Object of type object is not JSON serializable", 0,
    { "JSONDecodeError", "Expecting value: line 1 column 1 (char 0)" },
  },
  ["locked by another: waits, copies nothing, returns the dir as it is"] = {
    true, { "$B/t5" }, {} },
  ["locked by another and dir gone afterwards"] = { { "RuntimeError",
    "Checkpoint directory $B/t6 does not exist, even though it should h" } },
  ["source missing: error, target dir left empty"] = { "FileNotFoundError",
    "Path not found: (<pyarrow._fs.LocalFileSystem object at 0x7f", true, {} },
  ["links, dangling link, empty dir, mode, mtime"] = {
    recording.null, { "a.txt", "lnk", "sub/b.txt", "sub/deep/c.bin" }, false, true, "0o644",
    false },
  ["link (not dangling), empty dir, mode, mtime"] = {
    { "a.txt", "lnk", "sub/b.txt", "sub/deep/c.bin" }, false, true, "0o644", false },
  ["... and the outer exit logs a warning"] = { false },
  ["two readers (two pids): last one removes"] = {
    true, { "del_lock_11", "del_lock_22" }, { true, 1 }, false },
  ["as_directory when the download fails: lock and empty dir are left behind"] = {
    { "FileNotFoundError", "Path not found: (<pyarrow._fs.PyFileSyst" },
    { "$B/tmp/checkpoint_tmp_$UUID", "$B/tmp/checkpoint_tmp_$UUID.del_lock_$PID" } },
  ["as_directory after to_directory(): removes the dir to_directory() gave out"] = { true, false },
  ["lock listing is a glob: brackets in the path hide locks"] = { true, {} },
}

describe("Ray 2.10.0's Checkpoint", function()
  local w
  local rows, shown = {}, {}

  for _, row in ipairs(oracle.rows) do rows[row.name] = row end

  before_each(function() w = world.open() end)
  after_each(function() w:close() end)

  -- Defines the test of rows. `items`: those of section G that make us differ.
  local function row(name, title, check)
    assert(rows[name], name)
    shown[name] = (shown[name] or 0) + 1
    it(title .. ": " .. name, function()
      peer_words.check_checkpoint(rows[name])
      if PEER[name] then assert.same(PEER[name], rows[name].ret) end
      check(rows[name])
    end)
  end

  local function raises(recorded, fn, ...)
    assert(RAISED[recorded[1]], recorded[1])
    local fine, text = pcall(fn, ...)
    assert.is_false(fine)
    return text
  end

  local function returns(recorded, result, text, name)
    assert.is_nil(result)
    assert.are.equal(assert(RETURNED[recorded[1]], recorded[1]), name)
    return text
  end

  -- What a text of the record is here: its scratch directory is ours.
  local function here(text) return (text:gsub("%$B", w.dir)) end

  local function paths(dir)
    local found = {}
    for path in pairs(world.files_of(dir)) do found[#found + 1] = path end
    table.sort(found)
    return found
  end

  -- The record's tree.
  local FILES = {
    ["a.txt"] = "data:a.txt", ["sub/b.txt"] = "data:b", ["sub/deep/c.bin"] = "data:c",
  }
  local function source(name) return ckpt.Checkpoint(w:tree(name or "source", FILES)) end

  -- ---- construction ----

  for _, uri in ipairs { "/abs/x", "/abs/x/", "/abs//x/../y", "file:///abs/x", "file:///abs/x/",
    "~/x", "/with space/x", "/with%20pct", "file:///with%20pct" } do
    row(("construct '%s'"):format(uri), "[4, 7, 8, 9]", function(recorded)
      local made = ckpt.Checkpoint(uri)
      assert.are.equal((recorded.ret[1]:gsub("%$HOME", w.home)), made.path)
      assert.are.equal(recorded.ret[2], made.filesystem.type_name)
    end)
  end

  for _, uri in ipairs { "rel/x", "memory://x", "s4://b/k", "file://host/x" } do
    row(("construct '%s'"):format(uri), "[8, 9]", function(recorded)
      local text = raises(recorded.error, ckpt.Checkpoint, uri)
      assert.is_truthy(text:find(uri:match("^rel") or uri:match("host") or uri, 1, true), text)
    end)
  end

  row("construct ''", "[6 G]", function() assert.is_false(pcall(ckpt.Checkpoint, "")) end)

  -- Arrow's own file system for tests, in which a URI has no host.
  for _, uri in ipairs { "mock://b/k", "mock:///b/k" } do
    row(("construct '%s'"):format(uri), "[4]", function(recorded)
      ckpt.store.register("mock", {
        no_host = true, open = function() return nil, "closed", "EIO" end,
      })
      local made = ckpt.Checkpoint(uri)
      assert.are.same(recorded.ret, { made.path, made.filesystem.type_name })
      local copy = ckpt.Checkpoint.deserialize(made:serialize())
      assert.are.same({ made.path, made.filesystem }, { copy.path, copy.filesystem })
    end)
  end

  row("construct Path", "[3]", function(recorded)
    local path = setmetatable({}, { __tostring = function() return "/abs/x" end })
    assert.are.equal(recorded.ret[1], ckpt.Checkpoint(path).path)
  end)
  row("construct uri with filesystem (not stripped)", "[5]", function(recorded)
    local filesystem = ckpt.Checkpoint("/x").filesystem
    assert.are.equal(recorded.ret[1], ckpt.Checkpoint("file:///abs/x", filesystem).path)
  end)
  for name, path in pairs { ["from_directory relative kept as is"] = "rel/x",
    ["from_directory tilde kept as is"] = "~/x",
    ["from_directory missing dir is accepted"] = "/no/such" } do
    row(name, "[10]", function(recorded)
      assert.are.equal(recorded.ret[1], ckpt.Checkpoint.from_directory(path).path)
    end)
  end
  row("repr", "[11]", function(recorded)
    assert.are.equal(recorded.ret, tostring(ckpt.Checkpoint("/abs/x")))
  end)
  row("repr of empty path", "[6 G]", function(recorded)
    assert.are.equal("AttributeError", recorded.error[1])
    assert.is_false(pcall(ckpt.Checkpoint, ""))
  end)
  row("fspath", "[13]", function(recorded)
    local text = raises(recorded.error, fs.stat, ckpt.Checkpoint("/abs/x"))
    assert.is_truthy(text:find("to_directory", 1, true) and text:find("as_directory", 1, true))
  end)

  -- ---- names that are gone ----

  for _, name in ipairs { "from_dict", "to_dict", "from_bytes", "to_bytes",
    "get_internal_representation", "from_uri", "to_uri", "uri", "get_preprocessor",
    "set_preprocessor", "nonsense" } do
    local function ask(object) return object[name] end
    row("class attribute " .. name, "[14, 15, 16]", function(recorded)
      local text = raises(recorded.error, ask, ckpt.Checkpoint)
      assert.is_truthy(text:find(name, 1, true))
      assert.are.equal(name ~= "nonsense", #text > 100)
    end)
    row("instance attribute " .. name, "[17 G]", function(recorded)
      local text = raises(recorded.error, ask, ckpt.Checkpoint("/abs/x"))
      assert.is_truthy(text:find(name, 1, true))
      assert.are.equal(name ~= "nonsense", #text > 100)
    end)
  end

  -- ---- metadata ----

  local function stored(checkpoint) return fs.read(checkpoint.path .. "/.metadata.json") end

  row("metadata basic", "[18, 20, 21, 23]", function(recorded)
    local one = source()
    local got = { one:get_metadata(), fs.exists(one.path .. "/.metadata.json") }
    assert(one:set_metadata(json.order({ b = 1, a = { 1, json.null, true, 1.5 }, u = "é\n" },
      { "b", "a", "u" })))
    got[3] = stored(one)
    assert(one:update_metadata { a = 2 })
    got[4] = one:get_metadata()
    assert(one:set_metadata {})
    got[5] = stored(one)
    assert.are.same(recorded.ret, got)
  end)
  row("set_metadata with unserialisable value destroys the old metadata", "[26 G]", function()
    local one = source()
    assert(one:set_metadata { old = 1 })
    assert.is_false(pcall(one.set_metadata, one, { x = print }))
    assert.are.equal('{"old": 1}', stored(one))
  end)
  row("metadata NaN/Infinity", "[24]", function(recorded)
    local one = source()
    assert(one:set_metadata(json.order({ n = 0 / 0, i = math.huge }, { "n", "i" })))
    assert.are.equal(recorded.ret, stored(one))
  end)
  row("metadata int keys become strings", "[24]", function(recorded)
    local one = source()
    -- In Lua a table with the key 1 alone is a list, unless it is said to be none.
    assert(one:set_metadata(json.order({ 2 }, {})))
    assert.are.same(recorded.ret, one:get_metadata())
  end)
  for name, text in pairs { ["metadata file is garbage"] = "{garbage",
    ["metadata file is empty"] = "" } do
    row(name, "[28]", function(recorded)
      local one = source()
      assert(fs.write(one.path .. "/.metadata.json", text))
      local why = returns(recorded.error, one:get_metadata())
      assert.is_truthy(why:find(recorded.error[2], 1, true), why)
    end)
  end
  row("metadata file is a list", "[29]", function(recorded)
    local one = source()
    assert(fs.write(one.path .. "/.metadata.json", "[1]"))
    assert.are.same(recorded.ret, one:get_metadata())
  end)
  row("update when stored metadata is a list", "[29]", function(recorded)
    local one = source()
    assert(fs.write(one.path .. "/.metadata.json", "[1]"))
    assert.are.equal("AttributeError", recorded.error[1])
    local done, text, name = one:update_metadata { a = 1 }
    assert(done == nil and name == "EFORMAT", text)
  end)
  row("get_metadata on a missing dir", "[19]", function(recorded)
    assert.are.same(recorded.ret, ckpt.Checkpoint(w.dir .. "/none"):get_metadata())
  end)
  row("set_metadata on a missing dir", "[30]", function(recorded)
    returns(recorded.error, ckpt.Checkpoint(w.dir .. "/none"):set_metadata { a = 1 })
  end)
  row("metadata path is a directory", "[31]", function(recorded)
    local one = source()
    assert(fs.mkdirs(one.path .. "/.metadata.json"))
    assert.are.equal("OSError", recorded.error[1])
    local value, text = one:get_metadata()
    assert.is_nil(value)
    assert.is_truthy(text:find(".metadata.json", 1, true))
  end)

  -- ---- to_directory ----

  row("to_directory default name, reuse, pickled copy same dir, other object other dir",
    "[2, 12, 33, 39, 42]", function(recorded)
      local one = source()
      local path = assert(one:to_directory())
      local base = fs.base(path)
      local copy = ckpt.Checkpoint.deserialize(one:serialize())
      assert.are.same(recorded.ret, {
        base:sub(1, 15) == "checkpoint_tmp_", #base == 15 + 32,
        (fs.parent(path):gsub(w.dir, "$B", 1)), paths(path), one:to_directory() == path,
        copy:to_directory() == path, ckpt.Checkpoint(one.path):to_directory() == path,
      })
    end)
  row("to_directory into existing dir: overwrite and keep extras", "[41 G]", function(recorded)
    w:tree("t2", { extra = "mine", ["a.txt"] = "old" })
    local path = source():to_directory(w.dir .. "/t2")
    assert.are.same({ here(recorded.ret[1]), recorded.ret[2], recorded.ret[3] },
      { path, paths(path), fs.read(path .. "/a.txt") })
  end)
  row("to_directory normalises", "[34]", function(recorded)
    assert.are.equal(here(recorded.ret), source():to_directory(w.dir .. "//t3/x/.././y/"))
  end)
  row("to_directory expands ~", "[34]", function(recorded)
    assert.are.equal(here(recorded.ret), source():to_directory("~/ck"))
  end)
  row("locked by another: waits, copies nothing, returns the dir as it is", "[38 G]",
    function(recorded)
      local target, waited = w.dir .. "/t5", false
      local held = w.hold(target)
      world.at_sleep(function()
        waited = true
        held:release()
      end)
      -- The one that held it has put nothing there: where Ray gives an empty directory, we fetch.
      local path = source():to_directory(target)
      assert.are.same({ recorded.ret[1], here(recorded.ret[2][1]) }, { waited, path })
      assert.are.same({}, recorded.ret[3])
      assert.are.same(FILES, world.files_of(target))
    end)
  row("locked by another and dir gone afterwards", "[37]", function(recorded)
    -- Gone, and never complete: we fetch.
    local one, target = source(), w.dir .. "/t6"
    local held = w.hold(target)
    world.at_sleep(function()
      fs.remove_tree(target)
      held:release()
    end)
    assert(one:to_directory(target))
    assert.are.same(FILES, world.files_of(target))
    -- Gone after it was complete: somebody removes what is not his.
    target = w.dir .. "/t6b"
    held = w.hold(target)
    world.at_sleep(function()
      w.fake_fetch(one, target, FILES)
      fs.remove_tree(target)
      held:release()
    end)
    local text = returns(recorded.ret[1], one:to_directory(target))
    assert.is_truthy(text:find("Checkpoint directory " .. target .. " does not exist", 1, true))
  end)
  row("source missing: error, target dir left empty", "[44 G]", function(recorded)
    local target = w.dir .. "/t7"
    returns(recorded.ret, ckpt.Checkpoint(w.dir .. "/none"):to_directory(target))
    assert.is_true(recorded.ret[3])
    assert.is_false(fs.exists(target))
  end)
  row("checkpoint path is a file", "[46]", function(recorded)
    local file = source().path .. "/a.txt"
    returns(recorded.error, ckpt.Checkpoint(file):to_directory(w.dir .. "/t8"))
  end)
  row("target is a file", "[35]", function(recorded)
    assert(fs.write(w.dir .. "/t9", "x"))
    returns(recorded.error, source():to_directory(w.dir .. "/t9"))
  end)
  for name, link in pairs { ["links, dangling link, empty dir, mode, mtime"] = "nowhere",
    ["link (not dangling), empty dir, mode, mtime"] = "a.txt" } do
    row(name, "[47, 48 G]", function(recorded)
      local one, target = source(), w.dir .. "/t10"
      assert(fs.symlink("a.txt", one.path .. "/lnk"))
      if link == "nowhere" then assert(fs.symlink(link, one.path .. "/dangling")) end
      assert(fs.mkdirs(one.path .. "/empty"))
      assert(fs.chmod(one.path .. "/a.txt", tonumber("600", 8)))
      assert(fs.utime(one.path .. "/a.txt", 1000))
      assert(one:to_directory(target))
      -- Ray: files instead of links, the empty directory, mode 0644, the time of now.
      local at = #recorded.ret
      assert.are.same({ false, true, "0o644", false },
        { recorded.ret[at - 3], recorded.ret[at - 2], recorded.ret[at - 1], recorded.ret[at] })
      assert.are.equal("a.txt", fs.readlink(target .. "/lnk"))
      assert.are.same({}, fs.list(target .. "/empty"))
      local stat = fs.stat(target .. "/a.txt")
      assert.are.same({ tonumber("600", 8), 1000 }, { stat.mode, stat.mtime })
      assert.are.equal(link == "nowhere" and "nowhere" or nil,
        (fs.readlink(target .. "/dangling")))
      local said = table.concat(w.lines)
      assert.are.equal(link == "nowhere", said:find('to "nowhere"', 1, true) ~= nil)
    end)
  end

  -- ---- as_directory ----

  local function temporary(one) return w.tmp .. "/checkpoint_tmp_" .. one.id end

  local function neutral(names, one)
    local out = {}
    for i, name in ipairs(names) do
      out[i] = name:gsub(one.id, "$UUID"):gsub("del_lock_%d+$", "del_lock_$PID")
    end
    return out
  end

  row("as_directory local: same path, no lock, nothing removed", "[51]", function(recorded)
    local one, same, quiet = source(), nil, nil
    one:as_directory(function(path)
      same, quiet = path == one.path, #fs.list(w.tmp) == 0
    end)
    assert.are.same(recorded.ret, { same, quiet, { fs.exists(one.path) } })
  end)
  row("as_directory local missing path: no check", "[51]", function(recorded)
    local one = ckpt.Checkpoint(w.dir .. "/none")
    assert.are.equal(here(recorded.ret), one:as_directory(function(path) return path end))
  end)
  row("as_directory remote: lock file name, dir removed", "[53, 54, 55]", function(recorded)
    local one = w:remote("remote", FILES)
    local got = {}
    one:as_directory(function(path)
      got[1], got[2] = neutral(w:left(), one), paths(path)
    end)
    table.sort(got[1], function(a, b) return a > b end)
    got[3], got[4] = fs.exists(temporary(one)), w:left()
    assert.are.same(recorded.ret, got)
  end)
  row("nested as_directory in one process: inner exit removes the dir the outer still uses",
    "[61 G]", function(recorded)
      local one, inner, outer = w:remote("remote", FILES), nil, nil
      one:as_directory(function(path)
        one:as_directory(function() inner = fs.exists(path .. "/a.txt") end)
        outer = fs.exists(path .. "/a.txt")
      end)
      assert.are.same({ true, false, {} }, recorded.ret)
      assert.are.same({ true, true, {} }, { inner, outer, w:left() })
    end)
  row("... and the outer exit logs a warning", "[61 G]", function(recorded)
    local one = w:remote("remote", FILES)
    one:as_directory(function() one:as_directory(function() end) end)
    assert.are.same({ recorded.ret[1], {} }, { fs.exists(temporary(one)), w.lines })
  end)
  row("two readers (two pids): last one removes", "[57]", function(recorded)
    local one, stop, seen = w:remote("remote", FILES), w.dir .. "/stop", nil
    local ended = w:start(one, ([[
      checkpoint:as_directory(function()
        support.await("the end", function() return ckpt.fs.exists(%q) end)
      end)]]):format(stop))
    support.await("the other's files", function() return fs.exists(temporary(one) .. "/a.txt") end)
    one:as_directory(function() seen = #readers.marks(temporary(one)) end)
    local after = { fs.exists(temporary(one)), #readers.marks(temporary(one)) }
    support.write(stop, "")
    ended()
    assert.are.same({ true, #recorded.ret[2], recorded.ret[3], recorded.ret[4] },
      { fs.exists(w.tmp), seen, after, fs.exists(temporary(one)) })
  end)
  row("as_directory when the download fails: lock and empty dir are left behind", "[60 G]",
    function(recorded)
      local one = ckpt.Checkpoint("shelf://at" .. w.dir .. "/none")
      returns(recorded.ret[1], one:as_directory(print))
      assert.are.equal(2, #recorded.ret[2])
      assert.are.same({}, w:left())
    end)
  row("exception in the body: cleaned up", "[58]", function(recorded)
    local one = w:remote("remote", FILES)
    assert.is_false(pcall(one.as_directory, one, function() error("mine") end))
    assert.are.same(recorded.ret, { fs.exists(temporary(one)), w:left() })
  end)
  row("lock removed by the user inside: warning, dir still removed", "[54]", function(recorded)
    local one = w:remote("remote", FILES)
    one:as_directory(function(path) assert(fs.remove(readers.mark_path(path))) end)
    assert.are.same(recorded.ret, { fs.exists(temporary(one)) })
    assert.are.equal(#recorded.log, #w.lines)
    assert.is_truthy(w.lines[1]:find("^warning: Could not remove"))
  end)
  row("foreign (crashed) lock: dir is kept", "[55]", function(recorded)
    local one = w:remote("remote", FILES)
    one:as_directory(function(path) assert(fs.write(readers.mark_path(path, "99999999"), "")) end)
    assert.are.same(recorded.ret, { fs.exists(temporary(one)) })
  end)
  row("dir lock held at exit: removal skipped silently (same thread holds it)", "[56]",
    function(recorded)
      local one = w:remote("remote", FILES)
      local held
      one:as_directory(function(path) held = w.hold(path) end)
      assert.are.same(recorded.ret, { fs.exists(temporary(one)) })
      assert.are.same(recorded.log, w.lines)
      held:release()
    end)
  row("as_directory after to_directory(): removes the dir to_directory() gave out", "[63 G]",
    function(recorded)
      local one = w:remote("remote", FILES)
      local path = assert(one:to_directory())
      local same
      one:as_directory(function(given) same = given == path end)
      assert.are.same({ recorded.ret[1], not recorded.ret[2] }, { same, fs.exists(path) })
    end)
  row("lock listing is a glob: brackets in the path hide locks", "[66 G]", function(recorded)
    local odd = w.dir .. "/x[1]"
    assert(fs.write(odd .. ".del_lock_7", ""))
    assert.are.same({}, recorded.ret[2])
    assert.are.same({ odd .. ".del_lock_7" }, readers.marks(odd))
  end)
  row("del lock path", "[65]", function(recorded)
    local path = readers.mark_path
    assert.are.same(recorded.ret,
      { path("/a/b", "s"), path("/a/b/", "s"), path("/a/b.txt", "*"), path("", "x") })
  end)
  row("lock file location", "[70 G]", function(recorded)
    -- 40 digits of SHA-1 there, 64 of SHA-256 (as later releases have it) here.
    local file = w.lock_names(w.dir .. "/target").target
    assert.are.same({ "_ray_lockfiles", 40 + 5, ".lock", false }, recorded.ret)
    assert.are.same({ "_ckpt_lockfiles", 64 + 5, ".lock", false }, {
      fs.base(fs.parent(file)), #fs.base(file), file:match("%.[a-z]+$"),
      fs.exists(w.dir .. "/target.lock"),
    })
  end)
  row("6 processes, one target: every caller sees all 3 files", "[36]", function(recorded)
    local one, target, ends = w:remote("remote", FILES), w.dir .. "/target", {}
    assert(fs.write(shelf.gate(w.dir .. "/remote"), ""))
    for i = 1, 6 do
      ends[i] = w:start(one, ([[
        local count = 0
        for _, entry in ipairs(ckpt.fs.walk(assert(checkpoint:to_directory(%q)))) do
          if entry.type == "file" then count = count + 1 end
        end
        print(count)]]):format(target))
    end
    assert(fs.remove(shelf.gate(w.dir .. "/remote")))
    local seen = {}
    for i = 1, 6 do seen[tonumber((ends[i]()))] = true end
    local counts = {}
    for count in pairs(seen) do counts[#counts + 1] = count end
    assert.are.same(recorded.ret, counts)
    assert.are.equal(3, (w:fetched()))
  end)

  it("is replayed in all of its 84 rows", function()
    local count = 0
    for _, recorded in ipairs(oracle.rows) do
      assert.are.equal(1, shown[recorded.name], recorded.name)
      count = count + 1
    end
    assert.are.equal(84, count)
  end)
end)
