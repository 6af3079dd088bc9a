--- Twenty mutants and more of each `when` rule: another constant, another rule in its place, or one
--- more beside it. A history of events, made up around the constants of both, tells each from the
--- rule: at one of its events they decide otherwise. EQUIVALENT says why none can.
local library = require "policy.rules"
local mutants = require "policy.mutants"

-- Each rule with other constants.
local CONSTANTS = {
  ["when.each_checkpoint()"] = { "when.iterations(1)", "when.every_steps(2)", "when.bytes(1)",
    "when.seconds(1)" },
  ["when.iterations(5)"] = { "when.iterations(0)", "when.iterations(1)", "when.iterations(4)",
    "when.iterations(6)", "when.iterations(50)" },
  ['when.seconds "10m"'] = { "when.seconds(599)", "when.seconds(601)", 'when.seconds "10s"',
    'when.seconds "1h"', "when.seconds(0)" },
  ['when.at_most_every "5m"'] = { "when.at_most_every(299)", "when.at_most_every(301)",
    'when.at_most_every "5s"', 'when.at_most_every "5h"', 'when.seconds "5m"' },
  ['when.bytes "10MB"'] = { "when.bytes(10e6 - 1)", "when.bytes(10e6 + 1)", 'when.bytes "10MiB"',
    'when.bytes "1MB"', 'when.bytes "10GB"' },
  ["when.every_steps(500)"] = { "when.every_steps(1)", "when.every_steps(250)",
    "when.every_steps(499)", "when.every_steps(501)", "when.every_steps(1000)" },
  ['when.before_deadline "1m"'] = { "when.before_deadline(59)", "when.before_deadline(61)",
    'when.before_deadline "1h"', "when.before_deadline(0)" },
  ["when.overhead_below(5)"] = { "when.overhead_below(1)", "when.overhead_below(4.5)",
    "when.overhead_below(5.5)", "when.overhead_below(50)" },
  ['when.young_daly { mtbf = "6h" }'] = { "when.young_daly {}", 'when.young_daly { mtbf = "5h" }',
    'when.young_daly { mtbf = "7h" }', 'when.young_daly { mtbf = "6m" }' },
  ['when.hours("22:00", "06:00")'] = { 'when.hours("22:01", "06:00")',
    'when.hours("21:59", "06:00")', 'when.hours("22:00", "06:01")', 'when.hours("22:00", "05:59")',
    'when.hours("06:00", "22:00")' },
  ['when.metric_improved("loss", "min")'] = { 'when.metric_improved("loss", "max")',
    'when.metric_improved("los", "min")', 'when.metric_improved("acc", "min")' },
  ["when.node_sync {}"] = { "when.node_sync { period = 299 }", "when.node_sync { period = 301 }",
    "when.node_sync { min_iter = 1 }", "when.node_sync { min_iter = 3 }",
    "when.node_sync { min_time_s = 9 }", "when.node_sync { min_time_s = 11 }",
    "when.node_sync { on_checkpoint = true }" },
}

-- What stands in the place of a rule, and beside it.
local OTHERS = { "when.each_checkpoint()", "when.iterations(3)", "when.seconds(70)",
  "when.at_most_every(70)", "when.bytes(3000)", "when.every_steps(70)", "when.before_deadline(70)",
  "when.overhead_below(30)", "when.young_daly { mtbf = 7000 }", 'when.hours("03:00", "15:00")',
  'when.metric_improved("loss", "max")', "when.node_sync { min_iter = 7 }" }

local EACH = "there is no more than each"
local EQUIVALENT = {
  ["when.each_checkpoint() | any { when.each_checkpoint(), when.iterations(3) }"] = EACH,
  ["when.each_checkpoint() | any { when.each_checkpoint(), when.bytes(3000) }"] = EACH,
  ["when.each_checkpoint() | any { when.each_checkpoint(), when.overhead_below(30) }"] = EACH,
  ['when.each_checkpoint() | any { when.each_checkpoint(), when.metric_improved("loss", "max") }'] =
    EACH,
  ['when.bytes "10MB" | all { when.bytes "10MB", when.bytes(3000) }'] = "10 MB are 3,000, too",
  ["when.iterations(5) | all { when.iterations(5), when.iterations(3) }"] = "5 results are 3, too",
  ["when.overhead_below(5) | all { when.overhead_below(5), when.overhead_below(30) }"] =
    "what is below 5 percent is below 30",
}

-- ---- histories ----

local state

local function below(n) -- the same on each machine
  state = (state * 16807) % 2147483647
  return state % n
end

local function one_of(list) return list[below(#list) + 1] end

-- Numbers at, beside and between those that the rules have.
local function numbers_of(M, a, b)
  local list = { 0, 1, 10, 300 } -- two are defaults of when.node_sync
  for _, text in ipairs { a, b } do
    for _, n in ipairs(M.numerals(text, 8)) do list[#list + 1] = n end
    for quoted in text:gmatch '"([^"]+)"' do
      list[#list + 1] = M.seconds(quoted) or M.bytes(quoted)
    end
  end
  return function()
    local n = one_of(list)
    local kind = below(8)
    if kind == 0 then return (n + one_of(list)) / 2 end
    if kind == 1 then return n * 2 end
    if kind == 2 then return n + 1 end
    if kind == 3 then return math.max(0, n - 1) end
    if kind < 6 then return math.floor(10 ^ (below(5000) / 1000)) end
    return n
  end
end

local function maybe(value) return below(8) > 0 and value or nil end

local function event_at(i, number)
  local hour, minute = below(24), one_of { 0, 1, 30, 59 }
  local metrics = { loss = maybe(below(5)), acc = maybe(below(5)) }
  return library.event {
    event = one_of { "complete", "complete", "complete", "result", "time", "end", "preempt" },
    now = 1700000000 + i * 1000,
    checkpoint = { name = "c" .. i, generation = 0, step = maybe(math.floor(number())),
      bytes = 1000, metrics = metrics },
    result = maybe { training_iteration = number(), time_total_s = number() },
    results = maybe(1),
    since = { results = maybe(math.floor(number())), seconds = maybe(number()),
      bytes = maybe(math.floor(number())) },
    job = { seconds = maybe(number()), left = maybe(number()) },
    saves = { seconds = maybe(number()), spent = maybe(number()) },
    localtime = maybe { hour = hour, minute = minute, second = 0 },
  }
end

-- What a rule decides, event by event, with what it remembers.
local function decider(rule)
  local M, memory = library.keys("sync = " .. rule), nil
  return function(event)
    local answer, _, _, kept = M.ask("sync", event, memory)
    memory = kept or memory
    return answer
  end, M
end

local HISTORIES, LENGTH = 60, 100

-- True if a history tells two rules apart.
local function is_told(a, b)
  state = 7
  for _ = 1, HISTORIES do
    local of_a, M = decider(a)
    local of_b, number = decider(b), numbers_of(M, a, b)
    for i = 1, LENGTH do
      local event = event_at(i, number)
      if of_a(event) ~= of_b(event) then return true end
    end
  end
  return false
end

describe("a history of events", function()
  for rule, constants in pairs(CONSTANTS) do
    it("tells twenty mutants from " .. rule .. ", or they are none", function()
      local told = mutants.told(rule, constants, OTHERS, EQUIVALENT, is_told)
      assert.is_true(told >= 20, told)
    end)
  end
end)
