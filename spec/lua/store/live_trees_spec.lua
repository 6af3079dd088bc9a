-- A trial's directory while the trial runs: its log grows, and is sent and copied all the same.

local ckpt = require "ckpt"
local support = require "support"
local table_store = require "lua.store.store_support"

local fs, store = ckpt.fs, ckpt.store

table_store.register()

describe("a directory in which a log grows", function()
  local dir, trial, program

  -- A program that appends lines of the same length without end.
  support.with_directory(function(made)
    dir = made
    trial = dir .. "/trial"
    assert(fs.mkdirs(trial .. "/checkpoint_000001"))
    assert(fs.write(trial .. "/checkpoint_000001/model", ("weights"):rep(100000)))
    program = assert(ckpt.job.command { "sh", "-c",
      "while :; do echo step; sleep 0.001; done >> " .. trial .. "/train.log" })
    support.await("the log", function()
      return fs.exists(trial .. "/train.log") and fs.stat(trial .. "/train.log").size > 50
    end)
  end)
  after_each(function() program:cancel() end)

  -- The log there is a beginning of the one here: whole writes of the program, none of them torn.
  local function must_be_whole(there)
    local log = assert(fs.read(there .. "/train.log"))
    assert.is_true(#log >= 50)
    assert.equal(("step\n"):rep(#log / 5), log)
    assert.equal(("weights"):rep(100000), fs.read(there .. "/checkpoint_000001/model"))
  end

  for _, uri in ipairs { "file", "mem", "table", "mover" } do
    it("is uploaded at the first attempt to a store of " .. uri, function()
      store.register("mover", { open = function(at) -- a store that reads the files itself
        local inner = store.open((at:gsub("^mover", "table"))).inner
        local mover = { put_file = function(_, key, path) return inner:put(key, fs.read(path)) end }
        return setmetatable(mover, { __index = function(_, name)
          return inner[name] and function(_, ...) return inner[name](inner, ...) end
        end })
      end })
      local place = uri == "file" and "file://" .. dir .. "/store" or uri .. "://live/" .. uri
      local syncer = ckpt.DefaultSyncer()
      for i = 1, 3 do -- the second and the third find an older log there
        assert.is_true(syncer:sync_up(trial, place))
        assert(syncer:wait())
        assert(store.download { uri = place, dir = dir .. "/back" .. i }:wait())
        must_be_whole(dir .. "/back" .. i)
      end
      assert(store.delete { uri = place }:wait())
    end)
  end

  it("is copied by store.copy, and by a SyncerCallback for each checkpoint", function()
    assert(store.copy { from = trial, to = dir .. "/copy" }:wait())
    must_be_whole(dir .. "/copy")
    local callback = ckpt.SyncerCallback {}
    local told = { id = "a", logdir = dir .. "/here", uri = trial }
    for _ = 1, 3 do
      assert(callback:on_checkpoint(told, { path = dir .. "/here/checkpoint_000001" }))
      must_be_whole(dir .. "/here")
    end
  end)

  it("is packed, with nothing left out", function()
    local packed = assert(ckpt.file_transfer.pack(trial, dir .. "/x.tar"):wait())
    assert.same({}, packed.retired)
    assert(ckpt.file_transfer.unpack(dir .. "/x.tar", dir .. "/unpacked"):wait())
    must_be_whole(dir .. "/unpacked")
    local bytes = #fs.read(dir .. "/unpacked/train.log") + 700000
    assert.equal(bytes, packed.bytes)
  end)

  it("is saved by a DurableTrainable with each checkpoint", function()
    local Mine = ckpt.DurableTrainable:extend "Mine"
    function Mine.save_checkpoint(_, at)
      assert(fs.write(at .. "/m", "7"))
      return at .. "/m"
    end
    function Mine:load_checkpoint(path) self.loaded = fs.read(path) end
    local mine = Mine("file://" .. dir .. "/durable", {}, { logdir = trial })
    local path
    for _ = 1, 3 do path = assert(mine:save()) end
    program:cancel()
    assert(fs.remove_tree(trial))
    assert(mine:restore(path))
    assert.equal("7", mine.loaded)
    must_be_whole(trial)
  end)

  it("is sent with a file that is rewritten while it is read as that was at one moment", function()
    -- In a store of Lua the program gets its turn while the file is read.
    store.register("turn", { open = function(at)
      local inner = store.open((at:gsub("^turn", "table"))).inner
      local turn = { count = 0 }
      function turn.put(_, key, data)
        turn.count = turn.count + 1
        if key == "state" then
          assert(fs.write(trial .. "/state", ("%09d"):format(turn.count)))
        end
        return inner:put(key, data)
      end
      return setmetatable(turn, { __index = function(_, name)
        return inner[name] and function(_, ...) return inner[name](inner, ...) end
      end })
    end })
    assert(fs.write(trial .. "/state", "000000000"))
    assert(store.upload { dir = trial, uri = "turn://live/t" }:wait()) -- a copy holds still
    assert(store.download { uri = "table://live/t", dir = dir .. "/back" }:wait())
    assert.matches("^%d%d%d%d%d%d%d%d%d$", fs.read(dir .. "/back/state"))
  end)
end)
