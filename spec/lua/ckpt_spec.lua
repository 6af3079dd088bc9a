-- require "ckpt": a run from Lua, and what is done with what it saved. Each script runs in a
-- process of its own, by ckpt-script, as a user's would.

local support = require "support"

local SCRIPT = support.build .. "/libexec/ckpt-script"

describe("require 'ckpt'", function()
  local dir

  support.with_directory(function(made) dir = made end)

  -- Runs a script that has `ckpt`, `DIR`, `write(path, text)` and a run's helper `saved(run, n)`.
  local function run(text)
    local prelude = [[
      local ckpt = require "ckpt"
      local DIR = arg[1]
      local function write(path, data)
        os.execute("mkdir -p '" .. path:match("^(.*)/") .. "'")
        local f = assert(io.open(path, "wb"))
        f:write(data)
        f:close()
      end
      local function commit(engine, names, options)
        options = options or {}
        options.dir, options.to = DIR .. "/out", DIR .. "/store"
        options.quiet = 0.1
        local r = assert(engine:run(options))
        assert(r:start())
        local done = {}
        for _, name in ipairs(names) do
          write(DIR .. "/out/" .. name .. "/model.bin", ("x"):rep(1000) .. name)
          os.rename(DIR .. "/out/" .. name, DIR .. "/out/" .. name)
        end
        local ends = os.time() + 30
        local wanted = #names
        while wanted > 0 and os.time() < ends do
          assert(engine:dispatch(100))
          for c in function() return engine:next() end do
            done[#done + 1] = c
            if c.kind == "committed" or c.kind == "dropped" then wanted = wanted - 1 end
          end
        end
        return r, done
      end
      local _ = write, commit
    ]]
    -- In one line, so that line numbers in messages are the script's own.
    support.write(dir .. "/t.lua", prelude:gsub("%s*\n%s*", " ") .. "\n" .. text)
    local out, code = support.sh(("CKPT_LUADIR='%s/lua' '%s' '%s/t.lua' '%s'")
      :format(support.root, SCRIPT, dir, dir))
    assert(code == 0, out)
    return (out:gsub("\n$", ""))
  end

  it("saves, lists, shows, verifies and restores", function()
    local out = run([[
      local engine = assert(ckpt.open())
      local r, done = commit(engine, { "checkpoint-10" })
      local c = done[#done]
      assert(c.kind == "committed" and c.status == "OK" and c.run == r and c.step == 10)
      local status = r:status()
      assert(status.committed == 1 and status.newest_step == 10 and status.fenced == false)
      assert(r:place().dir:sub(1, 1) == "/")
      r:close()
      engine:close()

      local items = assert(ckpt.list(DIR .. "/store"))
      assert(#items == 1 and items[1].name == "checkpoint-10" and items[1].life == "live")
      assert(items[1].files == 1 and items[1].bytes == 1013)
      local part = { uri = DIR .. "/store", dir = DIR .. "/part", only = { "no such", "file" } }
      local nothing, _, class = ckpt.restore(part)
      assert(nothing == nil and class == "ENOENT")
      part.only = { "*" }
      assert(#assert(ckpt.restore(part)) == 1)
      local restored = assert(ckpt.restore { uri = DIR .. "/store", dir = DIR .. "/back" })
      assert(#restored == 1)
      local f = assert(io.open(DIR .. "/back/checkpoint-10/model.bin"))
      assert(f:read("*a") == ("x"):rep(1000) .. "checkpoint-10")
      f:close()
      local good = assert(ckpt.verify(DIR .. "/store"))
      assert(#good == 1 and good[1].ok and good[1].status == "OK")
      print "done"]])
    assert.are.equal("done", out)
  end)

  it("tells each record to a function, whose error comes through", function()
    local out = run([[
      local engine = assert(ckpt.open())
      commit(engine, { "checkpoint-1" }):close()
      engine:close()
      local seen = {}
      local ok = ckpt.verify(DIR .. "/store", nil, function(v) seen[#seen + 1] = v.name end)
      assert(ok == true and seen[1] == "checkpoint-1")
      local fine, why = pcall(ckpt.verify, DIR .. "/store", function() error("mine", 0) end)
      assert(not fine and why == "mine")
      assert(#ckpt.list(DIR .. "/store") == 1)
      print "done"]])
    assert.are.equal("done", out)
  end)

  it("returns nil, a text and a name when something fails", function()
    local out = run([[
      local items, text, name = ckpt.list(DIR .. "/nowhere")
      assert(items == nil and text:find("nowhere", 1, true))
      print(name)
      local r, why, code = ckpt.restore { uri = "no-such-scheme://x", dir = DIR .. "/back" }
      assert(r == nil and #why > 0)
      assert(code:match("^E%u+$"), code)]])
    assert.is_truthy(out:match("^E%u+$"))
  end)

  it("hands each option of a run to the engine", function()
    local out = run([[
      local function try(options)
        options.dir, options.to = DIR .. "/out", DIR .. "/store"
        local engine = assert(ckpt.open())
        local r, text = engine:run(options)
        if r then r:close() end
        engine:close()
        print(text or "opened")
      end
      try { rank = 2, world = 2, launch = "l" }
      try { rank = 0, world = 2 }
      try { rank_wait = -1 }
      try { stall = -1 }
      try { rank = 0, world = 1, rank_wait = 0.5, stall = 5, bad_after = 2, tries = 3 }
      try { bad_after = math.huge, rank_wait = math.huge }
      try { restore_parts = "some" }
      try { restore_parts = "own" }]])
    local lines = {}
    for line in out:gmatch("[^\n]+") do lines[#lines + 1] = line end
    for i, part in ipairs { "rank 2 of 2", "rank 0 of 2", "rank_wait: -1", "stall: -1", "opened",
      "opened", '"own" or "all", not "some"', "opened" } do
      assert.is_truthy((lines[i] or ""):find(part, 1, true), out)
    end
  end)

  it("raises at the caller's line when it is misused", function()
    local out = run([[
      local function misuse(fn, ...)
        local ok, text = pcall(fn, ...)
        assert(not ok)
        print(text)
      end
      misuse(function() local _ = ckpt.list() end)
      misuse(function() local _ = ckpt.restore { uri = "x" } end)
      misuse(function() local _ = ckpt.restore { uri = "x", dir = "y", into = "z" } end)
      misuse(function() local _ = ckpt.restore { uri = 7, dir = "y" } end)
      misuse(function() local _ = ckpt.open { workers = "many" } end)
      local engine = assert(ckpt.open())
      misuse(function() local _ = engine:run { dir = DIR } end)
      misuse(function() local _ = engine:run { dir = DIR, to = DIR, units = { 7 } } end)
      misuse(function() local _ = engine:run { dir = DIR, to = DIR, bad_after = -1 } end)
      misuse(function() local _ = engine:run { dir = DIR, to = DIR, world = 1.5 } end)
      misuse(function() local _ = engine:run { dir = DIR, to = DIR, tries = 0 / 0 } end)
      engine:close()
      misuse(function() local _ = engine:dispatch() end)
      misuse(function() local _ = engine.dispatch(io.stdout) end)]])
    local lines = {}
    for line in out:gmatch("[^\n]+") do lines[#lines + 1] = line:match("t%.lua:%d+: (.*)") end
    assert.are.equal(12, #lines)
    for i, part in ipairs {
      "string expected", "`dir` is missing", "unknown option into", "`uri` is a number",
      "`workers` is a string", "`to` is missing", "`units` is not a list of texts",
      "`bad_after` is -1", "`world` is 1.5", "`tries` is ",
      "this engine is closed", "ckpt.engine expected",
    } do
      assert.is_truthy(lines[i]:find(part, 1, true), lines[i])
    end
  end)

  it("closes in any order, and twice, and leaves it to the collector", function()
    local out = run([[
      for _ = 1, 3 do
        local engine = assert(ckpt.open())
        local r = assert(engine:run { dir = DIR .. "/out", to = DIR .. "/store" })
        engine:close()
        engine:close()
        r:close()
        assert(not pcall(r.status, r))
        engine = assert(ckpt.open())
        r = assert(engine:run { dir = DIR .. "/out", to = DIR .. "/store" })
        r:close()
        r:close()
        engine, r = nil, nil
        collectgarbage()
        collectgarbage()
      end
      local kept = assert(ckpt.open())
      KEPT = assert(kept:run { dir = DIR .. "/out", to = DIR .. "/store" })
      print "done"]])
    assert.are.equal("done", out)
  end)

  it("pins, unpins and removes", function()
    local out = run([[
      local engine = assert(ckpt.open())
      commit(engine, { "checkpoint-1" }):close()
      engine:close()
      local id = assert(ckpt.pin(DIR .. "/store", "checkpoint-1"))
      assert(#id == 32)
      local gone, why, name = ckpt.remove { uri = DIR .. "/store", name = "checkpoint-1" }
      assert(gone == nil and #why > 0 and name == "EHELD", name)
      assert(ckpt.unpin(DIR .. "/store", id) == 1)
      local would = assert(ckpt.remove { uri = DIR .. "/store", all = true, dry_run = true })
      assert(#would == 1 and #assert(ckpt.list(DIR .. "/store")) == 1)
      assert(ckpt.show(DIR .. "/store"):match("^{.*}$"))
      print "done"]])
    assert.are.equal("done", out)
  end)

  it("says why", function()
    local out = run([[
      local engine = assert(ckpt.open())
      local r = commit(engine, { "checkpoint-1" })
      local cause, text, findings = r:why("checkpoint-1")
      assert(cause == "committed" and #text > 0 and #findings > 0, cause)
      r:close()
      engine:close()
      cause = assert(ckpt.why { name = "checkpoint-1", dir = DIR .. "/out" })
      print(cause)]])
    assert.are.equal("committed", out)
  end)

  it("takes policies and their settings, and results from inside the job", function()
    local out = run([[
      write(DIR .. "/p.lua", "local set = options { only = { type = 'integer', default = 0 } }\n" ..
        "return { api = 1, sync = function(e)\n" ..
        "  return e.step == set.only and 'skip' or 'sync', 'the rule' end }")
      local engine = assert(ckpt.open())
      local r, done = commit(engine, { "checkpoint-1" },
        { policies = { DIR .. "/p.lua" }, settings = { only = 5 } })
      assert(done[#done].kind == "committed")
      assert(r:notify { kind = "result", json = '{"loss":0.5}' })
      assert(not pcall(r.notify, r, { kind = "nonsense" }))
      r:close()
      print "done"]])
    assert.are.equal("done", out)
  end)
end)

describe("ckpt/core.so", function()
  it("is loaded by any LuaJIT", function()
    if support.sanitized then return pending("a sanitized library cannot be loaded by LuaJIT") end
    local out, code = support.sh(("luajit -e 'package.cpath = \"%s/lua/?.so;\" .. package.cpath " ..
      "package.path = \"lua/?/init.lua;\" .. package.path " ..
      "print(require(\"ckpt\").version())'"):format(support.build))
    assert.are.equal(0, code)
    assert.is_truthy(out:find("^%d+%.%d+%.%d+\n$"), out)
  end)
end)
