-- Checkpoint: to_directory (items 33-50).

local ckpt = require "ckpt"
local checkpoint_place = require "ckpt.ray.checkpoint.checkpoint_place"
local readers = require "ckpt.ray.checkpoint.checkpoint_readers"
local shelf = require "contract.shelf"
local world = require "contract.checkpoint_world"

local fs = ckpt.fs

describe("Checkpoint, to_directory", function()
  local w, target

  before_each(function()
    w = world.open()
    target = w.dir .. "/target"
  end)
  after_each(function() w:close() end)

  local function fails(wanted, result, text, name)
    assert.is_nil(result)
    assert.are.equal(wanted, name)
    return text
  end

  -- That nothing is there which the copy needed on its way.
  local function is_clean()
    for _, entry in ipairs(fs.walk(w.dir)) do
      assert.is_nil(entry.path:match("ckpt_part") or entry.path:match("%.lock$"), entry.path)
    end
  end

  it("[33] takes the object's own temporary directory if none is named", function()
    local checkpoint = w:local_checkpoint()
    local path = assert(checkpoint:to_directory())
    assert.are.equal(fs.join(w.tmp, "checkpoint_tmp_" .. checkpoint.id), path)
    assert.are.same(world.files, world.files_of(path))
    assert.are.equal(path, assert(checkpoint:to_directory()))
    is_clean()
  end)

  it("[38, 47 G] holds what was uploaded to a directory against its record", function()
    local from, place = w.dir .. "/from", w.dir .. "/place"
    assert(fs.mkdirs(from .. "/empty"))
    assert(fs.write(from .. "/f", "weights"))
    assert(fs.chmod(from .. "/f", tonumber("700", 8)))
    assert(fs.symlink("f", from .. "/link"))
    assert(ckpt.store.upload { dir = from, uri = place }:wait())
    local checkpoint = ckpt.Checkpoint(place)
    assert(checkpoint:to_directory(target))
    assert.are.equal("link", fs.lstat(target .. "/link").type)
    assert.are.equal("directory", fs.lstat(target .. "/empty").type)
    assert.are.equal(tonumber("700", 8), fs.stat(target .. "/f").mode % 512)
    assert(fs.write(place .. "/f", "WEIGHTS"))
    fails("ECORRUPT", checkpoint:to_directory(w.dir .. "/other"))
    -- An upload was cut off.
    assert(fs.rename(place .. "/.ckpt-manifest.json", place .. "/.ckpt-manifest.part.json"))
    fails("ECONFLICT", checkpoint:to_directory(w.dir .. "/other"))
    fails("ECONFLICT", checkpoint:as_directory(function() error "torn" end))
    assert.is_false(fs.exists(w.dir .. "/other"))
  end)

  it("[34] expands ~, normalizes the target by its text, and returns that", function()
    local checkpoint = w:local_checkpoint()
    assert.are.equal(w.home .. "/ck", assert(checkpoint:to_directory("~/ck")))
    assert.are.same(world.files, world.files_of(w.home .. "/ck"))
    assert.are.equal(w.dir .. "/y", assert(checkpoint:to_directory(w.dir .. "//x/.././y//")))
    assert.is_false(fs.exists(w.dir .. "/x"))
    local path = setmetatable({}, { __tostring = function() return w.dir .. "/object/" end })
    assert.are.equal(w.dir .. "/object", assert(checkpoint:to_directory(path)))
    assert.is_false(pcall(checkpoint.to_directory, checkpoint, 7))
  end)

  it("[35] makes the target with its parents before it tries the lock", function()
    local deep = target .. "/with/parents"
    local checkpoint, held = w:local_checkpoint(), w.hold(deep)
    local seen
    world.at_sleep(function()
      seen = seen or fs.stat(deep)
      held:release()
    end)
    assert(checkpoint:to_directory(deep))
    assert.are.equal("directory", seen.type)
  end)

  it("[35] takes a directory that is there, and no file", function()
    local checkpoint = w:local_checkpoint()
    assert(fs.mkdirs(target))
    assert.are.equal(target, assert(checkpoint:to_directory(target)))
    assert(fs.write(w.dir .. "/file", "mine"))
    fails("EEXISTS", checkpoint:to_directory(w.dir .. "/file"))
    assert.are.equal("mine", fs.read(w.dir .. "/file"))
  end)

  it("[36] copies nothing if another is at it, but waits for that and takes its result", function()
    local checkpoint, held = w:remote(), w.hold(target)
    local count = 0
    world.at_sleep(function(n)
      count = n
      if n < 50 then return end
      w.fake_fetch(checkpoint, target, { ["a.txt"] = "theirs" })
      held:release()
    end)
    assert.are.equal(target, assert(checkpoint:to_directory(target)))
    assert.are.equal(50, count)
    assert.are.equal(0, (w:fetched()))
    assert.are.same({ ["a.txt"] = "theirs" }, world.files_of(target))
  end)

  it("[36] lets another task of this program be the one that is at it", function()
    local checkpoint = w:remote()
    local order = {}
    shelf.on_get = function()
      if not ckpt.job.inside() then return end
      for _ = 1, 5 do ckpt.job.yield() end
    end
    local function caller(name)
      return ckpt.job.task(function()
        local path = assert(checkpoint:to_directory(target))
        order[#order + 1] = name
        return path
      end)
    end
    local one, two = caller("one"), caller("two")
    assert.are.equal(target, assert(checkpoint:to_directory(target)))
    assert.are.equal(target, assert(one:wait()))
    assert.are.equal(target, assert(two:wait()))
    assert.are.same(world.files, world.files_of(target))
    assert.are.equal(3, (w:fetched()))
  end)

  it("[37] tells a defect if what another has just finished is gone", function()
    local checkpoint, held = w:remote(), w.hold(target)
    world.at_sleep(function()
      w.fake_fetch(checkpoint, target)
      assert(fs.remove_tree(target))
      held:release()
    end)
    local text = fails("EINTERNAL", checkpoint:to_directory(target))
    assert.is_truthy(text:find("does not exist", 1, true), text)
    assert.is_truthy(text:find("report", 1, true), text)
    assert.are.equal(0, (w:fetched()))
  end)

  it("[38 G] takes over if the one that was at it failed", function()
    for _, partial in ipairs { false, true } do
      local place = target .. tostring(partial)
      local checkpoint, held = w:remote("remote" .. tostring(partial)), w.hold(place)
      world.at_sleep(function()
        -- Killed in the middle, with a part of it in place.
        if partial then assert(fs.write(place .. "/a.txt", "dat")) end
        held:release()
      end)
      assert.are.equal(place, assert(checkpoint:to_directory(place)))
      assert.are.same(world.files, world.files_of(place))
      assert.are.equal(3, (w:fetched("remote" .. tostring(partial))))
    end
  end)

  it("[38 G] does not trust a record whose files are not in place", function()
    local checkpoint, held = w:remote(), w.hold(target)
    world.at_sleep(function()
      w.fake_fetch(checkpoint, target)
      assert(fs.remove(target .. "/sub/b.txt"))
      held:release()
    end)
    assert(checkpoint:to_directory(target))
    assert.are.same(world.files, world.files_of(target))
    assert.are.equal(3, (w:fetched()))
  end)

  it("[38 G] shows a download when it is complete, as a whole", function()
    local checkpoint, seen = w:remote(), {}
    shelf.on_get = function() table.insert(seen, world.files_of(target)) end
    assert(checkpoint:to_directory(target))
    assert.are.same({ {}, {}, {} }, seen)
    assert.are.same(world.files, world.files_of(target))
    is_clean()
  end)

  it("[38 G] does not show what differs from its digest", function()
    local place = "mem://digests/" .. fs.base(w.dir)
    assert(assert(ckpt.store.upload { dir = w:tree("source"), uri = place }):wait())
    assert(assert(ckpt.store.open(place)):put("a.txt", "data:X"))
    local text = fails("ECORRUPT", ckpt.Checkpoint(place):to_directory(target))
    assert.is_truthy(text:find("a.txt", 1, true), text)
    assert.is_false(fs.exists(target))
  end)

  it("[38 G] goes on at once when the one that was at it is killed", function()
    local checkpoint = w:remote()
    local gate = shelf.gate(w.dir .. "/remote")
    assert(fs.write(gate, ""))
    local ended = w:start(checkpoint, ("checkpoint:to_directory(%q)"):format(target))
    require("support").await("the other's first fetch", function() return w:fetched() > 0 end)
    local _, lines = w:fetched()
    os.execute("kill -9 " .. lines[1]:match("^%d+"))
    ended()
    assert(fs.remove(gate))
    assert.are.equal(target, assert(checkpoint:to_directory(target)))
    assert.are.same(world.files, world.files_of(target))
    is_clean()
  end)

  it("[39] shares between copies of one object, and not between two objects", function()
    local one, other = w:remote(), w:remote()
    local path = assert(one:to_directory())
    assert.are.equal(3, (w:fetched()))
    local copy = ckpt.Checkpoint.deserialize(one:serialize())
    assert.are.equal(path, assert(copy:to_directory()))
    assert.are.equal(3, (w:fetched()))
    assert.are_not.equal(path, assert(other:to_directory()))
    assert.are.equal(6, (w:fetched()))
  end)

  it("[40] copies what is local, too", function()
    local checkpoint = w:local_checkpoint()
    for _, path in ipairs { assert(checkpoint:to_directory()), target } do
      assert(checkpoint:to_directory(path))
      assert.are_not.equal(checkpoint.path, path)
      assert(fs.write(path .. "/a.txt", "changed"))
      assert.are.equal("data:a", fs.read(checkpoint.path .. "/a.txt"))
      assert.are_not.equal(fs.stat(checkpoint.path .. "/sub/b.txt").inode,
        fs.stat(path .. "/sub/b.txt").inode)
    end
  end)

  it("[41 G] puts its files over what is there, and leaves what else is there", function()
    w:tree("target", { ["a.txt"] = "old", extra = "mine", ["sub/more"] = "too" })
    local files = { extra = "mine", ["sub/more"] = "too" }
    for path, data in pairs(world.files) do files[path] = data end
    for _, checkpoint in ipairs { w:local_checkpoint(), w:remote() } do
      assert(fs.write(target .. "/a.txt", "old"))
      assert.are.equal(target, assert(checkpoint:to_directory(target)))
      assert.are.same(files, world.files_of(target))
    end
    is_clean()
  end)

  it("[41 G] does not repeat what is complete", function()
    local checkpoint = w:remote()
    for _, path in ipairs { target, fs.join(w.tmp, "checkpoint_tmp_" .. checkpoint.id) } do
      local before = w:fetched()
      assert(checkpoint:to_directory(path))
      local inode = fs.stat(path .. "/a.txt").inode
      assert.are.equal(before + 3, (w:fetched()))
      assert(checkpoint:to_directory(path))
      assert.are.equal(before + 3, (w:fetched()))
      assert.are.equal(inode, fs.stat(path .. "/a.txt").inode)
    end
  end)

  it("[41 G] copies again what was changed here or at its source", function()
    local checkpoint = w:remote()
    assert(checkpoint:to_directory(target))
    assert(fs.write(target .. "/a.txt", "scribbled"))
    assert(checkpoint:to_directory(target))
    assert.are.same(world.files, world.files_of(target))
    assert(fs.remove(target .. "/sub/b.txt"))
    assert(checkpoint:to_directory(target))
    assert.are.same(world.files, world.files_of(target))
    assert(checkpoint:set_metadata { new = 1 })
    assert(checkpoint:to_directory(target))
    assert.are.equal('{"new": 1}', fs.read(target .. "/.metadata.json"))
    -- Another checkpoint into the same directory.
    assert(w:remote("other", { ["a.txt"] = "other" }):to_directory(target))
    assert.are.equal("other", fs.read(target .. "/a.txt"))
  end)

  it("[41 G] changes nothing if a directory stands where a file belongs", function()
    w:tree("target", { ["a.txt/x"] = "mine", ["sub/b.txt"] = "old" })
    local text = fails("EEXISTS", w:remote():to_directory(target))
    assert.is_truthy(text:find("a.txt", 1, true), text)
    assert.are.same({ ["a.txt/x"] = "mine", ["sub/b.txt"] = "old" }, world.files_of(target))
    is_clean()
  end)

  it("[42] puts the contents into the target itself", function()
    assert(w:local_checkpoint():to_directory(target))
    assert.are.same({ "a.txt", "sub" }, fs.list(target))
  end)

  it("[43] leaves a directory that nobody named to the caller", function()
    local checkpoint = w:remote()
    local path = assert(checkpoint:to_directory())
    -- As if a reader had died: what is only read is swept when somebody else fetches.
    assert(fs.write(path .. ".del_lock_1", '{"pid": 1, "start": "1", "boot": "x"}'))
    checkpoint = nil -- luacheck: ignore
    collectgarbage()
    assert(w:remote("other"):to_directory())
    assert.are.same(world.files, world.files_of(path))
  end)

  it("[44 G] leaves no directory that it made if there is no source", function()
    for _, missing in ipairs { ckpt.Checkpoint(w.dir .. "/none"),
      ckpt.Checkpoint("shelf://at" .. w.dir .. "/none"), ckpt.Checkpoint("mem://none/at/all") } do
      local text = fails("ENOENT", missing:to_directory(target))
      assert.is_truthy(text:find("none", 1, true), text)
      assert.is_false(fs.exists(target))
      fails("ENOENT", missing:to_directory())
      assert.are.same({}, w:left())
      -- One that was there before stays.
      local mine = w:tree("mine", {})
      fails("ENOENT", missing:to_directory(mine))
      assert.are.same({}, fs.list(mine))
    end
    is_clean()
  end)

  it("[45] removes the target that it made when the copy fails, but not its parents", function()
    local deep = w.dir .. "/parent/child/target"
    local count = 0
    shelf.on_get = function()
      count = count + 1
      if count == 2 then return nil, "the disk at the other end burns", "EIO" end
    end
    local text = fails("EIO", w:remote():to_directory(deep))
    assert.is_truthy(text:find("the disk at the other end burns", 1, true), text)
    assert.are.same({}, fs.list(w.dir .. "/parent/child"))
    is_clean()
  end)

  it("[45] leaves a target alone that was there, when the copy fails", function()
    w:tree("target", { ["a.txt"] = "old" })
    shelf.on_get = function(key)
      if key == "sub/b.txt" then return nil, "no", "EACCESS" end
    end
    fails("EACCESS", w:remote():to_directory(target))
    assert.are.same({ ["a.txt"] = "old" }, world.files_of(target))
    is_clean()
  end)

  it("[46] refuses a checkpoint that is a file", function()
    local file = w:tree("source") .. "/a.txt"
    local text, _
    _, text = ckpt.Checkpoint(file):to_directory(target)
    assert.is_truthy(text:find("is a file, and a checkpoint is a directory", 1, true), text)
    assert.is_false(fs.exists(target))
  end)

  it("[47 G] has the files that links lead to out of it", function()
    local at = w.dir .. "/hub/snapshots/a"
    assert(fs.mkdirs(w.dir .. "/hub/blobs"))
    assert(fs.mkdirs(at))
    assert(fs.write(w.dir .. "/hub/blobs/w1", "weights"))
    assert(fs.symlink("../../blobs/w1", at .. "/model.bin"))
    local uri = w.dir .. "/elsewhere/hub"
    local remote = assert(ckpt.Checkpoint(at):to_directory(uri))
    assert(ckpt.Checkpoint(at):to_directory(target))
    local place = "mem://links/hub" .. fs.base(w.dir)
    assert(assert(ckpt.store.upload { dir = at, uri = place }):wait())
    assert(fs.remove_tree(w.dir .. "/hub"))
    assert(ckpt.Checkpoint(place):to_directory(target .. 2))
    for _, path in ipairs { remote, target, target .. 2 } do
      assert.are.equal("file", fs.lstat(path .. "/model.bin").type)
      assert.are.equal("weights", fs.read(path .. "/model.bin"))
    end
    assert.are.same({}, w.lines)
  end)

  it("[47 G] keeps links as links, and reports one that leads nowhere", function()
    local checkpoint = w:local_checkpoint()
    assert(fs.symlink("sub/b.txt", checkpoint.path .. "/link"))
    assert(fs.symlink("nowhere", checkpoint.path .. "/dangling"))
    assert(fs.mkdirs(checkpoint.path .. "/empty"))
    local place = "mem://links/" .. fs.base(w.dir)
    assert(assert(ckpt.store.upload { dir = checkpoint.path, uri = place }):wait())
    for i, one in ipairs { checkpoint, ckpt.Checkpoint(place) } do
      w.lines = {}
      local path = target .. i
      assert(one:to_directory(path))
      assert.are.equal("sub/b.txt", fs.readlink(path .. "/link"))
      assert.are.equal("nowhere", fs.readlink(path .. "/dangling"))
      assert.are.same({}, fs.list(path .. "/empty"))
      local said = table.concat(w.lines, "\n")
      local wanted = i == 1 and '"dangling" to "nowhere"' or "dangling leads nowhere"
      assert.is_truthy(said:find(wanted, 1, true), said)
      assert.is_nil(said:find("b.txt", 1, true))
      assert.are.equal(1, #w.lines)
    end
  end)

  it("[48 G] keeps modes and times", function()
    local checkpoint = w:local_checkpoint()
    assert(fs.chmod(checkpoint.path .. "/a.txt", tonumber("600", 8)))
    assert(fs.utime(checkpoint.path .. "/a.txt", 1234567890.5))
    local place = "mem://modes/" .. fs.base(w.dir)
    assert(assert(ckpt.store.upload { dir = checkpoint.path, uri = place }):wait())
    for i, one in ipairs { checkpoint, ckpt.Checkpoint(place) } do
      local path = assert(one:to_directory(target .. i))
      local stat = fs.stat(path .. "/a.txt")
      assert.are.equal(tonumber("600", 8), stat.mode)
      assert.are.equal(1234567890.5, stat.mtime)
    end
  end)

  -- The most memory that this process had at once.
  local function peak()
    for line in io.lines("/proc/self/status") do
      local size = line:match("^VmHWM:%s*(%d+) kB")
      if size then return tonumber(size) * 1024 end
    end
  end

  it("[49] copies files of more than 64 MiB whole, with less memory than they have", function()
    local size = 65 * 2 ^ 20
    local source = w:tree("source", {})
    os.execute(("truncate -s %d '%s/large.bin'; printf end >>'%s/large.bin'"):format(size, source,
      source))
    local before = peak()
    local wrapped = { type_name = "wrapped", uri = function(_, path) return "file://" .. path end }
    for i, checkpoint in ipairs { ckpt.Checkpoint(source), ckpt.Checkpoint(source, wrapped) } do
      local path = assert(checkpoint:to_directory(target .. i)) .. "/large.bin"
      assert.are.equal(size + 3, fs.stat(path).size)
      assert.are.equal(ckpt.digest.file(source .. "/large.bin"), ckpt.digest.file(path))
    end
    if not require("support").sanitized then assert(peak() - before < size / 2) end
  end)

  it("[50] holds a second lock while it copies, on <target>.lock, within the first", function()
    local checkpoint = w:remote()
    local held = w.hold(target, "copy")
    assert.are.equal(ckpt.digest.sha256(target .. ".lock") .. ".lock", fs.base(held:path()))
    local first
    world.at_sleep(function()
      local _, _, name = ckpt.lock.take(w.lock_names(target).target)
      if not first then assert.are.equal(0, (w:fetched())) end
      first = first or name
      held:release()
    end)
    shelf.on_get = function()
      local _, _, name = ckpt.lock.take(w.lock_names(target).copy)
      assert.are.equal("EHELD", name)
    end
    assert(checkpoint:to_directory(target))
    assert.are.equal("EHELD", first)
    assert.are.equal(3, (w:fetched()))
  end)

  it("takes names of any bytes, and knows them again", function()
    local files = {
      ["a b"] = "1", ["new\nline"] = "2", ["\255\254"] = "3", ["%41"] = "4", ['q"\\'] = "5",
      ["d[1]*/é"] = "6",
    }
    local odd = w:tree("odd\255%20", files)
    for i, checkpoint in ipairs { ckpt.Checkpoint(odd), w:remote("remote\254%41", files) } do
      checkpoint = ckpt.Checkpoint.deserialize(checkpoint:serialize())
      local path = target .. "\253%20" .. i
      assert.are.equal(path, assert(checkpoint:to_directory(path)))
      assert.are.same(files, world.files_of(path))
      local inode = fs.stat(path .. "/a b").inode
      assert(checkpoint:to_directory(path))
      assert.are.equal(inode, fs.stat(path .. "/a b").inode)
      assert(fs.write(path .. "/\255\254", "changed"))
      assert(checkpoint:to_directory(path))
      assert.are.same(files, world.files_of(path))
    end
  end)

  it("does not clear away what somebody fetches who has another TMPDIR", function()
    -- His locks are elsewhere, but for the one in the staging directory.
    for i, stage in ipairs { ".target.ckpt_part", "target/.ckpt_part" } do
      local checkpoint = w:remote("remote" .. i)
      assert(fs.mkdirs(w.dir .. "/" .. stage .. "/data"))
      assert(fs.write(w.dir .. "/" .. stage .. "/data/half", "his"))
      local held = assert(ckpt.lock.take(w.dir .. "/" .. stage .. "/lock"))
      local seen
      world.at_sleep(function(n)
        seen = seen or fs.read(w.dir .. "/" .. stage .. "/data/half")
        if n == 20 then held:release() end
      end)
      assert(checkpoint:to_directory(target))
      ckpt.clock.use(nil)
      assert.are.equal("his", seen)
      assert.are.same(world.files, world.files_of(target))
      assert.is_false(fs.exists(w.dir .. "/" .. stage))
      is_clean()
    end
  end)

  it("gives everybody whole files, also those who have another TMPDIR", function()
    local checkpoint, ends = w:remote(), {}
    local ffi = require "ffi"
    local before = os.getenv("TMPDIR")
    for i = 1, 8 do
      -- What is started has the environment of this process.
      local mine = w.dir .. "/tmp" .. i % 2
      assert(fs.mkdirs(mine))
      ffi.C.setenv("TMPDIR", mine, 1)
      ends[i] = w:start(checkpoint, ([[
        for _ = 1, 5 do
          local path = assert(checkpoint:to_directory(%q))
          assert(ckpt.fs.read(path .. "/a.txt") == "data:a")
          assert(ckpt.fs.read(path .. "/sub/deep/c.bin") == "data:c")
        end]]):format(target))
    end
    ffi.C.setenv("TMPDIR", before, 1)
    for i = 1, 8 do
      local said, code = ends[i]()
      assert(code == 0, said)
    end
    assert.are.same(world.files, world.files_of(target))
    is_clean()
  end)

  it("refuses a target within the checkpoint", function()
    local checkpoint = w:local_checkpoint()
    for _, path in ipairs { checkpoint.path, checkpoint.path .. "/sub/x" } do
      fails("EINVAL", checkpoint:to_directory(path))
    end
    assert.are.same(world.files, world.files_of(checkpoint.path))
    assert.is_false(fs.exists(checkpoint.path .. "/sub/x"))
  end)

  it("fills the working directory without replacing it", function()
    local checkpoint = w:local_checkpoint()
    assert(fs.mkdirs(target))
    local said, code = w:start(checkpoint, ([[
      local ffi = require "ffi"
      ffi.cdef "int chdir(const char *);"
      ffi.C.chdir(%q)
      assert(checkpoint:to_directory(".") == ".")
      assert(ckpt.fs.read("a.txt") == "data:a")
      print(ckpt.fs.cwd())]]):format(target))()
    assert.are.equal(0, code, said)
    assert.are.equal(target .. "\n", said)
    assert.are.same(world.files, world.files_of(target))
  end)

  it("[33] into its temporary directory is not swept away while it is made", function()
    -- As another process does it that fetches a checkpoint of its own, at the worst of times.
    local check_own, sweeps = checkpoint_place.check_own, 0
    finally(function() checkpoint_place.check_own = check_own end)
    checkpoint_place.check_own = function(path)
      sweeps = sweeps + 1
      readers.sweep_dead("checkpoint_tmp_", "none")
      return check_own(path)
    end
    local path = assert(w:remote():to_directory())
    assert.is_true(sweeps > 0)
    assert.are.equal(tonumber("700", 8), fs.stat(path).mode)
    assert.are.same(world.files, world.files_of(path))
  end)
end)
