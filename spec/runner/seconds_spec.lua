-- Times in seconds, wherever they are given: what has no end is for ever, what is no time is
-- refused, and nothing becomes a default in silence.

local cjson = require "cjson"
local place = require "place"
local support = require "support"
local sh, ckpt, says, has = place.sh, place.ckpt, place.says, place.has

local dir

local function lua(text, args)
  support.write(dir .. "/script.lua", 'local ckpt = require "ckpt"\n' .. text)
  return ckpt("exec script.lua " .. (args or ""))
end

local function save(n)
  sh(("mkdir -p out/checkpoint-%d && cd out/checkpoint-%d && echo %d >model.bin &&"
    .. " echo '{}' >trainer_state.json"):format(n, n, n))
  local out, code = ckpt "sync out --to store --settle 0"
  assert(code == 0, out)
end

-- All of the store's log is from so long ago, by the entries' own times and those of their files.
local function age(hours)
  sh("'" .. support.root .. "/spec/older/unsealed.sh' store")
  for path in sh("ls -d store/.ckpt/log/*.json"):gmatch "%S+" do
    local text = support.read(dir .. "/" .. path):gsub('"time_ns":(%d+)%d%d%d%d%d%d%d%d%d([,}])',
      function(s, rest) return ('"time_ns":%d000000000%s'):format(s - hours * 3600, rest) end)
    support.write(dir .. "/" .. path, text)
  end
  sh(("find store/.ckpt -exec touch -h -d '%d hours ago' {} +"):format(hours))
end

local function is_there(n)
  return support.read(("%s/store/checkpoint-%d/model.bin"):format(dir, n))
end

describe("a time", function()
  place.with_directory(function(made) dir = made end)

  -- What the engine made of an option, as the run's state directory tells.
  local function rules_of(value, name, key)
    local out, code = lua([[
      local name, value = ...
      value = value == "nan" and 0 / 0 or tonumber(value)
      local e = assert(ckpt.open())
      ckpt.fs.mkdirs(ckpt.fs.cwd() .. "/out")
      local r, text, cause = e:run { dir = ckpt.fs.cwd() .. "/out", to = ckpt.fs.cwd() .. "/to",
        [name] = value }
      if not r then print(text, cause) e:close() error "refused" end
      assert(r:prepare()) assert(r:start()) e:dispatch(20) r:close() e:close()]],
      name .. " " .. value)
    if code ~= 0 then return out end
    return tonumber(support.read(dir .. "/out.ckpt/rules.json"):match('"' .. key .. '":%s*(-?%d+)'))
  end

  for name, key in pairs { quiet = "quiet_ns", grace_delete = "grace_ns" } do
    it("without end is one, however it is written: a run's " .. name .. " in Lua", function()
      for _, value in ipairs { "inf", "1e300", "1e10", "1e400" } do
        assert.are.equal(2 ^ 63, rules_of(value, name, key), value)
      end
      assert.are.equal(1.5e9, rules_of("1.5", name, key))
    end)

    it("that is none is refused with its name: a run's " .. name .. " in Lua", function()
      local out = rules_of("nan", name, key)
      has(out, name .. ": nan is no time: give 0 or more seconds")
      has(out, "EINVAL")
    end)
  end

  it("less than 0 is none at all where the library says so", function()
    assert.are.equal(0, rules_of("-1", "grace_delete", "grace_ns"))
    assert.is_true(rules_of("-1e300", "quiet", "quiet_ns") <= 1)
  end)

  local function dropped_long_ago()
    for n = 1, 3 do save(n) end
    assert.are.equal(0, select(2, ckpt "rm store checkpoint-1"))
    age(26)
    assert.is_truthy(is_there(1))
  end

  it("without end from dropped to deleted deletes nothing: in Lua", function()
    dropped_long_ago()
    for _, value in ipairs { "math.huge", "1e300", "1e10" } do
      local out, code = lua(([[
        local e = assert(ckpt.remove { uri = ckpt.fs.cwd() .. "/store", name = "checkpoint-2",
          dry_run = false, grace_delete = %s })]]):format(value))
      assert(code == 0 or out:find "ENOENT" or out:find "no such", out)
      assert.is_truthy(is_there(1), value)
    end
    local out, code = lua [[
      print(select(2, ckpt.remove { uri = ckpt.fs.cwd() .. "/store", name = "checkpoint-3",
        grace_delete = 0 / 0 }))]]
    assert(code == 0, out)
    has(out, "grace_delete: nan is no time")
    assert.is_truthy(is_there(1))
  end)

  it("without end from dropped to deleted deletes nothing: on the command line", function()
    dropped_long_ago()
    for _, value in ipairs { "inf", "99999999999d", "1000000000000" } do
      local out = says(0, "gc store --grace-delete " .. value)
      assert.is_truthy(is_there(1), value .. "\n" .. out)
      out = says(0, "plan store --json --grace-delete " .. value)
      local waits = 0
      for line in out:gmatch "[^\n]+" do
        local verdict = cjson.decode(line)
        if verdict.verdict == "wait" then
          waits = waits + 1
          assert.are.equal(cjson.null, verdict.deleted_in_s)
        end
      end
      assert.are.equal(1, waits, out)
    end
    -- The proof that a day is over: the default deletes.
    local out, code = ckpt "gc store"
    assert(code == 0, out)
    assert.is_falsy(is_there(1), out)
  end)

  it("that is none is refused by each option of the command line, with what to say", function()
    save(1)
    local words = {
      ["settle"] = "sync out --to store", ["grace"] = "run --dir out --to store",
      ["grace-delete"] = "gc store", ["rank-wait"] = "run --dir out --to store",
      ["for"] = "pin store checkpoint-1",
    }
    for name, verb in pairs(words) do
      for _, value in ipairs { "nan", "-1", "1e400", "-inf", "infinity" } do
        local job = verb:find "^run" and " -- true" or ""
        local out = says(2, ("%s '--%s=%s'%s"):format(verb, name, value, job))
        has(out, ("--%s: '%s' is no time; say 30s, 5m, 24h, 7d or inf"):format(name, value))
      end
    end
  end)

  it("without end is taken by each option of the command line", function()
    save(1)
    for _, value in ipairs { "inf", "99999999999d", ("9"):rep(300) } do
      for _, line in ipairs {
        "sync out --to store --settle V",
        "run --dir out --to store --continue-run --grace V -- true",
        "run --dir out --to store --continue-run --grace-delete V --rank-wait V --settle V -- true",
        "gc store --grace-delete V", "rm store checkpoint-9 --grace-delete V || true",
        "plan store --grace-delete V", "pin store checkpoint-1 --for V",
      } do
        says(0, (line:gsub("V", value)))
      end
    end
    -- A pin without end has none in its record.
    for path in sh("ls -d store/.ckpt/pins/*"):gmatch "%S+" do
      assert.is_nil(cjson.decode(support.read(dir .. "/" .. path)).expires_ns)
    end
  end)

  it("of a pin is checked in Lua", function()
    save(1)
    local out, code = lua [[
      local store = ckpt.fs.cwd() .. "/store"
      for _, s in ipairs { math.huge, 1e300, 1e-300, 0, 60 } do
        assert(ckpt.pin(store, "checkpoint-1", s))
      end
      for _, s in ipairs { 0 / 0, -1, -math.huge } do
        print(select(2, ckpt.pin(store, "checkpoint-1", s)))
      end]]
    assert(code == 0, out)
    local _, refused = out:gsub("is no time: give 0 or more seconds", "")
    assert.are.equal(3, refused, out)
    assert.are.equal(2, tonumber((sh "grep -l expires_ns store/.ckpt/pins/* | wc -l")))
  end)

  it("to wait for is checked in Lua: nan waits neither for ever nor not at all", function()
    local out, code = lua [[
      local job, lock = require "ckpt.job.job", require "ckpt.job.lock"
      local path = ckpt.fs.cwd() .. "/lock"
      local held = assert(lock.take(path))
      local nan = 0 / 0
      local sleeper = job.command({ "sleep", "60" }, { grace = math.huge })
      for what, f in pairs {
        ["lock.take"] = function() lock.take(path, { timeout = nan }) end,
        ["job.yield"] = function() job.yield(nan) end,
        ["a job's wait"] = function() sleeper:wait(nan) end,
        ["grace"] = function() job.command({ "true" }, { grace = nan }) end,
        ["less than 0"] = function() job.command({ "true" }, { grace = -1 }) end,
        ["linger"] = function() job.command({ "true" }, { linger = nan }) end,
        ["sleep"] = function() require "ckpt.base.clock".sleep(nan) end,
        ["sync_period"] = function() require "ckpt.ray.sync.sync_config" { sync_period = nan } end,
        ["sync_timeout"] = function() require "ckpt.ray.sync.sync_config" { sync_timeout = -5 } end,
      } do
        local ok, text = pcall(f)
        assert(not ok, what .. " took it")
        assert(text:find("script.lua:%d+: ") and text:find "seconds", what .. ": " .. text)
      end
      -- Time that is over is no mistake; and TERM ends what has as long as it likes to end.
      assert(select(3, lock.take(path, { timeout = -1 })) == "ETIMEOUT")
      assert(select(3, sleeper:wait(-math.huge)) == "ETIMEOUT")
      sleeper:cancel()
      held:release()
      print "fine"]]
    assert(code == 0, out)
    has(out, "fine")
  end)

  it("without end is one in a policy, and what is none is refused at its line", function()
    save(1)
    local function plan(text)
      support.write(dir .. "/p.lua", "return { api = 1,\n" .. text .. " }")
      return ckpt "plan store -p p.lua"
    end
    for _, value in ipairs { "math.huge", "1e300", '"inf"', '"99999999999w"' } do
      local out, code = plan(("keep = keep.within(%s)"):format(value))
      assert(code == 0, out)
      has(out, "within 292 years of the newest")
      out, code = plan(("sync = any { when.seconds(%s), when.at_most_every(%s) }")
        :format(value, value))
      assert(code == 0, out)
      out, code = plan(("complete = done.quiet(%s)"):format(value))
      assert(code ~= 0, out)
      has(out, "p.lua:2: done.quiet: a day at most, not ")
    end
    for _, value in ipairs { "0 / 0", "-1", '"nan"', '"-1"', '"1e400"', "-math.huge" } do
      for _, rule in ipairs {
        "keep = keep.within(%s)", "sync = when.seconds(%s)", "sync = when.at_most_every(%s)",
        "complete = done.quiet(%s)", "sync = when.node_sync { period = %s }",
      } do
        local out, code = plan(rule:format(value))
        assert(code ~= 0, rule:format(value) .. "\n" .. out)
        has(out, "p.lua:2: ")
        has(out, 'a time as "5m", "1h30m" or seconds, not ')
      end
    end
  end)
end)
