local library = require "policy.rules"
local event = library.event

--- What `sync = RULE` answers to an event.
local function judge(rule, more, memory)
  local M = library.keys("sync = " .. rule)
  local answer, reason, by, kept, warnings = M.ask("sync", event(more), memory)
  return answer, reason, by, kept, warnings
end

local function since(t) return { since = t, results = 100 } end

describe("when", function()
  it("takes each checkpoint", function()
    local answer, reason, by = judge "when.each_checkpoint()"
    assert.same({ "sync", "each checkpoint", "mine" }, { answer, reason, by })
  end)

  for _, row in ipairs {
    { "when.iterations(3)", { results = 2 }, "skip", "2 of 3 results since the last save" },
    { "when.iterations(3)", { results = 3 }, "sync" },
    { "when.iterations(0)", {}, "sync" },
    { "when.seconds(10)", { seconds = 9.9 }, "skip", "9.9 of 10 s since the last save" },
    { "when.seconds '10s'", { seconds = 10 }, "sync" },
    { "when.at_most_every '5m'", { seconds = 299 }, "skip", "299.0 of 300 s since the last save" },
    { "when.at_most_every '5m'", { seconds = 300 }, "sync" },
    { "when.at_most_every '5m'", {}, "sync", "nothing was saved yet" },
    { "when.bytes '1KiB'", { bytes = 1023 }, "skip", "1023 bytes of 1.0 KiB since the last save" },
    { "when.bytes(1024)", { bytes = 1024 }, "sync" },
  } do
    it(("%s says %s"):format(row[1], row[3]), function()
      local answer, reason = judge(row[1], since(row[2]))
      assert.equal(row[3], answer)
      if row[4] then assert.equal(row[4], reason) end
    end)
  end

  it("takes each so many steps, and one that has none", function()
    local function of(step, rule, how)
      local asked = { checkpoint = { step = step }, event = how }
      return (judge(rule or "when.every_steps(500)", asked))
    end
    assert.same({ "sync", "skip", "sync", "skip" }, { of(1000), of(999), of(0), of(501) })
    assert.equal("sync", (judge("when.every_steps(500)", { checkpoint = {} })))
    assert.same({ "skip", "sync" }, { of(1000, "none { when.every_steps(500) }"),
      of(999, "none { when.every_steps(500) }") })
    assert.same({ "sync", "sync" }, { of(999, nil, "end"), of(999, nil, "preempt") })
    local _, reason = judge("when.every_steps(500)", { checkpoint = { step = 7 } })
    assert.equal("its step is no multiple of 500", reason)
  end)

  it("counts the time of training while nothing was saved", function()
    assert.equal("skip", (judge("when.seconds(10)", { result = { time_total_s = 9 } })))
    assert.equal("sync", (judge("when.seconds(10)", { result = { time_total_s = 10 } })))
  end)

  it("saves where there is nothing to judge by", function()
    local answer, reason = judge("when.iterations(3)", { since = { results = 0 }, results = 0 })
    assert.same({ "sync", "no result was reported to count iterations by" }, { answer, reason })
    assert.equal("sync", (judge "when.seconds(10)"))
    assert.equal("sync", (judge("when.bytes(10)", { since = {} })))
    assert.equal("skip", (judge("none { when.bytes(10) }", { since = { bytes = 11 } })))
    assert.equal("sync", (judge("none { when.bytes(10) }", { since = {} })))
  end)

  it("lets no threshold stand in the way when the job ends", function()
    for _, rule in ipairs {
      "when.iterations(9)",
      "when.seconds(9)",
      "when.at_most_every(9)",
      "when.bytes(9)",
      "when.node_sync { min_iter = 9, min_time_s = 9 }",
    } do
      for _, how in ipairs { "end", "preempt" } do
        local few = { event = how, results = 1, since = { results = 0, seconds = 0, bytes = 0 } }
        assert.equal("sync", (judge(rule, few)), rule)
        assert.equal("sync", (judge("all { when.each_checkpoint(), " .. rule .. " }", few)), rule)
        assert.equal("sync", (judge("none { " .. rule .. " }", few)), rule)
        few.event = "complete"
        assert.equal("skip", (judge(rule, few)), rule)
      end
    end
  end)

  it("survives an event with nothing in it", function()
    for _, rule in ipairs {
      "when.iterations(9)",
      "when.seconds(9)",
      "when.at_most_every(9)",
      "when.bytes(9)",
      "when.node_sync {}",
      "when.metric_improved('loss', 'min')",
    } do
      local M = library.keys("sync = " .. rule)
      assert.truthy(M.ask("sync", {}))
      assert.truthy(M.ask("sync", { since = 1, result = "x", checkpoint = false, results = "y" }))
    end
  end)

  it("refuses arguments that are none", function()
    for _, rule in ipairs {
      "when.iterations()",
      "when.iterations(1.5)",
      "when.iterations(-1)",
      "when.iterations('2')",
      "when.iterations(0/0)",
      "when.seconds(-1)",
      "when.seconds('5 parsecs')",
      "when.seconds(0/0)",
      "when.bytes('1X')",
      "when.bytes('10M')",
      "when.metric_improved()",
      "when.metric_improved('loss')",
      "when.metric_improved('', 'min')",
      "when.node_sync()",
      "when.node_sync { perod = 1 }",
      "when.node_sync { min_iter = 'x' }",
      "when.node_sync { on_checkpoint = 1 }",
    } do
      local kind, text = library.refusal("return { api = 1,\n sync = " .. rule .. "\n}")
      assert.equal("syntax", kind)
      assert.truthy(text:find("^mine%.lua:2: "), text)
    end
  end)
end)

describe("time", function()
  local function again(keys, more, memory)
    local M = library.keys(keys)
    local answer, reason, _, _, _, seconds = M.ask("sync", event(more), memory)
    return seconds, answer, reason
  end

  local function at(hour, minute, change, offset)
    local t = { hour = hour, minute = minute, second = 0, offset = offset or 3600, change = change }
    return { localtime = t, now = 1700000000 }
  end

  it("tells when a rule may say otherwise", function()
    assert.equal(60, (again("sync = when.at_most_every '5m'", since { seconds = 240 })))
    assert.equal(4, (again("sync = when.seconds(10)", since { seconds = 6 })))
    local reported = { since = { seconds = 100 }, result = { training_iteration = 2 } }
    assert.equal(200, (again("sync = when.node_sync {}", reported)))
    assert.is_nil((again("sync = when.at_most_every '5m'", since { seconds = 300 })))
    assert.is_nil((again("sync = when.iterations(3)", since { results = 1 })))
    assert.is_nil((again "sync = when.each_checkpoint()"))
  end)

  it("takes the first that changes, in whatever combination", function()
    local both = "{ when.at_most_every '5m', when.seconds '4m' }"
    for _, op in ipairs { "any", "all", "none" } do
      assert.equal(140, (again("sync = " .. op .. both, since { seconds = 100 })))
    end
  end)

  it("does not count the time of training, which only results bring", function()
    local few = { result = { time_total_s = 5 }, since = { results = 0 } }
    assert.is_nil((again("sync = when.seconds(10)", few)))
  end)

  it("lets a function say it, and no sooner than in a second", function()
    assert.equal(600, (again "sync = function() return false, 'no', '10m' end"))
    assert.equal(1, (again "sync = function() return false, 'no', 0 end"))
    local inside = "sync = all { when.at_most_every '5m', function() return false, nil, 7 end }"
    assert.equal(7, (again(inside, since { seconds = 1 })))
    local M = library.keys "sync = function() return false, 'no', 'soon' end"
    local ok, why = pcall(M.ask, "sync", event())
    assert.is_false(ok)
    assert.equal('mine: `sync` says to ask again in "soon": a time as "10m", or seconds', why.text)
  end)

  for _, row in ipairs {
    { "22:00", "06:00", at(21, 59), "skip", 60 },
    { "22:00", "06:00", at(22, 0), "sync", 28800 },
    { "22:00", "06:00", at(5, 59), "sync", 60 },
    { "22:00", "06:00", at(6, 0), "skip", 57600 },
    { "9:00", "17:30", at(9, 0), "sync", 30600 },
    { "9:00", "17:30", at(17, 30), "skip", 55800 },
    { "18:00", "24:00", at(23, 59), "sync", 60 },
    { "00:00", "6:00", at(23, 59), "skip", 60 },
    -- Summer time begins in two hours, at 02:00: the night is an hour shorter.
    { "03:00", "06:00", at(0, 0, { after = 7200, offset = 7200 }), "skip", 7200 },
    { "04:00", "06:00", at(0, 0, { after = 7200, offset = 7200 }), "skip", 10800 },
    { "02:30", "06:00", at(0, 0, { after = 7200, offset = 7200 }), "skip", 7200 },
    { "22:00", "06:00", at(23, 0, { after = 10800, offset = 7200 }), "sync", 21600 },
    -- It ends in three hours, at 03:00, when the clock shows 02:00 again.
    { "04:00", "06:00", at(0, 0, { after = 10800, offset = 0 }), "skip", 18000 },
    { "02:30", "06:00", at(0, 0, { after = 10800, offset = 0 }), "skip", 9000 },
    { "22:00", "06:00", at(23, 0, { after = 14400, offset = 0 }), "sync", 28800 },
  } do
    local from, to, now, said, seconds = unpack(row, 1, 5)
    local title = "when.hours(%q, %q) says %s at %02d:%02d, and changes in %d s"
    local t = now.localtime
    it(title:format(from, to, said, t.hour, t.minute, seconds), function()
      local rule = ("sync = when.hours(%q, %q)"):format(from, to)
      local left, answer = again(rule, now)
      assert.same({ said, seconds }, { answer, left })
      -- What it says to `none` is the opposite, at the same time.
      local _, opposite = again(rule:gsub("= ", "= none { ", 1) .. " }", now)
      assert.not_equal(said, opposite)
    end)
  end

  it("never keeps back the last one, and saves where no time is known", function()
    local night = "sync = when.hours('22:00', '06:00')"
    local noon = at(12, 0)
    noon.event = "end"
    assert.same({ nil, "sync", "the job has ended" }, { again(night, noon) })
    assert.equal("sync", select(2, again(night, { localtime = {} })))
    assert.equal("12:00 is not within 22:00 to 06:00", select(3, again(night, at(12, 0))))
  end)

  it("refuses hours that are none", function()
    local wrong = { "", "'22'", "'22:00'", "'22:00', '25:00'", "'9:00', '9:00'", "9, 17" }
    for _, args in ipairs(wrong) do
      local policy = "return { api = 1,\n sync = when.hours(" .. args .. ")\n}"
      local kind, text = library.refusal(policy)
      assert.equal("syntax", kind)
      assert.truthy(text:find("^mine%.lua:2: when%.hours: "), text)
    end
  end)
end)

describe("asked again", function()
  local counts = [[sync = function(e, memory)
    memory.seen = (memory.seen or 0) + 1
    return memory.seen % 2 == 0, "this is " .. memory.seen
  end]]

  it("sees what it saw first, and changes nothing", function()
    local M = library.keys(counts)
    -- The memory comes back as a text in between.
    local function after(memory) return M.copy((select(4, M.ask("sync", event(), memory)))) end
    local first = after {}
    local second = after(M.copy(first))
    local answer, reason, _, changed = M.ask("sync", event(), second, first)
    assert.same({ "sync", "this is 2" }, { answer, reason })
    assert.is_nil(changed)
    answer, reason = M.ask("sync", event(), second, {})
    assert.same({ "skip", "this is 1" }, { answer, reason })
    answer, reason = M.ask("sync", event(), second)
    assert.same({ "skip", "this is 3" }, { answer, reason })
  end)

  it("lets rules remember what they say yes to", function()
    local M = library.keys "sync = when.metric_improved('loss', 'min')"
    local e = event { checkpoint = { name = "a", generation = 0, metrics = { loss = 2 } } }
    local _, _, _, kept = M.ask("sync", e, {}, {})
    e.checkpoint = { name = "b", generation = 0, metrics = { loss = 3 } }
    assert.equal("skip", (M.ask("sync", e, kept)))
  end)
end)

describe("when.metric_improved", function()
  local memory, M

  local function at(name, loss, more)
    local unit = { name = name, generation = 0, metrics = { loss = loss } }
    for k, v in pairs(more or {}) do unit[k] = v end
    local answer, _, _, kept, warnings = M.ask("sync", event { checkpoint = unit }, memory)
    memory = kept or memory
    return answer, warnings
  end

  before_each(function()
    memory = nil
    M = library.keys "sync = when.metric_improved('loss', 'min')"
  end)

  it("takes what is better than all before, by what it remembers", function()
    assert.equal("sync", (at("a", 3)))
    assert.equal("skip", (at("b", 4)))
    assert.equal("skip", (at("c", 3)))
    M = library.keys "sync = when.metric_improved('loss', 'min')" -- the helper was started again
    assert.equal("skip", (at("d", 3.1)))
    assert.equal("sync", (at("e", 2)))
  end)

  it("says the same when it is asked again about the same one", function()
    assert.equal("sync", (at("a", 3)))
    assert.equal("sync", (at("a", 3)))
    assert.equal("skip", (at("a", 3, { generation = 1 })))
  end)

  it("remembers nothing of what is not saved in the end", function()
    M = library.keys "sync = all { when.metric_improved('loss', 'min'), when.iterations(2) }"
    local function with(results, loss)
      local e = event { results = 9, since = { results = results } }
      e.checkpoint = { name = "c" .. loss, generation = 0, metrics = { loss = loss } }
      local answer, _, _, kept = M.ask("sync", e, memory)
      memory = kept or memory
      return answer
    end
    assert.equal("skip", with(1, 2))
    assert.is_nil(memory)
    assert.equal("sync", with(2, 3))
  end)

  it("never takes NaN or infinity for the best", function()
    assert.equal("skip", (at("a", 0 / 0)))
    assert.equal("skip", (at("b", -1 / 0)))
    assert.equal("skip", (at("c", "0.1")))
    assert.equal("sync", (at("d", 5)))
  end)

  it("saves what has no such metric, and warns once with what there is", function()
    local answer, warnings = at("a", nil, { metrics = { los = 1 } })
    assert.equal("sync", answer)
    assert.equal(1, #warnings)
    assert.truthy(warnings[1]:find('only "los"', 1, true), warnings[1])
    answer, warnings = at("b", nil, { metrics = { los = 1 } })
    assert.equal("sync", answer)
    assert.equal(0, #warnings)
  end)

  it("never takes the last result for a number of the checkpoint", function()
    local _, reason = judge("when.metric_improved('loss', 'max')", { result = { loss = 7 } })
    assert.equal("no loss to judge by", reason)
  end)
end)

describe("any, all and none", function()
  it("say yes for one, for each, for no rule that says yes", function()
    local t, f = "when.each_checkpoint()", "none { when.each_checkpoint() }"
    for _, row in ipairs {
      { "any { %t, %f }", "sync" },
      { "any { %f, %f }", "skip" },
      { "all { %t, %t }", "sync" },
      { "all { %t, %f }", "skip" },
      { "none { %f, %f }", "sync" },
      { "none { %f, %t }", "skip" },
      { "any { all { %t, %f }, none { any { %f } } }", "sync" },
      { "none { none { %t } }", "sync" },
    } do
      local rule = row[1]:gsub("%%t", t):gsub("%%f", f)
      assert.equal(row[2], (judge(rule)), row[1])
    end
  end)

  it("take functions, and leave those out that have no opinion", function()
    local yes, no, nothing =
      "function() return true end", "function() return false end", "function() end"
    assert.equal("sync", (judge(("any { %s, %s }"):format(no, yes))))
    assert.equal("skip", (judge(("all { %s, %s }"):format(no, yes))))
    assert.equal("sync", (judge(("all { %s, %s }"):format(nothing, yes))))
    assert.equal("skip", (judge(("any { %s, %s }"):format(nothing, no))))
    assert.is_nil((judge(("any { %s }"):format(nothing))))
    assert.is_nil((judge(("none { %s }"):format(nothing))))
  end)

  it("give the reasons of those that decided", function()
    local few = { results = 9, since = { results = 1, seconds = 5, bytes = 0 } }
    local _, reason = judge("any { when.iterations(2), when.seconds(9) }", few)
    assert.equal("1 of 2 results since the last save, 5.0 of 9 s since the last save", reason)
    _, reason = judge("any { when.iterations(1), when.seconds(9) }", few)
    assert.equal("1 of 1 results since the last save", reason)
  end)

  it("are refused where they make no sense", function()
    for _, rule in ipairs {
      "any {}",
      "any()",
      "any { 1 }",
      "any { 'keep.last' }",
      "any { when.each_checkpoint(), keep.last(1) }",
      "any { x = when.each_checkpoint() }",
      "any { [2] = when.each_checkpoint() }",
      "any(when.each_checkpoint())",
      "all { done.closed(), function() end }",
      "any { any { function() end }, done.closed() }",
      "any { from.notify() }",
      "any { proven 'x/' }",
      "keep.last(1)",
      "'sync'",
      "true",
      "{ when.each_checkpoint() }",
    } do
      assert.equal("syntax", (library.refusal("return { api = 1, sync = " .. rule .. " }")), rule)
    end
  end)
end)

describe("any, of random rules,", function()
  local seed = 7
  local function random(n)
    seed = (seed * 16807) % 2147483647
    return seed % n
  end
  local leaves = {
    "when.iterations(%d)",
    "when.seconds(%d)",
    "when.bytes(%d)",
    "when.at_most_every(%d)",
    "none { when.iterations(%d) }",
    "all { when.seconds(%d), when.bytes(2) }",
    "when.node_sync { period = %d, min_iter = 0, min_time_s = 0 }",
  }

  it("says yes when one of them does, all when each does, in whatever order", function()
    for _ = 1, 100 do
      local rules, yes = {}, 0
      local e = since { results = random(6), seconds = random(6), bytes = random(6) }
      for i = 1, 1 + random(4) do
        rules[i] = leaves[1 + random(#leaves)]:format(random(6))
        if judge(rules[i], e) == "sync" then yes = yes + 1 end
      end
      local some, each = yes > 0 and "sync" or "skip", yes == #rules and "sync" or "skip"
      local opposite = yes == 0 and "sync" or "skip"
      for _ = 1, 2 do
        local text = table.concat(rules, ", ")
        assert.equal(some, (judge("any { " .. text .. " }", e)), text)
        assert.equal(each, (judge("all { " .. text .. " }", e)), text)
        assert.equal(opposite, (judge("none { " .. text .. " }", e)), text)
        for i = #rules, 2, -1 do
          local j = 1 + random(i)
          rules[i], rules[j] = rules[j], rules[i]
        end
      end
    end
  end)
end)

describe("what saving costs", function()
  local function ask(rule, more, memory)
    local M = library.keys("sync = " .. rule)
    local answer, reason, _, kept, warnings, again = M.ask("sync", event(more), memory)
    return answer, again, kept, warnings, reason
  end

  local function facts(left, takes, ran, spent, passed)
    return {
      job = { seconds = ran or 100, left = left },
      saves = { seconds = takes, spent = spent or 0 },
      since = { seconds = passed },
    }
  end

  it("saves before the deadline, and sooner where a save takes long", function()
    local rule = "when.before_deadline '1m'"
    assert.equal("sync", (ask(rule, facts(60))))
    local answer, again = ask(rule, facts(61))
    assert.same({ "skip", 1 }, { answer, again })
    assert.equal("sync", (ask(rule, facts(200, 100))))
    assert.equal("skip", (ask(rule, facts(201, 100))))
  end)

  it("leaves it to others where there is no deadline, and says so", function()
    local answer, _, _, warnings = ask("when.before_deadline '1m'", facts(nil))
    assert.is_nil(answer)
    assert.truthy(warnings[1]:find("no deadline is known", 1, true))
    local both = "any { when.before_deadline '1m', when.iterations(5) }"
    local more = facts(nil)
    more.results, more.since = 9, { results = 4 }
    assert.equal("skip", (ask(both, more)))
  end)

  it("keeps the share of the time that saves take", function()
    local share = 10
    local ran, spent, saves = 0, 0, 0
    for i = 1, 2000 do
      local takes = 1 + (i * 7919) % 20
      ran = ran + 5
      local more = facts(nil, saves > 0 and takes or nil, ran, spent)
      if ask("when.overhead_below(10)", more) == "sync" then
        ran, spent, saves = ran + takes, spent + takes, saves + 1
        assert.is_true(saves == 1 or spent <= ran * share / 100 + 1e-9)
      end
    end
    assert.is_true(saves > 50)
    assert.is_true(spent > ran * 0.09)
  end)

  it("waits for the end of a save that is under way: nobody knows what it takes", function()
    for _, takes in ipairs { 0, 5 } do
      local more = facts(nil, takes > 0 and takes or nil, 1000, 1)
      more.queue = { running = true, waiting = 0 }
      local answer, again, _, _, reason = ask("when.overhead_below(10)", more)
      assert.equal("skip", answer)
      assert.is_true(again > 0) -- so it is asked again at the end of the save
      assert.truthy(reason:find("a save is under way", 1, true), reason)
      more.queue.running = false
      assert.equal("sync", (ask("when.overhead_below(10)", more)))
    end
  end)

  it("tells when the share allows one more", function()
    local answer, again = ask("when.overhead_below(10)", facts(nil, 5, 60, 4))
    assert.same({ "skip", 30 }, { answer, again })
    assert.equal("sync", (ask("when.overhead_below(10)", facts(nil, 5, 90, 4))))
  end)

  -- The loss of time by the exact formula for exponential failures, without a restart's time.
  it("saves in the period that loses least, of all periods", function()
    for _, row in ipairs { { 5, 3600 }, { 60, 3600 }, { 300, 3600 }, { 30, 600 } } do
      local cost, mtbf = row[1], row[2]
      local function loss(period)
        return (math.exp(period / mtbf) - 1) / (period - cost)
      end
      local rule = ("when.young_daly { mtbf = %d }"):format(mtbf)
      local _, period = ask(rule, facts(nil, cost, 0, 0, 0))
      local best = math.huge
      for p = cost + 1, 4 * mtbf do best = math.min(best, loss(p)) end
      assert.is_true(loss(period) <= best * 1.001, ("%d s of %d"):format(cost, mtbf))
    end
  end)

  -- The period after so many starts, each of which lived for 1,000 s and saved something.
  local function after(starts, rule)
    local memory, now = nil, 1e9
    for _ = 1, starts do
      local more = facts(nil, 10, 1000, 10, 1e6)
      more.now = now + 1000
      local answer, _, kept = ask(rule, more, memory)
      assert.equal("sync", answer)
      memory, now = kept, now + 2000
    end
    local more = facts(nil, 10, 1000, 10, 0)
    more.now = now + 1000
    local _, again = ask(rule, more, memory)
    return again
  end

  local function is_for(mtbf, period)
    local x = 10 / (2 * mtbf)
    local wanted = math.sqrt(2 * 10 * mtbf) * (1 + math.sqrt(x) / 3 + x / 9)
    assert.is_true(math.abs(period - wanted) < 1e-6, ("%g, not %g"):format(period, wanted))
  end

  it("counts each start behind another one as a failure", function()
    is_for(1000, after(0, "when.young_daly {}")) -- as if one came now
    is_for(2000, after(1, "when.young_daly {}"))
    is_for(6000 / 5, after(5, "when.young_daly {}"))
  end)

  it("takes the mtbf that is given as one failure that was seen before", function()
    is_for(6000, after(0, "when.young_daly { mtbf = 5000 }"))
    is_for(11000 / 6, after(5, "when.young_daly { mtbf = 5000 }"))
    is_for((1e5 + 51000) / 51, after(50, "when.young_daly { mtbf = 1e5 }"))
  end)

  it("saves where nothing was measured, and at the end", function()
    for _, rule in ipairs { "when.overhead_below(1)", "when.young_daly {}" } do
      assert.equal("sync", (ask(rule, {})), rule)
      assert.equal("sync", (ask(rule, facts(nil, nil, 100, 0))), rule)
      local last = facts(nil, 50, 100, 50, 1)
      last.event = "end"
      assert.equal("sync", (ask(rule, last)), rule)
    end
  end)

  it("refuses arguments that are none", function()
    for _, rule in ipairs {
      "when.before_deadline()", "when.before_deadline 'soon'", "when.overhead_below(0)",
      "when.overhead_below(101)", "when.overhead_below '5'", "when.young_daly()",
      "when.young_daly { mtbf = 0 }", "when.young_daly { mtfb = 1 }",
      "when.young_daly { mtbf = math.huge }",
      "when.every_steps()", "when.every_steps(0)", "when.every_steps(1.5)",
    } do
      assert.equal("syntax", (library.refusal("return { api = 1,\n sync = " .. rule .. "\n}")))
    end
  end)
end)
