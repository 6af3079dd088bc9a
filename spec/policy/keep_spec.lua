local library = require "policy.rules"
local items = library.items

--- The names of those that `keep = RULE` keeps.
local function kept(rule, list) return (library.kept(library.keys("keep = " .. rule), list)) end

local HOUR, DAY = 3600, 86400

--- Checkpoints at these times, the oldest first.
local function at_times(...)
  local times = { ... }
  return items(#times, function(item, i) item.time = times[i] end)
end

local function losses(...)
  local values = { ... }
  return items(select("#", ...), function(item, i) item.metrics.loss = values[i] end)
end

describe("keep.last", function()
  it("keeps the newest, and says why of each", function()
    local names, rows = library.kept(library.keys "keep = keep.last(2)", items(3))
    assert.equal("c2 c3", names)
    assert.same({ keep = false, reason = "older than the last 2", by = "mine" }, rows[1])
    assert.same({ keep = true, reason = "among the last 2", by = "mine" }, rows[2])
  end)

  it("keeps all of few, and nothing of none", function()
    assert.equal("c1 c2", kept("keep.last(9)", items(2)))
    assert.equal("", kept("keep.last(9)", {}))
  end)

  it("goes by the order of the commits, whatever the order of the list and the clock", function()
    local list = items(4, function(item, i) item.time = 1e9 - i end)
    list[1], list[4] = list[4], list[1]
    assert.equal("c4 c3", kept("keep.last(2)", list))
  end)

  it("goes by time, then step, where there are no commits", function()
    local list = items(4, function(item, i)
      item.number = nil
      item.time = i < 3 and 1e9 or 1e9 - i
    end)
    assert.equal("c2", kept("keep.last(1)", list))
  end)
end)

describe("keep.best", function()
  it("keeps the best by a metric, and the newest", function()
    assert.equal("c2 c4 c5", kept("keep.best('loss', 2, 'min')", losses(5, 1, 4, 2, 9)))
    assert.equal("c1 c5", kept("keep.best('loss', 2, 'max')", losses(5, 1, 4, 2, 9)))
    local _, rows = library.kept(library.keys "keep = keep.best('loss', 1, 'min')", losses(1, 2, 3))
    assert.equal("among the 1 best by loss", rows[1].reason)
    assert.equal("not among the 1 best by loss", rows[2].reason)
    assert.equal("the newest", rows[3].reason)
  end)

  it("finds few and many alike", function()
    local list = items(200, function(item, i) item.metrics.loss = (i * 7919) % 211 % 40 end)
    local order = {}
    for i, item in ipairs(list) do order[i] = item end
    table.sort(order, function(a, b)
      if a.metrics.loss == b.metrics.loss then return a.number > b.number end
      return a.metrics.loss < b.metrics.loss
    end)
    for _, n in ipairs { 1, 2, 31, 32, 33, 100, 199, 200, 300 } do
      local expected = { c200 = true }
      for i = 1, math.min(n, 200) do expected[order[i].name] = true end
      local found = {}
      for name in kept(("keep.best('loss', %d, 'min')"):format(n), list):gmatch "%S+" do
        found[name] = true
      end
      assert.same(expected, found, n)
    end
  end)

  it("prefers the newer of equal ones", function()
    assert.equal("c3 c4", kept("keep.best('loss', 1, 'min')", losses(1, 1, 1, 5)))
  end)

  it("never takes NaN, infinity or text for the best, nor lets them take a place", function()
    local nan, inf = 0 / 0, 1 / 0
    local list = losses(3, nan, -inf, "0", nil, true, 2, 9)
    assert.equal("c1 c7 c8", kept("keep.best('loss', 2, 'min')", list))
    list = losses(3, nan, inf, 4, nil)
    assert.equal("c1 c4 c5", kept("keep.best('loss', 9, 'max')", list))
  end)

  it("keeps all if none has the metric, and warns once with the names that there are", function()
    local M = library.keys "keep = any { keep.last(1), keep.best('los', 1, 'min') }"
    local answer, _, _, _, warnings = M.ask("keep", { list = losses(1, 2, 3) })
    for i = 1, 3 do assert.is_true(answer[i].keep) end
    assert.equal(1, #warnings)
    assert.truthy(warnings[1]:find('only "loss"', 1, true), warnings[1])
    _, _, _, _, warnings = M.ask("keep", { list = losses(1, 2, 3) })
    assert.equal(0, #warnings)
  end)

  it("keeps all below none { } too, if it cannot judge", function()
    assert.equal("c1 c2 c3", kept("none { keep.best('loss', 1, 'min') }", items(3)))
  end)

  it("says nothing about an empty list", function()
    local M = library.keys "keep = keep.best('loss', 1, 'min')"
    local answer, _, _, _, warnings = M.ask("keep", { list = {} })
    assert.same({}, answer)
    assert.same({}, warnings)
  end)
end)

describe("keep.every_steps", function()
  it("keeps multiples, and what has no step", function()
    local list = items(5, function(item, i) item.step = ({ 0, 50, 100, 150, nil })[i] end)
    list[5].step = nil
    assert.equal("c1 c3 c5", kept("keep.every_steps(100)", list))
    assert.equal("c2 c4 c5", kept("none { keep.every_steps(100) }", list))
  end)
end)

describe("keep.budget", function()
  local function sizes(...)
    local values = { ... }
    return items(select("#", ...), function(item, i) item.bytes = values[i] end)
  end

  it("keeps the newest that fit together, up to the first that does not", function()
    assert.equal("c4 c5", kept("keep.budget '5MB'", sizes(1e6, 1e6, 3e6, 2e6, 3e6)))
    assert.equal("c3 c4 c5", kept("keep.budget(5e6)", sizes(1, 9e6, 1e6, 1e6, 3e6)))
    local _, rows = library.kept(library.keys "keep = keep.budget '1GiB'", sizes(2e9, 1e9))
    assert.equal("beyond 1.0 GiB", rows[1].reason)
    assert.equal("within 1.0 GiB from the newest on", rows[2].reason)
  end)

  it("keeps the newest whatever its size, and all that fit", function()
    assert.equal("c3", kept("keep.budget(10)", sizes(1, 1, 99)))
    assert.equal("c1 c2 c3", kept("keep.budget(3)", sizes(1, 1, 1)))
    assert.equal("", kept("keep.budget(3)", {}))
  end)

  it("cannot judge without a size: such a one stays, and takes nobody's room", function()
    assert.equal("c1 c2 c3", kept("keep.budget(2)", sizes(1, 0 / 0, 1)))
    assert.equal("c2", kept("none { keep.budget(2) }", sizes(1, 0 / 0, 1)))
  end)

  it("never holds more on a list that grows", function()
    local list, M = {}, library.keys "keep = keep.budget(100)"
    for n = 1, 300 do
      list[#list + 1] = items(1, function(item)
        item.number, item.name, item.bytes = n, "c" .. n, 1 + n * 37 % 30
      end)[1]
      local answer, left, sum = M.ask("keep", { list = list }), {}, 0
      for i, row in ipairs(answer) do
        if row.keep then left[#left + 1], sum = list[i], sum + list[i].bytes end
      end
      assert.is_true(sum <= 100 and left[#left] == list[#list])
      list = left
    end
  end)
end)

describe("keep.spaced", function()
  it("keeps the newest, and of each span of age the oldest", function()
    local now = 1e9
    local list = at_times(now - 9, now - 8, now - 5, now - 4, now - 3, now - 2, now - 1, now)
    assert.equal("c1 c2 c4 c6 c7 c8", kept("keep.spaced(2)", list))
    local _, rows = library.kept(library.keys "keep = keep.spaced(2)", list)
    assert.equal("the newest", rows[8].reason)
    assert.equal("the oldest of its age, in spans that grow by 2", rows[4].reason)
    assert.equal("not the oldest of its age, in spans that grow by 2", rows[3].reason)
  end)

  it("leaves them spread out on a list that grows, for whatever pace", function()
    for _, factor in ipairs { 1.3, 2, 3 } do
      local list, M = {}, library.keys(("keep = keep.spaced(%g)"):format(factor))
      for n = 1, 3000 do
        list[#list + 1] = items(1, function(item)
          item.number, item.name, item.time = n, "c" .. n, 1e9 + n * HOUR
        end)[1]
        local answer, left = M.ask("keep", { list = list }), {}
        for i, row in ipairs(answer) do
          if row.keep then left[#left + 1] = list[i] end
        end
        list = left
      end
      local newest = list[#list].time
      assert.equal(1e9 + HOUR, list[1].time) -- the first one of all
      assert.is_true(#list <= 4 + math.log(3000) / math.log(factor), #list)
      for i = 2, #list - 1 do -- no gap is longer than two spans, and the pace
        local old, young = newest - list[i - 1].time, newest - list[i].time
        local most = (young + HOUR) * factor * factor + HOUR
        assert.is_true(old <= most, ("%g: %g %g"):format(factor, old, young))
      end
    end
  end)

  it("keeps one whose time is not known", function()
    assert.equal("c1 c2 c3 c4", kept("keep.spaced(2)", at_times(0, 1e9 - 5, 1e9, -1)))
    assert.equal("c1", kept("none { keep.spaced(2) }", at_times(0, 1e9)))
  end)
end)

describe("keep.within", function()
  it("counts from the newest, not from now", function()
    local list = at_times(1e9, 1e9 + HOUR, 1e9 + 2 * HOUR, 1e9 + 3 * HOUR)
    assert.equal("c2 c3 c4", kept("keep.within '2h'", list))
    assert.equal("c4", kept("keep.within(0)", list))
  end)

  it("keeps what has no time", function()
    assert.equal("c1 c2 c4", kept("keep.within '1m'", at_times(0, -5, 1e9, 2e9)))
  end)
end)

describe("the calendar", function()
  local function utc(y, m, d, h) return os.time { year = y, month = m, day = d, hour = h or 0 } end
  local zone = os.time { year = 2000, month = 1, day = 1, hour = 0 } - 946684800
  local function times(...)
    local out = { ... }
    for i, t in ipairs(out) do out[i] = utc(unpack(t)) - zone end
    return at_times(unpack(out))
  end

  it("keeps the newest of each of the last hours that have one, and the oldest", function()
    local t = 1700002800
    local list = at_times(t, t + 60, t + HOUR, t + HOUR + 5, t + 9 * HOUR)
    assert.equal("c4 c5", kept("keep.hourly(2)", list))
    assert.equal("c2 c4 c5", kept("keep.hourly(3)", list))
    assert.equal("c1 c2 c4 c5", kept("keep.hourly(4)", list))
    assert.equal("c1 c2 c4 c5", kept("keep.hourly(99)", list))
  end)

  it("counts days that have one, in UTC", function()
    local leap = { { 2024, 2, 29 }, { 2024, 2, 29, 23 } }
    local list =
      times({ 2024, 2, 27, 1 }, { 2024, 2, 28, 23 }, leap[1], leap[2], { 2024, 3, 5 })
    assert.equal("c4 c5", kept("keep.daily(2)", list))
    assert.equal("c2 c4 c5", kept("keep.daily(3)", list))
  end)

  it("begins weeks on Monday", function()
    -- 2024-03-03 is a Sunday.
    local list = times({ 2024, 2, 26 }, { 2024, 3, 3, 23 }, { 2024, 3, 4 }, { 2024, 3, 10, 23 })
    assert.equal("c2 c4", kept("keep.weekly(2)", list))
  end)

  it("knows months and years, leap years too", function()
    local early = { { 2023, 12, 31, 23 }, { 2024, 1, 1 }, { 2024, 2, 29, 23 } }
    local list = times(early[1], early[2], early[3], { 2024, 3, 1 }, { 2024, 3, 31, 23 })
    assert.equal("c2 c3 c5", kept("keep.monthly(3)", list))
    assert.equal("c5", kept("keep.yearly(1)", list))
    assert.equal("c1 c5", kept("keep.yearly(2)", list))
  end)

  it("agrees with the C library about each day of 140 years", function()
    local M = library.keys "keep = any { keep.monthly(2), keep.yearly(2) }"
    for _, step in ipairs { 1, 17, 29 } do
      for day = 0, 140 * 365, step * 37 do
        local a, b = day * DAY + 5, (day + step) * DAY + 5
        local list = at_times(1, 2, a, b) -- the oldest takes no place of these
        local names = library.kept(M, list)
        local apart = os.date("!%Y-%m", a) ~= os.date("!%Y-%m", b)
        assert.equal(apart, names:find("c3", 1, true) ~= nil, os.date("!%F", a))
      end
    end
  end)

  it("goes by time, though the clock was set back", function()
    local list = at_times(5 * DAY, 3 * DAY, 5 * DAY + 60, 3 * DAY + 60, 4 * DAY)
    assert.equal("c3 c4 c5", kept("keep.daily(3)", list))
  end)

  it("keeps what has no time", function()
    assert.equal("c1 c3", kept("keep.daily(1)", at_times(0, 1e9, 2e9)))
  end)
end)

describe("keep: any, all, none and functions", function()
  it("unite, intersect and turn round", function()
    local list = items(6)
    assert.equal("c2 c4 c5 c6", kept("any { keep.last(2), keep.every_steps(200) }", list))
    assert.equal("c6", kept("all { keep.last(2), keep.every_steps(200) }", list))
    assert.equal("c1 c2 c3 c4", kept("none { keep.last(2) }", list))
    assert.equal("c1 c3", kept("none { keep.last(2), keep.every_steps(200) }", list))
    assert.equal("c1 c2 c3 c4 c5 c6", kept("keep.all()", list))
  end)

  it("give all reasons to keep one, and all reasons against it", function()
    local M = library.keys "keep = any { keep.last(1), keep.every_steps(200) }"
    local _, rows = library.kept(M, items(2))
    assert.equal("older than the last 1, its step is no multiple of 200", rows[1].reason)
    assert.equal("among the last 1, its step is a multiple of 200", rows[2].reason)
    M = library.keys "keep = none { keep.last(1) }"
    _, rows = library.kept(M, items(2))
    assert.equal("not wanted: among the last 1", rows[2].reason)
  end)

  it("take what a function returns: entries of its list, or names", function()
    local f = "function(list) return { list[1], 'c3' }, 'I like them' end"
    local names, rows = library.kept(library.keys("keep = " .. f), items(4))
    assert.equal("c1 c3", names)
    assert.equal("I like them", rows[1].reason)
    assert.equal("c1 c3 c4", kept(("any { keep.last(1), %s }"):format(f), items(4)))
  end)

  it("find the entries though the function sorts its list, empties it or writes to it", function()
    local list = items(4)
    local sorts = [[function(l)
      table.sort(l, function(a, b) return a.step > b.step end)
      return { l[1] }
    end]]
    local empties = [[function(l)
      local a = l[1]
      for i = 1, 4 do l[i] = nil end
      a.name = "x"
      return { a }
    end]]
    assert.equal("c4", kept(sorts, list))
    assert.equal("c1", kept(empties, list))
    local f = "function(l) for _, c in ipairs(l) do c.step, c.number = 1, nil end return {} end"
    assert.equal("c4", kept(("any { %s, keep.last(1) }"):format(f), list))
  end)

  it("leave a function out that has no opinion", function()
    assert.equal("c4", kept("any { function() end, keep.last(1) }", items(4)))
    assert.is_nil((library.keys("keep = function() end").ask("keep", { list = items(2) })))
  end)

  it("refuse what is not in the list", function()
    local wrong = { "{ 'c9' }", "{ {} }", "{ 1 }", "5", "'c1'", "{ a = list[1] }", "true" }
    for _, answer in ipairs(wrong) do
      local M = library.keys(("keep = function(list) return %s end"):format(answer))
      local ok, why = pcall(M.ask, "keep", { list = items(2) })
      assert.is_false(ok)
      assert.equal("answer", why.kind, answer)
      assert.truthy(why.text:find("mine: `keep` returned", 1, true), why.text)
    end
  end)

  it("refuse arguments that are none", function()
    for _, rule in ipairs {
      "keep.last()",
      "keep.last(0)",
      "keep.last(-1)",
      "keep.last(1.5)",
      "keep.best('loss', 2)",
      "keep.best('loss', 'min')",
      "keep.best(1, 2, 'min')",
      "keep.every_steps(0)",
      "keep.daily()",
      "keep.within('x')",
      "keep.budget()",
      "keep.budget(0)",
      "keep.budget('5 apples')",
      "keep.spaced()",
      "keep.spaced(1)",
      "keep.spaced('2')",
      "keep.spaced(1 / 0)",
      "keep.last",
      "when.each_checkpoint()",
    } do
      local kind = library.refusal("return { api = 1, keep = " .. rule .. " }")
      assert.equal("syntax", kind, rule)
    end
  end)
end)

describe("keep, of random rules over random lists,", function()
  local seed = 11
  local function random(n)
    seed = (seed * 16807) % 2147483647
    return seed % n
  end

  local makers = {
    function() return ("keep.last(%d)"):format(1 + random(4)) end,
    function() return ("keep.best('loss', %d, 'min')"):format(1 + random(3)) end,
    function() return ("keep.best('acc', %d, 'max')"):format(1 + random(3)) end,
    function() return ("keep.every_steps(%d)"):format(1 + random(300)) end,
    function() return ("keep.hourly(%d)"):format(1 + random(4)) end,
    function() return ("keep.weekly(%d)"):format(1 + random(4)) end,
    function() return ("keep.within(%d)"):format(random(9000)) end,
    function() return ("keep.budget(%d)"):format(1 + random(4000000)) end,
    function() return ("keep.spaced(%g)"):format(1.1 + random(30) / 10) end,
    function() return "keep.all()" end,
  }

  local function random_list()
    return items(random(8), function(item)
      item.time = random(6) == 0 and 0 or 1e9 + random(9) * 3000
      item.step = random(6) > 0 and random(10) * 50 or nil
      item.metrics.loss = ({ 0 / 0, random(4), random(4), "x" })[1 + random(5)]
      if random(3) == 0 then item.metrics = nil end
    end)
  end

  local function set_of(rule, list)
    local set = {}
    local answer = library.keys("keep = " .. rule).ask("keep", { list = list })
    for i, row in ipairs(answer) do
      assert.is_string(row.reason)
      set[list[i].name] = row.keep
    end
    assert.equal(#list, #answer)
    return set
  end

  it("any is their union, all what they share, none the rest of those that can judge", function()
    for _ = 1, 100 do
      local list, rules, sets = random_list(), {}, {}
      for i = 1, 1 + random(3) do
        rules[i] = makers[1 + random(#makers)]()
        sets[i] = set_of(rules[i], list)
      end
      local text = table.concat(rules, ", ")
      local union = set_of("any {" .. text .. "}", list)
      local common = set_of("all {" .. text .. "}", list)
      for _, item in ipairs(list) do
        local some, each = false, true
        for _, set in ipairs(sets) do
          some, each = some or set[item.name], each and set[item.name]
        end
        assert.equal(some, union[item.name], text)
        assert.equal(each, common[item.name], text)
      end
      assert.same(union, set_of("none { none {" .. text .. "} }", list), text)
    end
  end)

  it("decides alike in whatever order the list comes", function()
    for _ = 1, 100 do
      local list, rule = random_list(), makers[1 + random(#makers)]()
      local before = set_of(rule, list)
      for i = #list, 2, -1 do
        local j = 1 + random(i)
        list[i], list[j] = list[j], list[i]
      end
      assert.same(before, set_of(rule, list), rule)
    end
  end)
end)

describe("a list of 10,000", function()
  it("is judged by four rules in a moment", function()
    local list = items(10000, function(item, i) item.metrics.loss = (i * 7919) % 10007 end)
    local M = library.keys [[keep = any {
      keep.last(3), keep.best("loss", 2, "min"), keep.daily(7), keep.every_steps(100000)
    }]]
    local steps = 0
    jit.off()
    jit.flush() -- what earlier tests had compiled counts no step
    debug.sethook(function() steps = steps + 1000 end, "", 1000)
    local names = library.kept(M, list)
    debug.sethook()
    jit.on()
    assert.truthy(names:find("c10000", 1, true))
    assert.is_true(steps < 4e6, "instructions: " .. steps) -- a request may use 10 million
  end)
end)
