-- The rules that know what saving costs, and when the job's time is over: in a history that is
-- told, in a real run, and in the record of one.

local place = require "place"
local support = require "support"
local ends, has, must, sh = place.ends, place.has, place.must, place.must_sh

local dir

place.with_directory(function(made) dir = made end)

local function policy(sync)
  support.write(dir .. "/p.lua", ("return { api = 1, sync = %s }"):format(sync))
end

-- A history: a start, and a checkpoint of 100 bytes at each of the times; c-5 is that of 5 s.
local function tell(start, times, more)
  local lines = { ('{"t":0,"event":"start"%s}'):format(start or "") }
  for _, t in ipairs(times) do
    local line = '{"t":%d,"event":"checkpoint","checkpoint":{"name":"c-%d","bytes":100}}'
    lines[#lines + 1] = line:format(t, t)
  end
  lines[#lines + 1] = more
  support.write(dir .. "/e.jsonl", table.concat(lines, "\n") .. "\n")
end

-- Plays it: names of what is saved, the sum, and what was said beside.
local function simulate(file, args)
  local text, said = ends(0, ("policy simulate %s -p ./p.lua --json %s"):format(file, args or ""))
  local rows, saved = place.objects(text), {}
  local sum = table.remove(rows)
  for _, row in ipairs(rows) do
    for _, name in ipairs(row.saved) do saved[#saved + 1] = name end
  end
  return table.concat(saved, " "), sum, said
end

local function every(step, last)
  local times = {}
  for t = step, last, step do times[#times + 1] = t end
  return times
end

describe("policy simulate plays", function()
  it("when.before_deadline, from the time that a start has left", function()
    policy "when.before_deadline '25s'"
    tell(',"left":100', { 10, 20, 50, 70 }, '{"t":76,"event":"crash"}')
    assert.equal("c-70", (simulate "e.jsonl")) -- for which it wakes up at 75 s
    policy "any { when.before_deadline '25s', function(e) return e.checkpoint.step == 10 end }"
    tell(',"left":100', { 10, 20, 50 }, '{"t":85,"event":"crash"}')
    -- A save takes 20 s: twice that is more than 25 s.
    assert.equal("c-10 c-50", (simulate("e.jsonl", "--bandwidth 5/s")))
  end)

  it("when.before_deadline of a start that does not say so: it decides nothing", function()
    policy "when.before_deadline '25s'"
    tell("", { 10, 20 })
    local saved, _, said = simulate "e.jsonl"
    assert.equal("c-10 c-20", saved)
    has(said, "no deadline is known (`--deadline`)")
    -- What the start before said is over with it.
    tell(',"left":1000', { 10 }, table.concat({ '{"t":20,"event":"crash"}',
      '{"t":30,"event":"start"}', '{"event":"checkpoint","checkpoint":{"name":"c-30"}}',
      '{"t":40,"event":"crash"}' }, "\n"))
    assert.equal("c-30", (simulate "e.jsonl"))
  end)

  it("when.overhead_below, with the time that its saves take", function()
    policy "when.overhead_below(10)"
    tell("", every(10, 1000), '{"t":1001,"event":"crash"}')
    local saved, sum = simulate("e.jsonl", "--bandwidth 10/s")
    -- A save takes 10 s; the first is not foreseen, and each other one waits until it may be.
    assert.equal("c-10 c-200 c-300 c-400 c-500 c-600 c-700 c-800 c-900", saved)
    assert.equal(9, sum.saves)
    -- One of 50 s is under way when the next ones are complete: none of them is queued behind it.
    policy "when.overhead_below(50)"
    tell("", every(10, 460), '{"t":461,"event":"crash"}')
    saved = simulate("e.jsonl", "--bandwidth 2/s")
    assert.equal("c-10 c-200 c-300 c-400", saved)
    policy "when.overhead_below(100)"
    tell("", every(10, 1000), '{"t":1001,"event":"crash"}')
    saved = simulate("e.jsonl", "--bandwidth 100/s")
    assert.equal(100, select(2, saved:gsub("c%-", "")))
  end)

  -- What is lost in the failures, and what the saves take.
  local function loss(sync)
    policy(sync)
    local _, sum = simulate("e.jsonl", "--bandwidth 5/s --failures mtbf=1h,seed=1")
    assert.is_true(sum.crashes > 20, sum.crashes)
    return sum.lost_s + 20 * sum.saves, sum.saves
  end

  it("when.young_daly, which loses less than a quarter and four times its period", function()
    tell("", every(20, 100000))
    local often, seldom = loss "when.seconds(95)", loss "when.seconds(1520)"
    for _, rule in ipairs { "when.young_daly { mtbf = '1h' }", "when.young_daly {}" } do
      local lost, saves = loss(rule)
      assert.is_true(lost < 0.75 * often, ("%s: %g, not %g"):format(rule, lost, often))
      assert.is_true(lost < 0.75 * seldom, ("%s: %g, not %g"):format(rule, lost, seldom))
      assert.is_true(saves > 100000 / 1520, saves)
    end
  end)

  it("no time that is none, and none of another event than a start", function()
    tell(',"left":-1', {})
    has(select(2, ends(2, "policy simulate e.jsonl -p builtin")), '"left"')
    tell("", {}, '{"event":"end","left":5}')
    has(select(2, ends(2, "policy simulate e.jsonl -p builtin")), "only a start has \"left\"")
  end)
end)

describe("policy check knows", function()
  it("these rules, of which each says when it changes its mind", function()
    for _, sync in ipairs { "when.before_deadline '5m'", "when.overhead_below(5)",
      "when.young_daly { mtbf = '6h' }", "any { when.before_deadline '5m', when.seconds '1h' }" } do
      policy(sync)
      local text = ends(0, "policy check p.lua")
      assert.equal("", text, sync)
    end
  end)

  it("what e.job and e.saves have, and that they are clocks", function()
    policy "function(e) return e.job.lef == nil or e.saves.spend == nil end"
    local text = ends(2, "policy check p.lua")
    has(text, 'e.job has no "lef" (did you mean "left"?)')
    policy "function(e) return e.event == 'end' or e.event == 'preempt' or e.job.seconds > 9e8 end"
    has(ends(0, "policy check p.lua"), "warning")
  end)
end)

-- The lines of a record, and how long after its start each transfer began.
local function recorded()
  local rows, begins = place.objects(support.read(dir .. "/r.jsonl")), {}
  for _, row in ipairs(rows) do
    if row.event == "transfer" then
      local took = row.transfer.seconds
      begins[#begins + 1] = { at = row.t - took - rows[1].t, took = took }
    end
  end
  return rows, begins
end

local function run(args) return must("run --dir out --to store -p ./p.lua " .. args) end

describe("a run", function()
  it("saves before its deadline, and not long before", function()
    policy "when.before_deadline '6s'"
    support.write(dir .. "/job.sh", ([[
      mkdir -p out/.new; echo w >out/.new/model.bin; mv out/.new out/checkpoint-1
      sleep 1; '%s' ls store --json >early 2>/dev/null
      for i in $(seq 100); do
        '%s' ls store --json >late 2>/dev/null
        grep -q checkpoint-1 late && break
        sleep 0.1
      done]]):format(support.runner, support.runner))
    local text = run "--deadline 10s --record r.jsonl -- sh job.sh"
    has(text, "s are left, 6 s are kept for a save")
    assert.equal("", (sh "grep checkpoint-1 early || true"))
    has(support.read(dir .. "/late"), "checkpoint-1")
    local rows, begins = recorded()
    local left = rows[1].left
    assert.is_true(left > 5 and left <= 10, left)
    assert.equal(1, #begins)
    assert.is_true(left - begins[1].at <= 6.01, begins[1].at)
    assert.is_true(begins[1].at + begins[1].took < left, begins[1].at)
    assert.equal("checkpoint-1", (simulate "r.jsonl"))
  end)

  it("takes no more of the time for its saves than was said", function()
    policy "when.overhead_below(10)"
    support.write(dir .. "/job.sh", [[
      mkdir -p out
      for n in $(seq 70); do
        mkdir out/.new; head -c 3000000 /dev/zero >out/.new/model.bin; mv out/.new out/checkpoint-$n
        sleep 0.1
      done]])
    run "--record r.jsonl -- sh job.sh"
    local rows, begins = recorded()
    table.remove(begins) -- the last one is that of the end
    assert.is_true(#begins >= 2 and #begins < 60, #begins)
    local spent = begins[1].took
    for i = 2, #begins do
      assert.is_true(spent <= 0.1 * begins[i].at, ("save %d: %g s"):format(i, spent))
      spent = spent + begins[i].took
    end
    -- Played again: the times are those of the record, to parts of a second.
    local _, sum = simulate "r.jsonl"
    assert.is_true(math.abs(sum.saves - #begins - 1) <= 2, sum.saves)
    assert.equal("end", rows[#rows].event)
  end)

  it("refuses a deadline that is none", function()
    policy "when.before_deadline '6s'"
    for value, said in pairs {
      ["0"] = "--deadline: 0 is over already; say inf if there is none",
      soon = "--deadline: 'soon' is no time", ["-5"] = "--deadline: '-5' is no time",
      nan = "--deadline: 'nan' is no time",
    } do
      has(place.says(2, ("run --dir out --to store --deadline=%s -- true"):format(value)), said)
    end
    support.write(dir .. "/job.sh", "mkdir -p out/.new; echo w >out/.new/model.bin; "
      .. "mv out/.new out/checkpoint-1; sleep 1")
    has(run "--deadline inf -- sh job.sh", "no deadline is known (`--deadline`)")
  end)
end)
