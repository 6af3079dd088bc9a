--- Answers what `policy check` asks of a policy that was loaded (`check` in
--- engine/decision/policy_link.h).
local M = ...

local ipairs, setmetatable, type = ipairs, setmetatable, type
local format = string.format
local floor, min = math.floor, math.min
local concat = table.concat
local checks = {}
M.checks = checks

-- ---- one question ----

--- Asks as M.ask does, and tells what the functions read.
function checks.ask(request)
  local seen = M.watch_begin()
  local memory = type(request.memory) == "table" and request.memory or {}
  local answer, reason, _, changed, _, again = M.ask(request.hook, request.event, memory)
  -- What becomes of a list is looked at by nobody, and may be long.
  if type(answer) == "table" and request.hook ~= "exclude" then answer = nil end
  return {
    answer = answer,
    reason = reason,
    again = again,
    memory = changed or memory,
    clock = seen.clock,
    metrics = seen.metrics,
    results = seen.results,
  }
end

-- ---- what the rules ask for ----

--- Calls visit(body) for a rule and each of its parts; a function of the policy's own has none.
function M.each_rule(v, visit)
  local body = M.body(v)
  if not body then return end
  visit(body)
  for _, part in ipairs(body.parts or {}) do M.each_rule(part, visit) end
end
local each_rule = M.each_rule

local function note(list, names, line)
  for _, name in ipairs(names or {}) do list[name] = list[name] or line end
end

-- Keys that are probably not meant: what is never looked at, since something else there decides,
-- and what leaves the newest alone with files that a start may need.
local function doubted(policy)
  local out = {}
  if policy.hooks.keep ~= nil and policy.would_keep ~= nil then
    out.would_keep = "`keep` decides: `would_keep` only tells what would go where nothing goes"
  end
  if policy.hooks.keep ~= nil and policy.data.keep_in_place then
    out.keep_in_place = "`keep` decides of all names, so `keep_in_place` does not"
  end
  local newest_only = policy.data.newest_only
  if newest_only and #newest_only.files > 0 and newest_only.newest == 1 then
    out.newest_only = "the newest alone keeps these files: if it does not load, a start goes on "
      .. "from the one before, which may have lost them. `newest = 2` leaves them to both"
  end
  return out
end

--- Tells what the rules of the policy need to judge by, and its keys that are probably not meant.
function checks.needs()
  local out = { metrics = {}, results = {}, doubted = {} }
  for _, policy in ipairs(M.chain) do
    local function visit(body)
      note(out.metrics, body.metrics, body.line)
      note(out.results, body.results, body.line)
    end
    for _, v in M.each(policy.hooks) do each_rule(v, visit) end
    each_rule(policy.would_keep, visit)
    for key, why in M.each(doubted(policy)) do out.doubted[key] = why end
  end
  return out
end

-- ---- rules without which nothing would be different ----

local ROUNDS, MOST_RULES, WORK, EVENTS = 8, 24, 60000, 300
local DAY = 86400

-- The same numbers each time: what is found once is found again.
local function numbers(seed)
  local x = seed * 7919 + 1
  return function(n)
    x = (x * 16807) % 2147483647
    return x % n
  end
end

-- { how many, seconds between two, steps between two, bytes of each }: of one and the other budget
-- there is room for all, for some, and for none.
local LISTS = {
  { 60, DAY, 1000, 1e9 },
  { 200, 600, 100, 1e7 },
  { 40, 40 * DAY, 7, 1e10 },
  { 300, 3600, 500, 1e9 },
  { 12, 1, 1, 1e11 },
  { 3, 60, 10, 1e14 },
  { 1000, 3 * 3600, 250, 1e5 },
  { 150, 5 * DAY, 5000, 1e12 },
}

-- A number for each metric that a rule could name; a fifth of the checkpoints have none.
local function metrics_of(random)
  if random(5) == 0 then return nil end
  local v = random(1000)
  return setmetatable({}, {
    __index = function(_, k) return type(k) == "string" and (v * #k) % 997 or nil end,
  })
end

local function list_of(round, most)
  local shape, random, out = LISTS[round], numbers(round), {}
  local count = min(shape[1], most)
  for i = 1, count do
    out[i] = {
      number = i,
      name = "checkpoint-" .. i * shape[3],
      step = i * shape[3],
      time = 1700000000 + i * shape[2],
      bytes = shape[4],
      metrics = metrics_of(random),
      newest = i == count,
    }
  end
  return out
end

local SECONDS = { 0.5, 5, 10, 30, 60, 299, 300, 600, 1800, 3600, 7200, DAY, 30 * DAY }

local function event_of(random)
  local words = { "complete", "result", "time" }
  local e = {
    event = words[random(3) + 1],
    now = 1700000000,
    localtime = { hour = random(24), minute = random(60), second = 0 },
    checkpoint = { name = "checkpoint-1", metrics = metrics_of(random) },
    results = random(3),
    since = { results = 2 ^ random(14) - 1, bytes = 2 ^ random(45), checkpoints = 1 },
  }
  if random(4) > 0 then e.since.seconds = SECONDS[random(#SECONDS) + 1] end
  if random(4) > 0 then
    e.result = { training_iteration = 2 ^ random(12), time_total_s = SECONDS[random(#SECONDS) + 1] }
  end
  e.job = { seconds = SECONDS[random(#SECONDS) + 1] }
  if random(4) > 0 then e.job.left = SECONDS[random(#SECONDS) + 1] end
  e.saves = { spent = SECONDS[random(#SECONDS) + 1] / 10 }
  if random(4) > 0 then e.saves.seconds = SECONDS[random(#SECONDS) + 1] / 10 end
  -- A multiple of each number, or one of few.
  e.checkpoint.step = random(3) == 0 and 0 or 1 + random(1000000)
  return e
end

local function silent() end

-- What metric_improved knows as the best so far.
local known_best = setmetatable({}, {
  __index = function() return { value = 498, unit = "checkpoint-0" } end,
})

local function context(policy, hook, e)
  return {
    e = e,
    name = policy.name,
    hook = hook,
    memory = {},
    rules = known_best,
    remember = {},
    warn = silent,
  }
end

local function kept_text(v, policy, hook, items)
  local kept = M.judge_keep(v, items, context(policy, hook, { list = items, now = 1.8e9 }))
  local out = {}
  for i = 1, kept and #items or 0 do out[i] = kept[i] and "1" or "0" end
  return concat(out)
end

local function wanted_text(v, policy, hook, events)
  local out = {}
  for i, e in ipairs(events) do
    out[i] = M.judge_when(v, context(policy, hook, e), true) and "1" or "0"
  end
  return concat(out)
end

local decisive = {} -- the part's own body -> true

-- Takes each part out of its place, and looks whether the whole says the same without it.
local function try_without(top, judge)
  local whole = judge()
  local function visit(body)
    local parts = body.parts
    for i = 1, parts and #parts > 1 and #parts or 0 do
      local part = M.body(parts[i])
      if not decisive[part] then
        local less = {}
        for j, other in ipairs(parts) do
          if j ~= i then less[#less + 1] = other end
        end
        body.parts = less
        decisive[part] = judge() ~= whole or nil
        body.parts = parts
      end
    end
  end
  each_rule(top, visit)
end

-- Calls visit(policy, hook, rule, kind, count) for each tree of rules alone.
local function each_tree(visit)
  for _, policy in ipairs(M.chain) do
    local trees = { would_keep = policy.would_keep }
    for hook, v in M.each(policy.hooks) do trees[hook] = v end
    for hook, v in M.each(trees) do
      local body, count = M.body(v), 0
      each_rule(v, function() count = count + 1 end)
      if body and body.parts and not body.has_function and count <= MOST_RULES then
        visit(policy, hook, v, body.kind, count)
      end
    end
  end
end

--- Tries the rules with one of the made-up histories; `round` is 1 to M.rounds.
function checks.rules(request)
  local round = request.round
  each_tree(function(policy, hook, v, kind, count)
    local most = floor(WORK / (count * count))
    if kind == "keep" then
      local items = list_of(round, most)
      try_without(v, function() return kept_text(v, policy, hook, items) end)
    elseif kind == "when" then
      local random, events = numbers(round), {}
      for i = 1, min(EVENTS, most) do events[i] = event_of(random) end
      try_without(v, function() return wanted_text(v, policy, hook, events) end)
    end
  end)
  return { rounds = ROUNDS }
end

local SAID = {
  keep = "%s changes nothing here: in lists of up to 1000 checkpoints over 4 years the same stay "
    .. "without it",
  when = "%s changes nothing here: the answer was the same without it in 2400 made-up moments",
}

--- Tells the rules that made no difference in any round: { { line =, text = }, ... }.
function checks.unused()
  local out = {}
  each_tree(function(_, _, v, kind)
    if not SAID[kind] then return end
    each_rule(v, function(body)
      for _, part in ipairs(body.parts and #body.parts > 1 and body.parts or {}) do
        local own = M.body(part)
        if not decisive[own] then
          out[#out + 1] = { line = own.line, text = format(SAID[kind], own.name) }
        end
      end
    end)
  end)
  return { list = out }
end

--- Answers one request of a check.
---@param request table
---@return table
function M.check(request)
  local check = checks[request.what]
  if not check then M.fail("answer", format("there is no check %s", M.show(request.what))) end
  return check(request)
end
