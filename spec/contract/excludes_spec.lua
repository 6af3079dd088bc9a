-- What a copy leaves out, and what it sends: one rule for every way of copying.

local ckpt = require "ckpt"
local files = require "contract.files"
local support = require "support"
local trial_transfer = require "ckpt.ray.sync.trial_transfer"
local fs, store, file_transfer = ckpt.fs, ckpt.store, ckpt.file_transfer

describe("a copy", function()
  local dir, memory
  memory = 0

  support.with_directory(function(made)
    dir = made
    memory = memory + 1
  end)

  local function put(path, text) files.put(dir, path, text) end
  local function names(path) return files.paths(dir .. "/" .. path) end

  -- Each brings dir/from to dir/to.
  local ways = {
    copy_tree = function(from, to, exclude)
      assert(fs.copy_tree(from, to, { exclude = exclude }))
    end,
    copy = function(from, to, exclude)
      assert(assert(store.copy { from = from, to = to, exclude = exclude }):wait())
    end,
    same_node = function(from, to, exclude)
      assert(trial_transfer(from, to, exclude):wait())
    end,
    upload = function(from, to, exclude)
      local uri = ("mem://excludes/%d/up"):format(memory)
      assert(assert(store.upload { dir = from, uri = uri, exclude = exclude }):wait())
      assert(assert(store.download { dir = to, uri = uri }):wait())
      assert(assert(store.delete { uri = uri }):wait())
    end,
    download = function(from, to, exclude)
      local uri = ("mem://excludes/%d/down"):format(memory)
      assert(assert(store.upload { dir = from, uri = uri }):wait())
      assert(assert(store.download { dir = to, uri = uri, exclude = exclude }):wait())
      assert(assert(store.delete { uri = uri }):wait())
    end,
    tarball = function(from, to, exclude)
      assert(file_transfer.pack(from, dir .. "/t.tar", { exclude = exclude }):wait())
      assert(file_transfer.unpack(dir .. "/t.tar", to):wait())
    end,
  }

  -- What arrives at the other end, the same in every way.
  local function arrives(exclude)
    local arrived
    for way, bring in pairs(ways) do
      bring(dir .. "/from", dir .. "/to", exclude)
      local list = names("to")
      if arrived then assert.same(arrived, list, way) end
      arrived = list
      fs.remove_tree(dir .. "/to")
    end
    return arrived
  end

  it("[220] matches shell wildcards over the whole relative path", function()
    local cases = {
      { "*.png", "a/b/c.png", true }, { "a?b", "a/b", true }, { "*", "", true },
      { "*.png", "x.PNG", false }, { "[ab].bin", "a.bin", true }, { "[!ab].bin", "a.bin", false },
      { "[!ab].bin", "c.bin", true }, { "[a-c]x", "bx", true }, { "x[", "x[", true },
      { "!x", "y", false }, { "**/x", "x", false }, { "**/x", "a/b/x", true },
      { "x", "a/x", false }, { "", "x", false }, { "[]]", "]", true },
    }
    for _, case in ipairs(cases) do
      assert.equal(case[3], fs.match(case[1], case[2]), case[1] .. " on " .. case[2])
    end
  end)

  it("[221, 225 G] tries each pattern with and without ./ before the path", function()
    for _, path in ipairs { "rank_0", "rank_0/f", "rank_0/deep/f" } do
      assert.is_true(fs.excluded({ "./rank_*" }, path), path)
      assert.is_true(fs.excluded({ "rank_*" }, path), path)
    end
    assert.is_false(fs.excluded({ "./rank_*" }, "sub/rank_0"))
    assert.is_false(fs.excluded({ "rank_*" }, "sub/rank_0"))
    assert.is_true(fs.excluded({ "*/rank_*" }, "sub/rank_0/f"))
    assert.is_true(fs.excluded({ "*/rank_*" }, "rank_0"))
    assert.is_true(fs.excluded({ "x", "sub/nested" }, "sub/nested/f"))
    assert.is_false(fs.excluded({}, "f"))
  end)

  it("[222] leaves out a directory that fits, with all below it", function()
    put("from/rank_0/f")
    put("from/rank_0/deep/f")
    put("from/keep/f")
    assert(trial_transfer(dir .. "/from", dir .. "/to", { "./rank_*" }):wait())
    assert.same({ "keep", "keep/f" }, names("to"))
  end)

  it("[178, 183, 223 G] leaves out the same in every way of copying", function()
    for _, path in ipairs { "rank_0/f", "rank_0/deep/f", "sub/rank_1/f", "checkpoint_tmp1/f",
      "save_to_object1/f", ".lazy_checkpoint_marker", "checkpoint_000001/f", "f" } do
      put("from/" .. path)
    end
    assert.same({
      "checkpoint_000001", "checkpoint_000001/f", "f", "sub", "sub/rank_1", "sub/rank_1/f",
    }, arrives(ckpt.SyncerCallback.EXCLUDE))
  end)

  it("[224] brings directories whose files are all left out", function()
    put("from/images/a.png")
    put("from/images/b.png")
    assert(fs.mkdirs(dir .. "/from/empty"))
    assert.same({ "empty", "images" }, arrives { "*.png" })
  end)

  it("[225 G] succeeds with patterns that end in a slash", function()
    put("from/sub/nested/f")
    put("from/f")
    local all = { "f", "sub", "sub/nested", "sub/nested/f" }
    assert.same(all, arrives { "sub/nested/" })
    assert.same(all, arrives { "*/" })
  end)

  local function touch(path, time) assert(fs.utime(dir .. "/" .. path, time)) end

  -- What is packed for a target that has `known`: the paths of files and links.
  local function packed(known, exclude)
    assert(file_transfer.pack(dir .. "/from", dir .. "/t.tar", { known = known, exclude = exclude })
      :wait())
    fs.remove_tree(dir .. "/packed")
    assert(ckpt.tar.unpack(dir .. "/t.tar", dir .. "/packed"))
    local list = {}
    for _, entry in ipairs(fs.walk(dir .. "/packed")) do
      if entry.type ~= "directory" then list[#list + 1] = entry.path end
    end
    return list
  end

  it("[226] sends a file whose size or time differs in any way", function()
    for _, name in ipairs { "same", "newer", "older", "longer", "absent" } do
      put("from/" .. name)
      touch("from/" .. name, 1000000)
    end
    local known = file_transfer.stats(dir .. "/from")
    assert.same({ size = #"from/same", mtime = 1000000 }, known.same)
    assert.same({}, packed(known))
    known.newer.mtime, known.older.mtime = 2000000, 500000
    known.longer.size, known.absent = known.longer.size + 1, nil
    assert.same({ "absent", "longer", "newer", "older" }, packed(known))
    assert.same({ "absent", "newer", "older" }, packed(known, { "longer" }))
  end)

  it("[226] takes a link by its own size and time", function()
    put("from/file", "text")
    assert(fs.symlink("file", dir .. "/from/link"))
    local known = file_transfer.stats(dir .. "/from")
    assert.equal(#"file", known.link.size)
    put("from/file", "another text")
    assert.same({ "file" }, packed(known))
  end)

  it("[226] uploads by the same rule, also what is older than at the target", function()
    local uri = ("mem://excludes/%d/upload"):format(memory)
    local function upload()
      return assert(store.upload { dir = dir .. "/from", uri = uri }):wait()
    end
    put("from/a", "aaaa")
    put("from/b", "bbbb")
    touch("from/a", 2000000)
    touch("from/b", 2000000)
    assert.equal(8, upload().bytes)
    assert.equal(0, upload().bytes)
    put("from/a", "AAAA")
    touch("from/a", 1000000)
    put("from/b", "BBBB")
    touch("from/b", 2000000)
    assert.equal(4, upload().bytes)
    assert(assert(store.download { dir = dir .. "/to", uri = uri }):wait())
    assert.equal("AAAA", fs.read(dir .. "/to/a"))
    assert.equal("bbbb", fs.read(dir .. "/to/b"))
  end)

  it("[226] downloads by the same rule, also over what is newer at the target", function()
    local uri = ("mem://excludes/%d/download"):format(memory)
    for _, name in ipairs { "same", "older", "newer", "longer" } do
      put("from/" .. name, "source")
      touch("from/" .. name, 1000000)
      put("to/" .. name, name == "longer" and "target and more" or "target")
      touch("to/" .. name, ({ older = 500000, newer = 2000000 })[name] or 1000000)
    end
    assert(assert(store.upload { dir = dir .. "/from", uri = uri }):wait())
    local syncer = ckpt.DefaultSyncer()
    syncer:sync_down(uri, dir .. "/to")
    assert(syncer:wait())
    local arrived = {}
    for _, name in ipairs(names("to")) do arrived[name] = fs.read(dir .. "/to/" .. name) end
    assert.same({ same = "target", older = "source", newer = "source", longer = "source" }, arrived)
  end)

  it("[227] scans a target whose files come and go", function()
    assert.same({}, file_transfer.stats(dir .. "/nothing"))
    put("to/stays")
    os.execute(("cd '%s/to' && { while [ -e stays ]; do mkdir -p d; : >d/x; : >y; rm -r d y; done;"
      .. " } 2>/dev/null &"):format(dir))
    for _ = 1, 300 do
      local stats = assert(file_transfer.stats(dir .. "/to"))
      assert.is_table(stats.stays)
    end
    fs.remove(dir .. "/to/stays")
  end)

  -- Packs while `vanishing` is removed as soon as one of its files was copied.
  local function pack_while(vanishing)
    local copy_file = fs.copy_file
    fs.copy_file = function(from, ...)
      local done, text, name = copy_file(from, ...)
      if from:find(vanishing, 1, true) then fs.remove_tree(dir .. "/from/" .. vanishing) end
      return done, text, name
    end
    local logged, restore_log = ckpt.testing.capture_log()
    local result, text = file_transfer.pack(dir .. "/from", dir .. "/t.tar"):wait()
    restore_log()
    fs.copy_file = copy_file
    return assert(result, text), logged
  end

  it("[227 G] retires a checkpoint that vanishes while it is packed, and goes on", function()
    put("from/checkpoint_000001/a")
    put("from/checkpoint_000001/b")
    put("from/checkpoint_000002/a")
    put("from/result.json")
    local result, logged = pack_while("checkpoint_000001")
    assert.same({ "checkpoint_000001" }, result.retired)
    assert.matches("checkpoint_000001 vanished", logged[1].text)
    assert(ckpt.tar.unpack(dir .. "/t.tar", dir .. "/to"))
    assert.same({ "checkpoint_000002", "checkpoint_000002/a", "result.json" }, names("to"))
  end)

  it("[228 G] packs through the disk, not through memory", function()
    local function most_memory()
      return tonumber(support.read("/proc/self/status"):match("VmHWM:%s*(%d+) kB"))
    end
    put("from/small")
    packed()
    os.execute(("head -c 50000000 /dev/zero >'%s/from/large'"):format(dir))
    local before = most_memory()
    assert.same({ "large", "small" }, packed())
    assert.is_true(most_memory() - before < 20000)
  end)

  it("[228] has no limit unless one is set; above it the sizes are told in GiB", function()
    os.execute(("mkdir '%s/from' && truncate -s 1610612736 '%s/from/large'"):format(dir, dir))
    local _, text, name = file_transfer.pack(dir .. "/from", dir .. "/t.tar",
      { bytes_max = 2 ^ 30 }):wait()
    assert.equal("ELIMIT", name)
    assert.matches("is 1.50 GiB to send, which is over the limit of 1.00 GiB", text, 1, true)
    assert.is_nil(fs.stat(dir .. "/t.tar"))
    assert.error_matches(function() file_transfer.pack("a", "b", { max = 1 }) end, "`max`")
  end)

  it("[229] keeps at the target what is gone at the source", function()
    put("from/new", "new")
    put("from/link/now_a_directory")
    put("to/old", "old")
    put("to/new", "older")
    put("to/link", "a file before")
    assert(file_transfer.pack(dir .. "/from", dir .. "/t.tar"):wait())
    assert(file_transfer.unpack(dir .. "/t.tar", dir .. "/to"):wait())
    assert.same({ "link", "link/now_a_directory", "new", "old" }, names("to"))
    assert.equal("new", fs.read(dir .. "/to/new"))
  end)

  -- The ways that fill a directory under its lock.
  local function filling()
    put("from/f")
    put("from/rank_0/f")
    assert(file_transfer.pack(dir .. "/from", dir .. "/t.tar", { exclude = { "./rank_*" } }):wait())
    return {
      unpack = function(to) return file_transfer.unpack(dir .. "/t.tar", to) end,
      copy = function(to) return trial_transfer(dir .. "/from", to, { "./rank_*" }) end,
    }
  end

  it("[230] waits for another that fills the target, and does nothing then", function()
    for way, fill in pairs(filling()) do
      local lock = assert(ckpt.lock.take(dir .. "/" .. way .. ".lock"))
      local job = fill(dir .. "/" .. way)
      assert.is_true(job:running())
      put(way .. "/by the other")
      lock:release()
      assert.is_true(job:wait())
      assert.same({ "by the other" }, names(way))
    end
  end)

  it("[230] fills the target at once if nobody is at it", function()
    for way, fill in pairs(filling()) do
      assert.is_true(fill(dir .. "/" .. way):wait())
      assert.same({ "f" }, names(way))
    end
  end)

  it("[230 G] tries once more if nothing is there then, with its patterns", function()
    for way, fill in pairs(filling()) do
      local lock = assert(ckpt.lock.take(dir .. "/" .. way .. ".lock"))
      local job = fill(dir .. "/" .. way)
      assert.is_true(job:running())
      lock:release()
      assert.is_true(job:wait())
      assert.same({ "f" }, names(way))
    end
  end)

  it("[230] gives up when another was at it a second time, and left nothing", function()
    local fill = filling().copy
    local path = dir .. "/to.lock"
    local lock = assert(ckpt.lock.take(path))
    local job = fill(dir .. "/to")
    local exists = fs.exists
    fs.exists = function(at)
      if at == dir .. "/to" and not lock:held() then lock = assert(ckpt.lock.take(path)) end
      return exists(at)
    end
    lock:release()
    assert.is_true(job:running())
    assert.is_true(lock:held())
    fs.exists = exists
    lock:release()
    local _, text, name = job:wait()
    assert.matches("was locked by others twice", text)
    assert.equal("EIO", name)
    assert.is_nil(fs.stat(dir .. "/to"))
  end)
end)
