-- ckpt.testing: a policy under test, asked with few words.

local support = require "support"
local ckpt = require "ckpt"
local testing = ckpt.testing

local function made(t, name)
  return { t = t, event = "checkpoint", checkpoint = { name = name } }
end

describe("a policy under test", function()
  local dir
  support.with_directory(function(directory) dir = directory end)
  before_each(function() testing.runner.path = support.runner end)

  local function policy(keys, settings)
    local text = keys:find "api =" and keys or "return { api = 1, " .. keys .. " }"
    support.write(dir .. "/p.lua", text)
    return testing.policy(dir .. "/p.lua", settings)
  end

  it("is asked about a first checkpoint, but for what the test says", function()
    local seen = policy [[ready = function(e, memory)
      memory.e = e
      return true, e.event .. " of " .. e.checkpoint.name
    end]]
    assert.same({ true, "complete of checkpoint-1" }, { seen:ready() })
    local e = seen.memory.user.p.e
    assert.same({ 0, 1, 0, false, "" },
      { e.results, e.since.checkpoints, e.store.commits, e.queue.running, e.group })
    assert.is_nil(e.since.seconds) -- nothing was saved yet
    assert.equal("result of checkpoint-9",
      select(2, seen:ready { event = "result", checkpoint = { step = 9 } }))
    assert.equal("complete of last", select(2, seen:ready { checkpoint = { name = "last" } }))
  end)

  it("says yes, no, or nothing, why, and when to ask again", function()
    local every = policy "sync = when.at_most_every('10m')"
    assert.is_true((every:sync { since = { seconds = 600 } }))
    local yes, reason = every:sync { since = { seconds = 590 } }
    assert.is_false(yes)
    assert.is_truthy(reason:find "590")
    assert.equal(10, every.again)
    assert.is_nil((every:keep(3)))
    assert.is_nil((policy("keep = keep.last(1)"):sync()))
  end)

  it("says what one checkpoint is saved without, and why", function()
    local now_and_then = policy [[exclude = { "*.log", function(e)
      if e.checkpoint.step % 10 ~= 0 then return "optim*", "no tenth" end
    end }]]
    local globs, reason = now_and_then:exclude { checkpoint = { step = 7 } }
    assert.same({ { "optim*" }, "no tenth" }, { globs, reason })
    assert.is_nil((now_and_then:exclude { checkpoint = { step = 10 } }))
    local whole = policy [[keep = function(list)
      for _, c in ipairs(list) do
        if not c.left_out then return { c } end
      end
    end]]
    assert.same({ "checkpoint-2" }, (whole:keep { { left_out = 1 }, {}, { left_out = 2 } }))
  end)

  it("goes by the clock of the test", function()
    local clock = testing.clock(1704067200 + 3 * 3600) -- a Monday, 3 o'clock
    local at_night = policy "sync = when.hours('22:00', '06:00')"
    assert.is_true((at_night:sync()))
    clock:advance(4 * 3600)
    assert.is_false((at_night:sync()))
    clock:restore()
    assert.equal(7, testing.event({ now = 1704067200 - 1 }).localtime.weekday)
  end)

  it("remembers from question to question", function()
    local best = policy "sync = when.metric_improved('loss', 'min')"
    local function ask(step, loss)
      return (best:sync { checkpoint = { step = step, metrics = { loss = loss } } })
    end
    assert.same({ true, false, true }, { ask(1, 2), ask(2, 3), ask(3, 1) })
  end)

  it("keeps of a list what it wants, with the reasons, and its options", function()
    local last = policy([[
      local set = options { n = { type = "integer", default = 1 } }
      return { api = 1, keep = keep.last(set.n), restore = keep.last(1) }]], { n = 2 })
    local names, reasons = last:keep { { step = 10 }, { step = 20, bytes = 5 }, { name = "x" } }
    assert.same({ "checkpoint-20", "x" }, names)
    assert.equal("older than the last 2", reasons["checkpoint-10"])
    assert.same({ "checkpoint-3" }, (last:keep(3, "restore")))
  end)

  it("judges lists of any length that a run has", function()
    local best = policy "keep = any { keep.last(3), keep.best('loss', 5, 'min'), keep.daily(7) }"
    local list = {}
    for i = 1, 10000 do list[i] = { metrics = { loss = i * 7919 % 10007 } } end
    local names, reasons = best:keep(list)
    assert.equal("checkpoint-10000", names[#names])
    assert.is_true(#names > 8 and #names < 20)
    assert.is_string(reasons["checkpoint-5000"])
    assert.same({}, (best:keep(0)))
    local rows = best:ask("keep", { list = testing.checkpoints(2), now = 0 })
    assert.same({ true, true }, { rows[1].keep, rows[2].keep })
    assert.error_matches(function() best:keep { { step = 1, bytes = "many" } } end,
      "`bytes` is a string, not a number")
  end)

  it("may be a shipped one, by its name", function()
    local shipped = testing.policy "sync_thresholds"
    assert.is_boolean((shipped:sync()))
    assert.error_matches(function() testing.policy "nobody" end, "no policy is called nobody")
    assert.error_matches(function() testing.policy "no/body.lua" end, "no file no/body.lua")
  end)

  it("is refused as by a run, and what fails in it is an error with its line", function()
    assert.error_matches(function() policy "kep = keep.last(1)" end, "unknown key .*kep.*keep")
    assert.is_truthy(select(2, pcall(policy, "api = ; 2")):find("^p.lua:1: unexpected"))
    assert.error_matches(function() policy("keep = keep.last(1)", { x = 1 }) end, "no policy has")
    assert.error_matches(function() policy "keep\0 = 1" end, "p.lua: it has a byte 0")
    local fails = policy "sync = function(e) return e.result.loss < 1 end"
    assert.is_truthy(select(2, pcall(fails.sync, fails)):find("^p.lua:1: .*result"))
    assert.is_true((fails:sync { result = { loss = 0 } }))
    local endless = policy "sync = function() while true do end end"
    assert.error_matches(function() endless:sync() end, "used up its ")
    local reads = policy "sync = function() return os.time() > 1 end"
    assert.error_matches(function() reads:sync() end, "a policy has no os")
  end)

  it("has the bounds of a run, and is loaded anew when it has failed", function()
    local recursion = policy [[sync = function()
      local function deep() return (("x"):gsub(".", deep)) end
      return deep() == "x"
    end]]
    assert.error_matches(function() recursion:sync() end, "gsub calls itself too often")
    local hoards = policy "sync = function() local t = {} while true do t[#t + 1] = {} end end"
    assert.is_truthy(select(2, pcall(hoards.sync, hoards)):find("^p.lua: it holds more memory"))
    local slow = policy [[sync = function()
      return (("a"):rep(30000)):find(("a-"):rep(20) .. "b") == nil
    end]]
    assert.error_matches(function() slow:sync() end, "this pattern .* may take too long")
    local counts = policy [[local n = 0
      return { api = 1, sync = function(e)
        n = n + 1
        return e.result.loss < 1, n
      end }]]
    local function reason() return select(2, counts:sync { result = { loss = 2 } }) end
    assert.same({ "1", "2" }, { reason(), reason() })
    assert.has_error(function() counts:sync() end)
    assert.equal("1", reason())
  end)

  it("may be one of very many", function()
    local many = {}
    for i = 1, 70 do
      many[i] = policy(("sync = function(e, m) m.n = (m.n or 0) + 1 return true, m.n + %d end")
        :format(i))
    end
    for round = 1, 2 do
      for i = 1, 70 do assert.equal(tostring(i + round), select(2, many[i]:sync())) end
    end
  end)

  it("sees each number as it is, and what is none where a job reports it", function()
    local seen = policy [[sync = function(e, memory)
      local m = e.checkpoint.metrics
      memory.exact = m.third == 1 / 3 and e.checkpoint.bytes == 2 ^ 52 + 1
      return m.nan ~= m.nan and m.inf == math.huge and e.result.low == -math.huge
    end, keep = keep.best("loss", 1, "min")]]
    assert.is_true((seen:sync { result = { low = -math.huge }, checkpoint = { bytes = 2 ^ 52 + 1,
      metrics = { nan = 0 / 0, inf = math.huge, third = 1 / 3 } } }))
    assert.is_true(seen.memory.user.p.exact)
    assert.same({ "checkpoint-2", "checkpoint-3" }, (seen:keep { { metrics = { loss = 0 / 0 } },
      { metrics = { loss = 1 } }, { metrics = { loss = math.huge } } }))
    assert.error_matches(function() seen:sync { since = { seconds = math.huge } } end,
      "seconds is inf: only metrics and results")
    assert.error_matches(function() seen:sync { result = { low = { deep = 0 / 0 } } } end,
      "deep is %-?nan: only metrics and results can be that, and no tables in them")
    assert.error_matches(function() seen:sync { result = { f = print } } end,
      "a function cannot be put into JSON")
  end)

  it("is handed what the test puts into its memory", function()
    local counts = policy "sync = function(e, m) m.n = (m.n or 0) + 1 return true, m.n end"
    counts:sync()
    assert.same({ user = { p = { n = 1 } } }, counts.memory)
    counts.memory = { user = { p = { n = 41 } } }
    assert.equal("42", select(2, counts:sync()))
    counts.memory = {}
    assert.equal("1", select(2, counts:sync()))
  end)

  it("says each of its warnings once", function()
    local warns = policy [[sync = any { when.metric_improved("loss", "min"), function(e)
      return e.result.x
    end }]]
    warns:sync { result = {} }
    pcall(warns.sync, warns)
    warns:sync { result = {} }
    assert.equal(1, #warns.warnings)
    assert.is_truthy(warns.warnings[1]:find "no metric at all")
  end)

  it("is not asked about facts that there are none of", function()
    local any = policy "sync = when.each_checkpoint(), keep = keep.last(1)"
    assert.error_matches(function() any:sync { chekpoint = {} } end, "there is no chekpoint")
    assert.error_matches(function() any:keep { { loss = 1 } } end, "there is no loss")
    assert.error_matches(function() any:keep "3" end, "a list of tables or a number")
  end)

  it("sees how a store fails, and the run does what it says", function()
    policy [[keep = keep.last(1),
      on_error = function(e, memory)
        memory.codes = (memory.codes or "") .. e.error.code .. e.error.tries .. " "
        if e.error.code == "NOSPACE" then return "retry", "10m", memory.codes end
        if e.error.code == "ACCESS" then return "abort" end
      end,
      on_failed = function(e, memory) memory.failed = e.error.code .. " " .. e.error.class end,
      sync = function(_, memory) return true, (memory.codes or "") .. (memory.failed or "") end]]
    local function run(transfer, ...)
      return testing.simulate(dir .. "/p.lua",
        { { event = "start", transfer = transfer }, made(1, "c-1"), ... })
    end
    local works = { t = 700, event = "result", transfer = { outcome = "ok" } }
    local full = run({ seconds = 1, error = "NOSPACE" }, made(50, "c-2"), works, made(2000, "c-3"))
    assert.same({ { "c-1", "c-2", "c-2" }, { "c-2", "c-3" } }, { full.failed, full.saved })
    assert.same({ "retry 600", "retry 600", "retry 600" }, full.remedies)
    assert.equal("NOSPACE1 NOSPACE1 NOSPACE2 ", full.rows[5].reason)
    local refused = run({ seconds = 1, error = "ACCESS" }, made(1.5, "c-2"), made(9, "c-3"), works,
      made(800, "c-4"))
    assert.same({ { "c-1" }, { "abort" }, {}, { "c-2" } },
      { refused.failed, refused.remedies, refused.saved, refused.let_go })
    assert.equal("after an error the policy wanted nothing saved any more", refused.rows[6].reason)
    local fenced = run({ seconds = 1, error = "FENCED" }, made(1, "c-2"), works,
      { t = 750, event = "crash" }, made(800, "c-4"))
    assert.same({ { "c-1" }, { "abort" }, { "c-4" }, 2 },
      { fenced.failed, fenced.remedies, fenced.saved, fenced.sum.unsaved })
    local broken = run({ seconds = 5, error = "IO" }, { t = 7, event = "result",
      transfer = { outcome = "ok" } })
    assert.same({ { "c-1" }, { "retry 1" }, { "c-1" } },
      { broken.failed, broken.remedies, broken.saved })
    assert.equal("skip", run({ error = "CORRUPT" }).remedies[1])
    assert.equal("retry 1", run({ outcome = "fail" }).remedies[1])
    local wrongs = { { error = "ENOSPC" }, { error = 5 }, { outcome = "ok", error = "IO" } }
    for _, wrong in ipairs(wrongs) do
      assert.error_matches(function() run(wrong) end, "is to be the code of an error")
    end
  end)

  it("plays a history, with saves that take their time and fail", function()
    policy "on_error = function() return 'skip' end"
    local file = dir .. "/p.lua"
    local run = testing.simulate(file, {
      { event = "start", transfer = { seconds = 10 } },
      made(1, "c-1"), made(2, "c-2"), made(3, "c-3"),
      { t = 40, event = "result", transfer = { outcome = "fail" } }, made(50, "c-4"),
    })
    assert.same({ { "c-1", "c-3" }, { "c-2" }, { "c-4" } }, { run.saved, run.let_go, run.failed })
    assert.equal(1, run.sum.failures)
    assert.equal("sync", run.rows[2].decision)
    assert.same({ "skip" }, run.remedies)
    -- A record is a history, too.
    support.write(dir .. "/r.jsonl", '{"event":"checkpoint","checkpoint":{"name":"a"}}\n')
    assert.same({ "a" }, testing.simulate("retention", dir .. "/r.jsonl",
      { settings = { last = 1 }, args = "--bandwidth 1GiB/s" }).saved)
    assert.error_matches(function() testing.simulate(file, { { event = "x" } }) end, "is to be")
  end)
end)
