-- A process is killed at each of its steps, one after the other, on the way through a download: the
-- next one finds what it needs, and nothing is left in the end.

local world = require "contract.checkpoint_world"

-- Runs in a process of its own, which has no threads, and forks for each step: the child kills
-- itself before the step's call of a primitive, another child looks at what that means for others.
local SCRIPT = [[
  local ffi = require "ffi"
  ffi.cdef "int fork(void); int waitpid(int, int *, int); int kill(int, int); void _exit(int);"
  ffi.cdef "int getpid(void);"
  local TARGET, LOCAL, STRIDE = %q, %q, %d

  local left = math.huge
  local function count(module, name)
    local original = module[name]
    module[name] = function(...)
      left = left - 1
      if left <= 0 then ffi.C.kill(ffi.C.getpid(), 9) end
      return original(...)
    end
  end
  for name, value in pairs(ckpt.fs) do
    if type(value) == "function" and name ~= "join" and name ~= "base" and name ~= "parent" then
      count(ckpt.fs, name)
    end
  end
  count(ckpt.lock, "take")
  count(ckpt.lock.Lock, "release")

  local function check(path)
    assert(ckpt.fs.read(path .. "/a.txt") == "data:a", "a.txt")
    assert(ckpt.fs.read(path .. "/sub/b.txt") == "data:b", "b.txt")
    assert(ckpt.fs.read(path .. "/sub/deep/c.bin") == "data:c", "c.bin")
    return path
  end

  -- In a child; its status: 0, 9 if it was killed, 256 if something is wrong.
  local function run(fn, steps)
    local pid = ffi.C.fork()
    if pid == 0 then
      left = steps
      local fine, text = xpcall(fn, debug.traceback)
      left = math.huge
      if not fine then io.write(text, "\n") end
      io.stdout:flush()
      ffi.C._exit(fine and 0 or 1)
    end
    local status = ffi.new("int[1]")
    assert(ffi.C.waitpid(pid, status, 0) == pid)
    return status[0]
  end

  local function clean(allowed)
    local temp = ckpt.fs.temp()
    for _, entry in ipairs(ckpt.fs.walk(temp)) do
      local name = entry.path
      local kept = allowed and (name:find(allowed, 1, true) or name:find("%%.json$"))
      assert(kept or name:find("^ckpt%%-%%d+$") or name:find("^ckpt%%-%%d+/_ckpt_lockfiles$"),
        name .. " is left")
    end
    for _, name in ipairs(ckpt.fs.list(ckpt.fs.parent(TARGET))) do
      assert(not name:find("ckpt_part") and not name:find("ckpt_gone"), name .. " is left")
    end
  end

  local function walk(what, use, look)
    local steps = 0
    repeat
      steps = steps + STRIDE
      local status = run(use, steps)
      assert(status == 9 or status == 0, what .. ": the first one failed at step " .. steps)
      assert(run(look, math.huge) == 0, what .. ": after a death at step " .. steps)
    until status == 0
    assert(steps > 20, "it has few steps")
    io.write(what, " ")
    io.stdout:flush()
  end

  local function read() assert(checkpoint:as_directory(check)) end

  walk("reader", read, function()
    read()
    clean()
  end)
  walk("owner", function() check(assert(checkpoint:to_directory())) end, function()
    local path = check(assert(checkpoint:to_directory()))
    read()
    check(path)
    clean(ckpt.fs.base(path))
    assert(ckpt.fs.remove_tree(path))
  end)
  walk("fresh target", function() check(assert(checkpoint:to_directory(TARGET))) end, function()
    check(assert(checkpoint:to_directory(TARGET)))
    clean("")
    assert(ckpt.fs.remove_tree(TARGET))
  end)
  walk("filled target", function()
    assert(ckpt.fs.mkdirs(TARGET .. "/sub"))
    assert(ckpt.fs.write(TARGET .. "/sub/b.txt", "old"))
    assert(ckpt.fs.write(TARGET .. "/mine", "mine"))
    check(assert(checkpoint:to_directory(TARGET)))
  end, function()
    check(assert(checkpoint:to_directory(TARGET)))
    clean("")
    assert(not ckpt.fs.exists(TARGET .. "/.ckpt_part"))
    assert(ckpt.fs.remove_tree(TARGET))
  end)
  local noted = ckpt.Checkpoint(LOCAL)
  walk("metadata", function()
    assert(noted:update_metadata { a = 1 })
    assert(noted:update_metadata { b = 2 })
  end, function()
    local metadata = assert(noted:get_metadata())
    assert(not metadata.b or metadata.a)
    assert(noted:update_metadata { c = 3 })
    assert(noted:get_metadata().c == 3)
    assert(#ckpt.fs.list(LOCAL) == 1)
    clean("")
    assert(noted:set_metadata {})
  end)
]]

describe("a process that is killed while it fetches", function()
  local w

  before_each(function() w = world.open() end)
  after_each(function() w:close() end)

  it("[38 G] leaves a place to the next one, whatever it was about to do", function()
    w:tree("place", {})
    local stride = tonumber(os.getenv("CKPT_STRIDE")) or 11
    local said, code = w:start(w:remote(),
      SCRIPT:format(w.dir .. "/place/target", w:tree("noted", {}), stride))()
    assert(code == 0, said)
    assert.are.equal("reader owner fresh target filled target metadata ", said)
  end)
end)
