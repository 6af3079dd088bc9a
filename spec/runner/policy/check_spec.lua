-- policy check: what is found wrong with a policy, where, and with which code it ends.

local place = require "place"
local support = require "support"
local ends, has, lacks, sh = place.ends, place.has, place.lacks, place.must_sh

local dir

place.with_directory(function(made) dir = made end)

-- What `policy check` prints of a policy with these keys, which begin on its second line.
local function checked(code, keys, more)
  support.write(dir .. "/p.lua", "return { api = 1,\n" .. keys .. "\n}\n")
  return ends(code, "policy check p.lua " .. (more or ""))
end

local function is_clean(keys, more) assert.are.equal("", (checked(0, keys, more))) end

describe("policy check", function()
  it("says nothing of the shipped policies but what they count on, and has code 0", function()
    for _, name in ipairs { "default", "adaptdl", "markers", "retention", "excludes" } do
      local text, said = ends(0, "policy check " .. name)
      assert.are.equal("", text)
      has(said, "nothing is wrong with " .. name)
    end
    for _, name in ipairs { "ray_tune", "sync_thresholds" } do
      local text = ends(0, "policy check " .. name)
      has(text, ": note: it counts on results with \"training_iteration\"")
      lacks(text, "warning")
    end
  end)

  describe("of must tells a smallest list that keep breaks it with:", function()
    for what, row in pairs {
      ["a count"] = {
        "keep = keep.last(2),\nmust = { survives.last(2), never_fewer_than(3) }",
        "p.lua:3:28: error: `keep` breaks never_fewer_than(3) with 3 checkpoints: of c1, c2, c3 it "
          .. "leaves c2, c3: of 3 only 2 would be left\n",
      },
      ["a number that only a function counts to"] = {
        "keep = keep.last(3),\nmust = function(before, after)"
          .. ' return #before < 20 or #after >= 5, "of twenty, five" end',
        "p.lua:3:8: error: `keep` breaks its function with 20 checkpoints: of c1 ",
      },
      ["a number of checkpoints that come one each hour"] = {
        "keep = keep.daily(7),\nmust = function(old, left) return #old < 10 or #left >= 5 end",
        "p.lua:3:8: error: `keep` breaks its function with 10 checkpoints: of c1 ",
      },
      ["what two rules keep together"] = {
        'keep = any { keep.last(12), keep.best("loss", 11, "min") },\n'
          .. "must = function(before, after)"
          .. ' return #after ~= 4 * 5 + 3 or #before == #after, "not so many" end',
        "p.lua:3:8: error: `keep` breaks its function with 24 checkpoints: of c1 ",
      },
      ["a wrong mode"] = {
        'keep = any { keep.last(1), keep.best("loss", 1, "max") },\n'
          .. 'must = survives.best("loss", "min")',
        'p.lua:3:8: error: `keep` breaks survives.best("loss", "min") with 2 checkpoints: of '
          .. "c1 (loss = 0), c2 (loss = 1) it leaves c2: c1 would not be left",
      },
      ["a step below a time"] = {
        'keep = all { keep.within "30d", keep.every_steps(50) },\nmust = survives.every_steps(50)',
        "p.lua:3:8: error: `keep` breaks survives.every_steps(50) with 2 checkpoints: of c1 (step "
          .. "50, 2592001 s old), c2 (",
      },
      ["a function of must"] = {
        "keep = keep.last(12),\nmust = function(before, after) return #before == #after, 'no' end",
        "p.lua:3:8: error: `keep` breaks its function with 13 checkpoints: of c1 (",
      },
      ["a function of keep"] = {
        "keep = function(list)\n  if #list == 0 then return {} end\n"
          .. "  return { list[#list].step == 7 and list[1] or list[#list] }\nend,\n"
          .. "must = survives.last(1)",
        "p.lua:6:8: error: `keep` breaks survives.last(1) with 2 checkpoints: of c1 (",
      },
      ["a function of keep, and a size that is spelt"] = {
        "keep = function(list)\n  if #list > 1 and list[1].bytes == size '20GB' then "
          .. "return { list[1] } end\nend,\nmust = survives.last(1)",
        "p.lua:5:8: error: `keep` breaks survives.last(1) with 2 checkpoints: of c1 (2e+10 bytes)",
      },
      ["a function in a long file"] = { -- the numbers in it are looked for, however long it is
        "keep = function(list) return { list[1] } end,\n" .. ("-- a remark\n"):rep(400)
          .. "must = survives.last(1)",
        "error: `keep` breaks survives.last(1) with 2 checkpoints: of c1, c2 it leaves c1",
      },
    } do
      it(what, function() has(checked(2, row[1]), row[2]) end)
    end

    it("none, where there is none", function()
      is_clean('keep = any { keep.last(2), keep.best("loss", 1, "min") },\n'
        .. 'must = { never_fewer_than(2), survives.best("loss", "min"), survives.last(2) }')
      is_clean("keep = keep.last(3),\nmust = function(before, after) return #after <= #before end")
    end)
  end)

  describe("has code 2, with the place, for", function()
    for what, row in pairs {
      ["a text that is no Lua"] = { "keep = keep.last(3", "p.lua:3: error: ')' expected" },
      ["a key that there is none"] = { "\nkep = keep.last(3)", "p.lua:3:1: error: unknown key" },
      ["a word that there is none"] = { "keep = kep.last(1)", "p.lua:2:8: error: nothing is" },
      ["a rule that there is none"] = { "keep = keep.lasst(1)", "p.lua:2:13: error: keep has no" },
      ["a wrong glob"] = { 'unit = "a{stp}/"', "p.lua:2:1: error: unit" },
      ["a field of the event that there is none"] = {
        "sync = function(e)\n  return e.chekpoint == nil\nend",
        'p.lua:3:12: error: e has no "chekpoint" (did you mean "checkpoint"?)\n',
      },
      ["a field of its checkpoint"] = {
        "sync = function(e) if e.event == 'end' then return e.checkpoint.stpe == 3 end end",
        'p.lua:2:65: error: e.checkpoint has no "stpe" (did you mean "step"?)\n',
      },
      ["a field of an item of the list"] = {
        "keep = function(list) return { list[1].nmae } end",
        'error: a checkpoint of the list has no "nmae" (did you mean "name"?)\n',
      },
      ["a function that fails for some facts"] = {
        "sync = function(e) return e.result.loss < 1 end",
        "p.lua:2:29: error: attempt to index field 'result' (a nil value) (sync at the event "
          .. "complete, of the first checkpoint of a job that reports nothing)\n",
      },
      ["a number that was not reported"] = {
        "sync = function(e) return e.result and e.result.loss < 1 end",
        "attempt to compare nil with number (sync at the event complete, where other numbers are "
          .. "reported than it asks for)\n",
      },
      ["an answer that is none"] = {
        "queue = function() return 'oldest' end", "p.lua:2:1: error: p: `queue` returned",
      },
      ["what is to be left out, and is no glob"] = {
        "exclude = { '*.log',\n function(e) return e.checkpoint.step end }",
        "error: p: `exclude` returned 1000: globs of 1 to 255 bytes",
      },
      ["a glob to be left out that leads out of the checkpoint"] = {
        "exclude = function() return { '*.log', '../../x' } end",
        'p.lua:2:1: error: `exclude` returned a glob that a run does not take: pattern "../../x": '
          .. '"." and ".." cannot be matched',
      },
      ["a glob for all that leads out of the directory"] = {
        "exclude = { '*.log', '../../x' }", 'p.lua:2:1: error: exclude: pattern "../../x"',
      },
      ["one that never ends"] = {
        "on_failed = function() while true do end end", "p.lua:2: error: it ran too long",
      },
      ["memory that cannot be kept"] = {
        "sync = function(_, memory) memory.f = ipairs return true end",
        "error: memory.user.p.f is a function",
      },
      ["a wrong time to ask again"] = {
        "ready = function() return false, 'no', 'soon' end", "says to ask again in \"soon\"",
      },
    } do
      it(what, function() has((checked(2, row[1])), row[2]) end)
    end
  end)

  it("goes on behind a field that there is none, and names each once", function()
    local text = checked(2, [[
      sync = function(e)
        local a, b = e.chekpoint, e.resut
        return a == b, e.chekpoint
      end]])
    assert.are.equal(3, select(2, text:gsub(": error: ", "")))
    has(text, 'e has no "resut" (did you mean "result"?)')
  end)

  it("names a fault once, though it is there at each event", function()
    local text = checked(2, "sync = function(e) return e.result.loss < 1 end")
    assert.are.equal(1, select(2, text:gsub("attempt to index", "")))
  end)

  it("sees what is done in office hours, at night and on Sundays, whenever it is run", function()
    for _, when in ipairs { "hour >= 8 and t.hour < 18", "hour < 6", "hour >= 20", "weekday <= 5",
      "weekday == 6", "weekday == 7" } do
      has((checked(2, "sync = function(e)\n  local t = e.localtime\n  if t." .. when
        .. " then return e.chekpoint ~= nil end\n  return true\nend")), "p.lua:4:")
    end
  end)

  it("tries numbers that are none, as a job reports them when its training diverges", function()
    local text = checked(2, [[
      sync = function(e, memory)
        memory.loss = e.checkpoint.metrics and e.checkpoint.metrics.loss
        return true
      end,
      keep = function(list)
        local by = {}
        for _, c in ipairs(list) do by[c.metrics and c.metrics.loss or 0] = c end
        return list
      end]])
    has(text, "(sync at the event complete, where its numbers are NaN)")
    has(text, "p.lua:8: error: table index is NaN (keep, where its numbers are NaN)")
  end)

  it("is content with a function that asks before it counts on a fact", function()
    is_clean [[
      sync = any { when.at_most_every "10m", function(e, memory)
        memory.n = (memory.n or 0) + 1
        local m = e.checkpoint.metrics
        return e.checkpoint.step and m and (m.loss or 9) < memory.n or e.event == "end"
      end },
      keep = function(list)
        local chosen = {}
        for _, c in ipairs(list) do
          if not c.metrics or (c.metrics.loss or 0) < 1 then chosen[#chosen + 1] = c end
        end
        return chosen
      end,
      on_error = function(e) return "retry", e.error.tries end,
      on_preempt = function(e) return e.grace > 5 and "all" or "newest" end,
      on_committed = function(e, memory) memory.last = e.checkpoint.name end]]
  end)

  describe("warns, with code 0, of", function()
    for what, row in pairs {
      ["a keep rule that changes nothing"] = {
        "keep = any { keep.last(3),\n  keep.last(5) }", "p.lua:2:14: warning: keep.last changes",
      },
      ["a sync rule that changes nothing"] = {
        "sync = any { when.each_checkpoint(), when.bytes '1GiB' }",
        "p.lua:2:38: warning: when.bytes changes nothing",
      },
      ["steps that each checkpoint has"] = {
        "sync = any { when.each_checkpoint(), when.every_steps(500) }",
        "p.lua:2:38: warning: when.every_steps changes nothing",
      },
      ["a rule below another"] = {
        "keep = any { keep.last(3), all { keep.last(2), keep.every_steps(10) } }", "warning: all ",
      },
      ["a key that another one overrules"] = {
        "keep = keep.last(2),\nwould_keep = keep.last(1)", "p.lua:3:1: warning: `keep` decides",
      },
      ["a no by the clock that is never asked again"] = {
        "sync = function(e)\n  local t = e.localtime\n  return t.hour > 24 or e.event == 'end' or "
          .. "e.event == 'preempt'\nend",
        "p.lua:3: warning: it looks at the clock, and says no",
      },
      ["a no at the end"] = {
        "sync = function() return false end", "p.lua:2:1: warning: `sync` says no at the end",
      },
      ["a `ready` that says no at the end"] = {
        "ready = function() return false end", "p.lua:2:1: warning: `ready` says no at the end",
      },
      ["an answer that leaves out whatever a checkpoint has"] = {
        "exclude = function(e)\n if e.event == 'end' then return { 'a', '**' } end end",
        'p.lua:2:1: warning: `exclude` returned "**", which leaves nothing of a checkpoint',
      },
      ["a glob that leaves out whatever there is"] = {
        "exclude = { '*.log',\n  '*' }", 'p.lua:3:4: warning: "*" leaves out whatever there is',
      },
      ["a number that no source gives"] = {
        'metrics = from.name { key = "loss", after = "loss=" },\nkeep = keep.best("los", 1, "min")',
        "p.lua:3:19: warning: nothing in `metrics` gives \"los\"",
      },
    } do
      it(what, function() has((checked(0, row[1])), row[2]) end)
    end
  end)

  it("finds nothing wrong with what the guide shows", function()
    for block in support.read("docs/policies.md"):gmatch "\n```lua\n(.-)\n```" do
      if not block:find "^return" and not block:find "\nreturn" then
        block = "return { api = 1,\n" .. block .. "\n}"
      end
      support.write(dir .. "/g.lua", block)
      local text = ends(0, "policy check g.lua")
      lacks(text, "error: ")
      lacks(text, "warning: ")
    end
  end)

  it("is content with what is left out where something stays", function()
    is_clean [[exclude = { "*.log", "checkpoint-*/tmp", "?*.pt",
      function(e) return { "*.pt", "checkpoint-1000/optim*", "*/sub/*", "rank_[0-9]*" } end }]]
  end)

  it("warns of no rule that matters", function()
    is_clean [[keep = any { keep.last(3), keep.best("loss", 2, "min"), keep.every_steps(5000),
      keep.daily(7), keep.weekly(4), all { keep.within "30d", keep.every_steps(1000) } },
      sync = any { when.at_most_every "10m", when.metric_improved("loss", "min"),
        when.every_steps(5000) }]]
    is_clean [[keep = any { keep.hourly(24), keep.daily(30), keep.monthly(12), keep.yearly(2) },
      sync = all { when.hours("22:00", "06:00"), when.seconds "1h", none { when.bytes "1GiB" } }]]
    is_clean [[keep = any { keep.budget "20GB", keep.last(2), keep.best("loss", 1, "min") }]]
  end)

  it("takes a time that is named for an answer to the clock", function()
    is_clean [[sync = function(e)
      if e.event == "end" or e.event == "preempt" then return true end
      if e.localtime.hour < 24 then return false, "office hours", "10m" end
      return true
    end]]
  end)

  it("holds it against a directory: units, markers, numbers", function()
    sh [[mkdir -p out/checkpoint-1 out/checkpoint-2
      echo '{"log_history": [{"step": 1, "eval_loss": 2}], "global_step": 1}' \
        >out/checkpoint-1/trainer_state.json]]
    local keys = [[
      unit = { "chekpoint-{step}/", "checkpoint-{step}/" },
      complete = done.marker("DONE"),
      keep = keep.best("eval_los", 1, "min")]]
    local text = checked(0, keys, "--dir out")
    has(text, 'p.lua:2:17: note: no name in out is a unit by "chekpoint-{step}/"')
    has(text, 'p.lua:3:31: warning: no checkpoint in out has the file "DONE"')
    has(text, 'warning: no checkpoint in out has "eval_los" (they have eval_loss, step)')
    sh "touch out/checkpoint-2/DONE"
    text = checked(0, 'unit = "checkpoint-{step}/", complete = done.marker("DONE"), ' ..
      'keep = keep.best("eval_loss", 1, "min")', "--dir out")
    assert.are.equal("", text)
    text = checked(0, 'unit = "ckpt-{step}/"', "--dir out")
    has(text, 'warning: nothing in out is a checkpoint by `unit`; there are "checkpoint-1/", ')
    ends(4, "policy check p.lua --dir nowhere")
  end)

  it("takes settings, and refuses wrong ones", function()
    support.write(dir .. "/o.lua", [[
      local set = options { n = { type = "integer", default = 1, min = 1 } }
      return { api = 1, keep = keep.last(set.n) }]])
    ends(0, "policy check o.lua -o n=3")
    has((ends(2, "policy check o.lua -o n=0")), 'option "n" of o: at least 1, not 0')
  end)

  it("has code 2 for a file that is not there, and names the shipped ones", function()
    local _, said = ends(2, "policy check nobody")
    has(said, "which has adaptdl default")
    has(select(2, ends(2, "policy check ./none.lua")), "there is no policy file")
  end)

  it("prints one object for each finding with --json", function()
    support.write(dir .. "/p.lua", "return { api = 1,\nsync = function(e) return e.x end }\n")
    local list = place.objects((ends(2, "policy check p.lua --json")))
    assert.same({ level = "error", topic = "field", file = "p.lua", line = 2, column = 29,
      text = 'e has no "x"' }, list[1])
  end)

  it("takes less than a second of processor time with functions at every hook", function()
    support.write(dir .. "/p.lua", [[
      local function yes() return true end
      return { api = 1, ready = yes, sync = any { when.at_most_every "1m", yes },
        queue = function() return "all" end, keep = function(list) return list end,
        keep_local = function(list) return list end, restore = function(list) return list end,
        on_error = function() return "skip" end, on_preempt = function() return "all" end,
        on_committed = function() end, on_failed = function() end }]])
    local took = sh(("bash -c \"TIMEFORMAT='%%U %%S'; time '%s' policy check p.lua\" 2>&1|tail -1")
      :format(support.runner))
    local user, system = took:match "^([%d.]+) ([%d.]+)"
    assert.is_true(support.sanitized or tonumber(user) + tonumber(system) < 1, took)
  end)
end)
