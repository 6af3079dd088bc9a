-- Checkpoint: as_directory, and where things are (items 51-68, 70-72).

local ckpt = require "ckpt"
local locks = require "ckpt.ray.checkpoint.checkpoint_locks"
local process = require "ckpt.prims.process"
local readers = require "ckpt.ray.checkpoint.checkpoint_readers"
local shelf = require "contract.shelf"
local support = require "support"
local world = require "contract.checkpoint_world"

local fs = ckpt.fs

describe("Checkpoint, as_directory", function()
  local w, checkpoint, dir

  before_each(function()
    w = world.open()
    checkpoint = w:remote()
    dir = fs.join(w.tmp, "checkpoint_tmp_" .. checkpoint.id)
  end)
  after_each(function() w:close() end)

  local PID = ("%d"):format(process.pid())

  local function mark(suffix) return dir .. ".del_lock_" .. (suffix or PID) end

  local function open() return assert(checkpoint:open_directory()) end

  -- That nothing at all is left of it.
  local function is_gone()
    assert.are.same({}, w:left())
    for _, entry in ipairs(fs.walk(w.tmp)) do
      assert.are_not.equal("file", entry.type, entry.path)
    end
  end

  local function is_whole(path) assert.are.same(world.files, world.files_of(path)) end

  it("[51] gives a local checkpoint's own directory, without a look at it", function()
    for _, path in ipairs { w:tree("source"), w.dir .. "/none" } do
      local one = ckpt.Checkpoint(path)
      assert.are.equal("seen", one:as_directory(function(given)
        assert.are.equal(path, given)
        assert.are.same({}, fs.list(w.tmp))
        return "seen"
      end))
      local handle = assert(one:open_directory())
      assert.are.equal(path, handle.path)
      handle:close()
    end
    assert.are.same({}, fs.list(w.tmp))
    is_whole(w.dir .. "/source")
  end)

  it("[52] fetches from what is not local by its type, whatever it lies on", function()
    local source = w:tree("source")
    local wrapped = { type_name = "wrapped", uri = function(_, path) return "file://" .. path end }
    local one = ckpt.Checkpoint(source, wrapped)
    assert(one:as_directory(function(path)
      assert.are.equal(fs.join(w.tmp, "checkpoint_tmp_" .. one.id), path)
      is_whole(path)
      return true
    end))
    is_gone()
    is_whole(source)
  end)

  it("[53] leaves its mark first, then fetches, then calls", function()
    local seen = {}
    shelf.on_get = function() seen[#seen + 1] = fs.exists(mark()) end
    assert.are.same({ "x", 2 }, { checkpoint:as_directory(function(path)
      assert.are.equal(dir, path)
      assert.is_true(fs.exists(mark()))
      is_whole(path)
      return "x", 2
    end) })
    assert.are.same({ true, true, true }, seen)
    is_gone()
  end)

  it("gives back all that the function returns", function()
    local function count(...) return select("#", ...), ... end
    assert.are.same({ 3, nil, "x", nil }, { count(checkpoint:as_directory(function()
      return nil, "x", nil
    end)) })
    assert.are.equal(0, (count(checkpoint:as_directory(function() end))))
    assert.is_false(pcall(checkpoint.as_directory, checkpoint))
  end)

  it("[54] warns if its mark cannot be removed, and goes on", function()
    assert.are.equal("done", checkpoint:as_directory(function()
      assert(fs.remove(mark()))
      return "done"
    end))
    assert.are.equal(1, #w.lines)
    assert.is_truthy(w.lines[1]:find("^warning: Could not remove the mark " .. mark():gsub("%p",
      "%%%0")), w.lines[1])
    is_gone()
  end)

  it("[55] removes the directory only if no mark is left", function()
    assert(checkpoint:as_directory(function()
      return fs.write(mark("foreign"), "")
    end))
    is_whole(dir)
    assert.are.same({ fs.base(dir), fs.base(mark("foreign")) }, w:left())
    -- The next one out does it, once that has gone.
    assert(fs.remove(mark("foreign")))
    assert(checkpoint:as_directory(function() return true end))
    assert.are.equal(3, (w:fetched()))
    is_gone()
  end)

  it("[56] leaves the directory if its lock is held, in silence and for good", function()
    local held
    assert(checkpoint:as_directory(function()
      held = w.hold(dir)
      return true
    end))
    is_whole(dir)
    assert.are.same({}, w.lines)
    held:release()
    is_whole(dir)
    assert.are.same({ fs.base(dir) }, w:left())
  end)

  it("[57] is shared by readers of several processes, and goes with the last", function()
    local stop = w.dir .. "/stop"
    local ended = w:start(checkpoint, ([[
      print(checkpoint:as_directory(function(path)
        support.await("the end", function() return ckpt.fs.exists(%q) end)
        return path, ckpt.fs.read(path .. "/a.txt")
      end))]]):format(stop))
    support.await("the other's files", function() return fs.exists(dir .. "/a.txt") end)
    assert(checkpoint:as_directory(function(path)
      is_whole(path)
      assert.are.equal(2, #readers.marks(path))
      return true
    end))
    is_whole(dir)
    assert.are.equal(1, #readers.marks(dir))
    support.write(stop, "")
    assert.are.equal(dir .. "\tdata:a\n", (ended()))
    assert.are.equal(3, (w:fetched()))
    is_gone()
  end)

  it("[58] hands an error of the function on, after it has removed mark and directory", function()
    local mine = {}
    local fine, raised = pcall(checkpoint.as_directory, checkpoint, function() error(mine) end)
    assert.is_false(fine)
    assert.are.equal(mine, raised)
    is_gone()
  end)

  it("[59] hands an error of the download on as it is", function()
    local called = false
    shelf.on_get = function() return nil, "no such thing, says the store", "EACCESS" end
    local done, text, name = checkpoint:as_directory(function() called = true end)
    assert.is_nil(done)
    assert.is_truthy(text:find("no such thing, says the store", 1, true), text)
    assert.are.equal("EACCESS", name)
    assert.is_false(called)
  end)

  it("[60 G] leaves neither mark nor directory when the download fails", function()
    shelf.on_get = function(key)
      if key == "sub/b.txt" then return nil, "no", "EIO" end
    end
    assert.is_nil((checkpoint:as_directory(print)))
    assert.is_nil((checkpoint:open_directory()))
    is_gone()
    shelf.on_get = nil
    assert(checkpoint:as_directory(function(path)
      is_whole(path)
      return true
    end))
    is_gone()
  end)

  it("[61 G] can be nested: each reader has a mark, and the last one removes", function()
    assert(checkpoint:as_directory(function(outer)
      assert(checkpoint:as_directory(function(inner)
        assert.are.equal(outer, inner)
        assert.are.same({ mark(), mark(PID .. "_1") }, readers.marks(dir))
        return true
      end))
      is_whole(outer)
      assert.are.same({ mark() }, readers.marks(dir))
      return true
    end))
    assert.are.same({}, w.lines)
    assert.are.equal(3, (w:fetched()))
    is_gone()
  end)

  it("[61 G] can be used by several tasks at once", function()
    shelf.on_get = function() for _ = 1, 3 do ckpt.job.yield() end end
    local tasks = {}
    for i = 1, 5 do
      tasks[i] = ckpt.job.task(function()
        return checkpoint:as_directory(function(path)
          for _ = 1, 6 - i do ckpt.job.yield() end
          is_whole(path)
          return true
        end)
      end)
    end
    for i = 1, 5 do assert(tasks[i]:wait()) end
    assert.are.equal(3, (w:fetched()))
    is_gone()
  end)

  -- A reader in another process that is killed while it reads.
  local function killed_reader()
    local ended = w:start(checkpoint, [[
      local handle = assert(checkpoint:open_directory())
      local _ = handle
      os.execute("kill -9 " .. ckpt.fs.readlink("/proc/self"))]])
    local _, code = ended()
    assert.are.equal(137, code)
  end

  it("[62 G] clears the marks of the dead", function()
    killed_reader()
    assert.are.equal(1, #readers.marks(dir))
    is_whole(dir)
    assert(checkpoint:as_directory(function() return true end))
    is_gone()
  end)

  it("[62 G] clears what other checkpoints' dead readers left, too", function()
    killed_reader()
    assert(w:remote("other"):as_directory(function() return true end))
    is_gone()
  end)

  it("[62 G] clears what its last reader could not remove", function()
    local held
    assert(checkpoint:as_directory(function()
      held = w.hold(dir)
      return true
    end))
    assert(w:remote("other"):as_directory(function() return true end))
    is_whole(dir)
    held:release()
    assert(w:remote("other"):as_directory(function() return true end))
    assert.are.same({}, w:left())
  end)

  it("[62 G] takes nobody for dead who may be alive", function()
    local me = process.identity()
    local function text(change)
      local identity = {}
      for key, value in pairs(me) do identity[key] = value end
      for key, value in pairs(change) do identity[key] = value end
      return ckpt.json.encode(identity)
    end
    local alive = {
      text {}, text { namespace = "pid:[1]", pid = 999999 }, "", "{", "[]", "null",
      '{"pid": 999999}',
    }
    local dead = { text { pid = 999999 }, text { start = "1" }, text { boot = "other" } }
    for _, content in ipairs(alive) do
      assert(fs.write(mark("x"), content))
      assert(checkpoint:as_directory(function() return true end))
      assert.is_true(fs.exists(dir), content)
    end
    for _, content in ipairs(dead) do
      assert(fs.write(mark("x"), content))
      assert(checkpoint:as_directory(function() return true end))
      is_gone()
    end
  end)

  it("[63 G] does not remove what to_directory handed out", function()
    assert.are.equal(dir, assert(checkpoint:to_directory()))
    assert(checkpoint:as_directory(function(path)
      assert.are.equal(dir, path)
      return true
    end))
    is_whole(dir)
    assert.are.same({ fs.base(dir) }, w:left())
    assert.are.equal(3, (w:fetched()))
    -- Handed out while somebody reads it.
    assert(fs.remove_tree(dir))
    assert(checkpoint:as_directory(function()
      return checkpoint:to_directory()
    end))
    is_whole(dir)
    assert.are.equal(6, (w:fetched()))
  end)

  it("fetches by the object's own to_directory, and is still the one who removes", function()
    local original, calls = checkpoint.to_directory, 0
    checkpoint.to_directory = function(...)
      calls = calls + 1
      return original(...)
    end
    assert.is_true(checkpoint:as_directory(function(path)
      is_whole(path)
      return true
    end))
    assert.are.equal(1, calls)
    is_gone()
    -- Another task that asks for the directory meanwhile keeps it.
    local kept
    checkpoint.to_directory = function(...)
      kept = kept or ckpt.job.task(function() return original(checkpoint) end)
      assert(kept:wait())
      return original(...)
    end
    assert(checkpoint:as_directory(function() return true end))
    is_whole(dir)
    assert(fs.remove_tree(dir))
    checkpoint.to_directory = function() return nil, "no route", "EIO" end
    assert.are.same({ nil, "no route", "EIO" },
      { checkpoint:as_directory(function() error "called" end) })
    checkpoint.to_directory = function() error("no route", 0) end
    local fine, why = pcall(checkpoint.as_directory, checkpoint, print)
    assert.are.same({ false, "no route" }, { fine, why })
    checkpoint.to_directory = nil
    is_gone()
  end)

  it("[64 G] lets nobody begin to read while it is removed", function()
    local handle = open()
    local place = require "ckpt.ray.checkpoint.checkpoint_place"
    local remove, seen = place.remove, nil
    place.remove = function(path)
      local _, _, name = locks.try(w.lock_names(path).readers, true)
      seen = name or "free"
      return remove(path)
    end
    handle:close()
    place.remove = remove
    assert.are.equal("EHELD", seen)
    is_gone()
  end)

  it("[64 G] reads what is whole, however readers come and go", function()
    local said = w:together(4, checkpoint, [[
      for _ = 1, 25 do
        assert(checkpoint:as_directory(function(path)
          assert(ckpt.fs.read(path .. "/a.txt") == "data:a")
          assert(ckpt.fs.read(path .. "/sub/b.txt") == "data:b")
          assert(ckpt.fs.read(path .. "/sub/deep/c.bin") == "data:c")
          return true
        end))
      end]])
    assert.are.same({ "", "", "", "" }, said)
    is_gone()
  end)

  it("[65] marks beside the directory, with .del_lock_ and the pid", function()
    assert.are.equal("/a/b.del_lock_s", readers.mark_path("/a/b", "s"))
    assert.are.equal("/a/b.del_lock_s", readers.mark_path("/a/b//", "s"))
    assert.are.equal("/a/b.txt.del_lock_*", readers.mark_path("/a/b.txt", "*"))
    assert.are.equal(".del_lock_x", readers.mark_path("", "x"))
    assert.are.equal("/a/b.del_lock_" .. PID, readers.mark_path("/a/b"))
    local handle = open()
    assert.are.same({ fs.base(dir), fs.base(mark()) }, w:left())
    handle:close()
  end)

  it("[66 G] takes brackets and the like in a path as they are", function()
    local odd = w.dir .. "/od[d]*?%"
    assert(fs.mkdirs(odd))
    assert(fs.write(odd .. "/x[1].del_lock_7", ""))
    assert(fs.write(odd .. "/x1.del_lock_7", ""))
    assert.are.same({ odd .. "/x[1].del_lock_7" }, readers.marks(odd .. "/x[1]"))
    w:set_tmp(odd)
    dir = fs.join(odd, "checkpoint_tmp_" .. checkpoint.id)
    assert(checkpoint:as_directory(function()
      return fs.write(mark("foreign"), "")
    end))
    is_whole(dir)
  end)

  it("[67] does not enforce that nobody writes there, and the page forbids it", function()
    assert(checkpoint:as_directory(function(path)
      assert.are_not.equal(0, math.floor(fs.stat(path).mode / tonumber("200", 8)) % 2)
      assert.are_not.equal(0, math.floor(fs.stat(path .. "/a.txt").mode / tonumber("200", 8)) % 2)
      return fs.write(path .. "/note", "")
    end))
    is_gone()
    local page = support.read(support.root .. "/docs/library/checkpoint.md")
    assert.is_truthy(page:find("Nobody may write to the directory", 1, true))
  end)

  it("[68] puts its directory into the system's one for temporary files", function()
    assert(checkpoint:as_directory(function(path)
      assert.are.equal(fs.temp() .. "/checkpoint_tmp_" .. checkpoint.id, path)
      assert.are.equal(w.tmp, fs.parent(path))
      return true
    end))
  end)

  it("has a handle that closes once, and by itself when it is forgotten", function()
    local one, other = open(), open()
    assert.are.equal(dir, one.path)
    one:close()
    one:close()
    is_whole(other.path)
    other = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    is_gone()
    assert.are.equal(1, #w.lines)
    assert.is_truthy(w.lines[1]:find("never closed", 1, true))
  end)

  it("is cleared up when the program ends without closing it", function()
    local said, code = w:start(checkpoint, [[
      KEPT = assert(checkpoint:open_directory())
      assert(ckpt.fs.exists(KEPT.path .. "/a.txt"))]])()
    assert.are.equal(0, code)
    assert.is_truthy(said:find("never closed", 1, true), said)
    is_gone()
  end)

  it("uses no directory that somebody else has made", function()
    if process.user() ~= 0 then return pending("only root can make one for somebody else") end
    assert(fs.mkdirs(dir))
    os.execute(("chown 65534 '%s'"):format(dir))
    local done, text, name = checkpoint:as_directory(print)
    assert.is_nil(done)
    assert.are.equal("EACCESS", name)
    assert.is_truthy(text:find(dir, 1, true), text)
    assert.are.equal(0, (w:fetched()))
  end)

  it("is over when its task is cancelled", function()
    shelf.on_get = function() for _ = 1, 100 do ckpt.job.yield() end end
    local task = ckpt.job.task(function() return checkpoint:as_directory(print) end)
    assert.is_true(task:running())
    task:cancel()
    local done, _, name = task:wait()
    assert.is_nil(done)
    assert.are.equal("ECANCELED", name)
    is_gone()
  end)
end)

describe("Checkpoint, its locks", function()
  local w, checkpoint, target

  before_each(function()
    w = world.open()
    checkpoint, target = w:remote(), w.dir .. "/target"
  end)
  after_each(function() w:close() end)

  it("[70 G] are in a private directory, named by the SHA-256 of the resolved target", function()
    local seen = {}
    shelf.on_get = function()
      for _, path in ipairs(w:lock_files()) do seen[path] = true end
      assert.are.same({}, fs.glob(w.dir .. "/*.lock"))
    end
    assert(checkpoint:to_directory(target))
    local private = ("ckpt-%d"):format(process.user())
    assert.is_true(seen[("%s/_ckpt_lockfiles/%s.lock"):format(private,
      ckpt.digest.sha256(target))])
    assert.are.equal(tonumber("700", 8), fs.stat(w.tmp .. "/" .. private).mode)
    -- Nobody waits for them any more.
    assert.are.same({}, w:lock_files())
  end)

  it("[70 G] are not put where somebody else could take them", function()
    local private = w.tmp .. ("/ckpt-%d"):format(process.user())
    assert(fs.mkdirs(private))
    assert(fs.chmod(private, tonumber("777", 8)))
    local done, text, name = checkpoint:to_directory(target)
    assert.is_nil(done)
    assert.are.equal("EACCESS", name)
    assert.is_truthy(text:find(private, 1, true), text)
    assert(fs.remove_tree(private))
    assert(fs.symlink(w.dir, private))
    assert.is_nil((checkpoint:to_directory(target)))
  end)

  it("[71] vanish with their process, and are tried once or waited for without limit", function()
    local name = w.lock_names(target).target
    local ended = w:start(checkpoint, ([[
      local held = assert(ckpt.lock.take(%q))
      support.write(%q, ckpt.fs.readlink("/proc/self"))
      ckpt.clock.sleep(100)
      held:release()]]):format(name, w.dir .. "/pid"))
    local pid = support.await("the other's lock", function()
      local text = support.read(w.dir .. "/pid")
      return text and text ~= "" and text
    end)
    local held, _, why = locks.try(name, false)
    assert.is_nil(held)
    assert.are.equal("EHELD", why)
    held, _, why = ckpt.lock.take(name, { timeout = 0.01 })
    assert.is_nil(held)
    assert.are.equal("ETIMEOUT", why)
    local naps = 0
    world.at_sleep(function(n)
      naps = n
      -- Some thousand seconds by this clock.
      if n == 1000 then os.execute("kill -9 " .. pid) end
      if n > 1000 then os.execute("sleep 0.01") end
    end)
    assert.are.equal(target, assert(checkpoint:to_directory(target)))
    assert(naps >= 1000)
    ended()
  end)

  it("[72] are one for all spellings of a place", function()
    assert(fs.symlink(w.dir, w.dir .. "/link"))
    local file = w.lock_names(target).target
    for _, spelling in ipairs { "/link/target", "/x/../target", "/link/link/./target/" } do
      assert.are.equal(file, w.lock_names(w.dir .. spelling).target)
      local held, waited = assert(ckpt.lock.take(file)), false
      world.at_sleep(function()
        waited = true
        held:release()
      end)
      assert(checkpoint:to_directory(w.dir .. spelling))
      assert.is_true(waited)
      ckpt.clock.use(nil)
      assert(fs.remove_tree(target))
    end
  end)

  it("forget nothing when their file is removed under those who wait", function()
    local file = w.lock_names(target).target
    local held = assert(ckpt.lock.take(file))
    local other
    world.at_sleep(function(n)
      if n == 1 then
        locks.drop(held)
        other = assert(ckpt.lock.take(file))
      elseif n == 20 then
        other:release()
      end
    end)
    local mine = assert(locks.wait(file, false))
    assert.is_false(other:held())
    mine:release()
  end)
end)
