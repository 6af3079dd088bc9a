--- when: rules that say whether this checkpoint is to be saved at this event.
---
--- A rule answers true, false or nil (no opinion), with a reason. Most are thresholds: "enough has
--- happened since the last save". When the job ends or is told to end there is no later, so there
--- a threshold never stands in the way: it answers `want`, which is true, and false below none{}.
--- A rule that has nothing to judge by does the same: what is complete is rather saved than lost.
local M = ...

local ipairs, tonumber, type = ipairs, tonumber, type
local format, match = string.format, string.match
local floor, huge, max = math.floor, math.huge, math.max

local when = {}
M.when = when

-- Tells whether the checks of a rule are to be asked at all, and its answer if not. `results`: what
-- it looks at of the job's results.
local function threshold(name, judge, results)
  return M.rule {
    kind = "when",
    name = name,
    results = results,
    judge = function(ctx, want)
      if ctx.e.event == "end" then return want, "the job has ended" end
      if ctx.e.event == "preempt" then return want, "time is short" end
      return judge(ctx, want)
    end,
  }
end

local table_at = M.table_at

-- Notes in how many seconds a rule may answer otherwise, if nothing but time passes: the run asks
-- again then. More than one may hold a checkpoint back; the first that changes counts.
local function changes_in(ctx, seconds)
  if seconds > 0 and seconds < (ctx.again or huge) then ctx.again = seconds end
end

M.changes_in = changes_in

-- Returns numbers "since the last save", or nil if they are not known.
local function since(e, key)
  local v = table_at(e, "since")[key]
  return M.is_finite(v) and v or nil
end

--- Saves each checkpoint that is complete.
function when.each_checkpoint()
  return M.rule {
    kind = "when",
    name = "when.each_checkpoint",
    judge = function() return true, "each checkpoint" end,
  }
end

--- Saves after at least n results (training iterations) since the last save.
---@param n integer
function when.iterations(n)
  M.need_count(n, 0, "when.iterations")
  return threshold("when.iterations", function(ctx, want)
    local seen, e = since(ctx.e, "results"), ctx.e
    if n > 0 and (not seen or (e.results or 0) == 0) then
      return want, "no result was reported to count iterations by"
    end
    return (seen or 0) >= n, format("%d of %d results since the last save", seen or 0, n)
  end, n > 0 and { "training_iteration" } or nil)
end

--- Saves after at least s seconds since the last save; before the first one, s seconds of training
--- by the last result (time_total_s).
---@param s number|string
function when.seconds(s)
  s = M.need_seconds(s, "when.seconds")
  return threshold("when.seconds", function(ctx, want)
    local passed, what = since(ctx.e, "seconds"), "since the last save"
    if not passed then
      passed, what = table_at(ctx.e, "result").time_total_s, "of training"
    end
    if not M.is_finite(passed) then return want, "nothing was saved yet" end
    if since(ctx.e, "seconds") then changes_in(ctx, s - passed) end
    return passed >= s, format("%.1f of %g s %s", passed, s, what)
  end)
end

--- Saves the first checkpoint, then one if the last save was begun at least this long ago.
---@param period number|string
function when.at_most_every(period)
  local s = M.need_seconds(period, "when.at_most_every")
  return threshold("when.at_most_every", function(ctx)
    local passed = since(ctx.e, "seconds")
    if not passed then return true, "nothing was saved yet" end
    changes_in(ctx, s - passed)
    return passed >= s, format("%.1f of %g s since the last save", passed, s)
  end)
end

--- Saves when at least n bytes of checkpoints were written since the last save, this one counted.
---@param n number|string
function when.bytes(n)
  local least = M.bytes(n)
  if not least then
    M.misuse('when.bytes: a size as "10MB", "1GiB" or bytes, not %s', M.show(n))
  end
  return threshold("when.bytes", function(ctx, want)
    local written = since(ctx.e, "bytes")
    if not written then return want, "nobody counted the bytes" end
    local text = "%s of %s since the last save"
    return written >= least, format(text, M.show_bytes(written), M.show_bytes(least))
  end)
end

--- Saves those whose step is a multiple of n, as keep.every_steps keeps them, or that have none.
---@param n integer
function when.every_steps(n)
  M.need_count(n, 1, "when.every_steps")
  return threshold("when.every_steps", function(ctx, want)
    local step = table_at(ctx.e, "checkpoint").step
    if not M.is_finite(step) or step < 0 then return want, "it has no step" end
    return step % n == 0, format(step % n == 0 and "its step is a multiple of %d"
      or "its step is no multiple of %d", n)
  end)
end

-- ---- what saving costs ----

local sqrt = math.sqrt

-- Returns what a fact of `e.job` or `e.saves` says, or nil if it is not known.
local function measured(e, from, key)
  local v = table_at(e, from)[key]
  return M.is_finite(v) and v >= 0 and v or nil
end

--- Saves when less than this is left until the job's deadline, or less than twice what a save of
--- this checkpoint takes, as measured. Without a deadline it has no opinion.
---@param s number|string
function when.before_deadline(s)
  s = M.need_seconds(s, "when.before_deadline")
  local MARGIN = 2 -- the store may be slower by then
  return threshold("when.before_deadline", function(ctx)
    local left = measured(ctx.e, "job", "left")
    if not left then
      ctx.warn("when.before_deadline: no deadline is known (`--deadline`): it decides nothing")
      return nil
    end
    local least = max(s, MARGIN * (measured(ctx.e, "saves", "seconds") or 0))
    changes_in(ctx, left - least)
    return left <= least, format("%.1f s are left, %g s are kept for a save", left, least)
  end)
end

--- Saves if the saves so far and this one together take less than that share of the job's time: all
--- tries of the group's saves count, from their begin to their end, the failed ones too. While one
--- is under way nobody knows what that takes: it is waited for, and then the run asks again.
---@param percent number above 0, at most 100
function when.overhead_below(percent)
  local title, GRACE = "when.overhead_below", 60
  if not M.is_finite(percent) or percent <= 0 or percent > 100 then
    M.misuse("%s: a number of percent above 0, at most 100, not %s", title, M.show(percent))
  end
  return threshold(title, function(ctx, want)
    local e = ctx.e
    local ran, spent = measured(e, "job", "seconds"), measured(e, "saves", "spent")
    local cost = measured(e, "saves", "seconds")
    if ran and table_at(e, "queue").running then
      changes_in(ctx, GRACE) -- the end of the save comes first
      return false, "a save is under way, and counts when it has ended"
    end
    local none = not cost and spent == 0
    if not ran or not spent or none then return want, "no save was measured" end
    local all = spent + (cost or 0)
    local enough = all * 100 / percent
    changes_in(ctx, enough - ran)
    local text = "saves take %.1f of %.1f s with this one, %g%% are wanted at most"
    return ran >= enough, format(text, all, ran, percent)
  end)
end

-- Returns the seconds between the begins of two saves, by Daly (2006) where one is short beside the
-- time between failures; his period does not count the save itself, ours does. Where a save takes
-- longer than two times that there is no best period: it is the time between failures.
local function daly(cost, mtbf)
  local x = cost / (2 * mtbf)
  if x >= 1 then return mtbf + cost end
  return sqrt(2 * cost * mtbf) * (1 + sqrt(x) / 3 + x / 9)
end

-- Returns what a rule knows of failures: each start behind another one is one. What was noted last
-- was noted with a save, so a start that saved nothing is not known.
local function lived(ctx, key, ran)
  local e, known = ctx.e, table_at(ctx.rules, key)
  local now = M.is_finite(e.now) and e.now or 0
  local seen = { at = now, seconds = ran, past = 0, failures = 0, cost = known.cost }
  if not M.is_finite(known.at) then return seen end
  seen.past, seen.failures = known.past, known.failures
  if now - ran >= known.at then
    seen.past, seen.failures = known.past + known.seconds, known.failures + 1
  end
  return seen
end

local young_daly_keys = { mtbf = true }

-- Returns the time between failures: what was lived through for each that was seen. `given` is what
-- one knew before: it counts as one failure in so much time. Without it one comes now if none came.
local function between_failures(given, seen, ran)
  local lived_s = seen.past + ran
  if not given then return lived_s / max(1, seen.failures) end
  return (given + lived_s) / (1 + seen.failures)
end

--- Saves in the period that loses least: sqrt(2 C M), with Daly's correction. C is what a save of
--- this checkpoint takes, as measured; M the time between failures: `mtbf` at first, then more and
--- more the time that the job has run, in all its starts that saved something, for each failure.
---@param t { mtbf: number|string|nil }
function when.young_daly(t)
  local title, key = "when.young_daly", "young_daly"
  M.need_keys(t, young_daly_keys, title)
  local given = t.mtbf ~= nil and M.need_seconds(t.mtbf, title .. ": mtbf") or nil
  if given == 0 or given == M.seconds "inf" then
    M.misuse("%s: mtbf is a time above 0, and not without end", title)
  end
  return threshold(title, function(ctx, want)
    local ran = measured(ctx.e, "job", "seconds")
    if not ran then return want, "how long the job has run is not known" end
    local seen = lived(ctx, key, ran)
    seen.cost = measured(ctx.e, "saves", "seconds") or seen.cost
    ctx.remember[key] = seen
    local passed = since(ctx.e, "seconds")
    if not passed or not M.is_finite(seen.cost) then return want, "no save was measured" end
    local mtbf = between_failures(given, seen, ran)
    if mtbf <= 0 then return want, "the job has not run yet" end
    local period = daly(seen.cost, mtbf)
    changes_in(ctx, period - passed)
    local text = "%.1f of %.1f s since the last save: one takes %.1f s, and in %.0f s one failure"
    return passed >= period, format(text, passed, period, seen.cost, mtbf)
  end)
end

-- ---- hours ----

local DAY, HOUR = 86400, 3600

-- Returns the seconds of "22:00" since midnight.
local function time_of_day(v, title)
  local hour, minute
  if type(v) == "string" then hour, minute = match(v, "^(%d%d?):(%d%d)$") end
  hour, minute = tonumber(hour), tonumber(minute)
  if not hour or minute > 59 or hour * 60 + minute > 1440 then
    M.misuse('%s: a time of day as "22:00", not %s', title, M.show(v))
  end
  return hour * HOUR + minute * 60
end

local function between(at, from, to)
  if from < to then return at >= from and at < to end
  return at >= from or at < to
end

-- Returns the seconds until the wall's clock shows `at`. Where it is set to another offset before
-- that, it is told from then on; an hour that is left out begins what lies in it.
local function until_time(now, at, change, holds)
  local left = (at - now) % DAY
  if left == 0 then left = DAY end
  if not change or left <= change.after then return left end
  local then_at = (now + change.after + change.by) % DAY
  if holds(then_at) then return change.after end
  return change.after + (at - then_at) % DAY
end

-- Returns the seconds since midnight on the wall, and when that clock is set anew; nil: not known.
local function wall(e)
  local t = table_at(e, "localtime")
  for _, part in ipairs { "hour", "minute", "second" } do
    if not M.is_finite(t[part]) then return nil end
  end
  local change = table_at(t, "change")
  local known = M.is_finite(change.after) and M.is_finite(change.offset) and M.is_finite(t.offset)
  local part = M.is_finite(e.now) and e.now - floor(e.now) or 0
  return t.hour * HOUR + t.minute * 60 + t.second + part,
    known and { after = change.after - part, by = change.offset - t.offset } or nil
end

--- Yes from one time of day to another, by the clock of this host; over midnight if the second is
--- the earlier one.
---@param from string "22:00"
---@param to string "06:00"
function when.hours(from, to)
  local title = "when.hours"
  local first, last = time_of_day(from, title) % DAY, time_of_day(to, title) % DAY
  if first == last then M.misuse("%s: from %s to %s is no time at all", title, from, to) end
  return threshold(title, function(ctx, want)
    local now, change = wall(ctx.e)
    if not now then return want, "the time of day is not known" end
    local inside = between(now, first, last)
    local function differs(at) return between(at, first, last) ~= inside end
    changes_in(ctx, until_time(now, inside and last or first, change, differs))
    local text = "%02d:%02d is %s %s to %s"
    local hour, minute = floor(now / HOUR), floor(now / 60) % 60
    return inside, format(text, hour, minute, inside and "within" or "not within", from, to)
  end)
end

-- ---- metric_improved ----

local function better(a, b, mode)
  if mode == "min" then return a < b end
  return a > b
end

-- Returns the checkpoint's own number, and the names that it has, for the warning.
local function metric_of(e, name)
  local own, seen = table_at(table_at(e, "checkpoint"), "metrics"), {}
  for i, k in ipairs(M.sorted_keys(own)) do seen[i] = M.show(k) end
  return own[name], M.join(seen, ", ")
end

--- Saves if the metric is better than that of all checkpoints that were saved before for this
--- reason. Equal is no improvement. A checkpoint without the metric is saved, as nothing can be
--- said of it.
---@param name string
---@param mode "min"|"max"
function when.metric_improved(name, mode)
  local title = "when.metric_improved"
  M.need_text(name, title)
  M.need_mode(mode, title)
  local key = format("improved %s %s", mode, name)
  local function judge(ctx, want)
    local v, seen = metric_of(ctx.e, name)
    local best, unit = table_at(ctx.rules, key), table_at(ctx.e, "checkpoint")
    if v == nil then
      local others = seen == "" and "no metric at all" or "only " .. seen
      ctx.warn(format("%s(%q): there is %s: saved all the same", title, name, others))
      return want, format("no %s to judge by", name)
    end
    if not M.is_finite(v) then return false, format("%s is no number", name) end
    -- Asked again about the same one, it is still the best.
    local known = M.is_finite(best.value) and best.value or nil
    local same = known == v and best.unit == unit.name and best.generation == unit.generation
    if known and not same and not better(v, known, mode) then
      return false, format("%s %g is not better than %g", name, v, known)
    end
    ctx.remember[key] = { value = v, unit = unit.name, generation = unit.generation }
    return true, format("%s improved to %g", name, v)
  end
  return M.rule { kind = "when", name = title, judge = judge, metrics = { name } }
end

-- ---- node_sync ----

-- Takes a number of the last result. One that the result lacks counts as reached.
local function reported(result, key, least)
  if not result then return 0 end
  local v = result[key]
  return M.is_finite(v) and v or least
end

local node_sync_keys = { period = true, min_iter = true, min_time_s = true, on_checkpoint = true }

---@class ckpt.node_sync
---@field period? number|string 300 s
---@field min_iter? integer 2
---@field min_time_s? number|string 10 s
---@field on_checkpoint? boolean a checkpoint that was just completed is saved without these

--- Makes the thresholds of Ray's node sync. Nothing is saved while the last result says that both
--- training_iteration < min_iter and time_total_s < min_time_s: one of them reached is enough.
--- Then, not before `period` after the last save; equal is enough.
---@param t ckpt.node_sync
function when.node_sync(t)
  local title = "when.node_sync"
  M.need_keys(t, node_sync_keys, title)
  local period = M.need_seconds(t.period == nil and 300 or t.period, title .. ": period")
  local min_iter = M.need_count(t.min_iter == nil and 2 or t.min_iter, 0, title .. ": min_iter")
  local min_time = t.min_time_s == nil and 10 or t.min_time_s
  min_time = M.need_seconds(min_time, title .. ": min_time_s")
  local forced = t.on_checkpoint
  if period == 0 and min_iter == 0 and min_time == 0 then return when.each_checkpoint() end
  if forced ~= nil and type(forced) ~= "boolean" then
    M.misuse("%s: on_checkpoint: true or false, not %s", title, M.show(forced))
  end
  local named = {}
  if min_iter > 0 then named[1] = "training_iteration" end
  if min_time > 0 then named[#named + 1] = "time_total_s" end
  return threshold(title, function(ctx)
    local e = ctx.e
    if forced and e.event == "complete" then return true, "each checkpoint" end
    local result = type(e.result) == "table" and e.result or nil
    local iteration = reported(result, "training_iteration", min_iter)
    local time = reported(result, "time_total_s", min_time)
    if iteration < min_iter and time < min_time then
      local text = "iteration %g of %d, and %.1f of %g s of training"
      return false, format(text, iteration, min_iter, time, min_time)
    end
    local passed = since(e, "seconds")
    if not passed then return true, "nothing was saved yet" end
    changes_in(ctx, period - passed)
    return passed >= period, format("%.1f of %g s since the last save", passed, period)
  end, named)
end

-- ---- evaluation ----

local answers = { sync = true, skip = false }

local function ask_function(f, ctx)
  local v, reason, again = f(M.hand(ctx.e, ctx.e), ctx.memory)
  M.ask_again(ctx, again)
  if v == nil or type(v) == "boolean" then return v, M.reason(reason, "its function says so") end
  if type(v) ~= "string" or answers[v] == nil then
    local text = '%s: `sync` returned %s: "sync", "skip" or nothing'
    M.fail("answer", format(text, ctx.name, M.show(v)))
  end
  return answers[v], M.reason(reason, "its function says so")
end

-- any: one true is enough; all: one false is enough. Parts without an opinion do not count.
local function judge_parts(body, ctx, want)
  local decisive = body.op ~= "all"
  local reasons = { [true] = {}, [false] = {} }
  for _, part in ipairs(body.parts) do
    local v, reason = M.judge_when(part, ctx, want)
    if v ~= nil then
      local list = reasons[v]
      list[#list + 1] = reason
    end
  end
  if #reasons[decisive] > 0 then return decisive, M.join(reasons[decisive], ", ") end
  if #reasons[not decisive] > 0 then return not decisive, M.join(reasons[not decisive], ", ") end
  return nil
end

--- Evaluates a rule or a function.
---@param ctx table of one question: e, memory, rules, remember, name, warn
---@param want boolean what a rule says that cannot judge
---@return boolean|nil, string|nil
function M.judge_when(rule, ctx, want)
  if type(rule) == "function" then return ask_function(rule, ctx) end
  local body = M.body(rule)
  if body.judge then return body.judge(ctx, want) end
  if body.op ~= "none" then return judge_parts(body, ctx, want) end
  local v, reason = judge_parts(body, ctx, not want)
  if v == nil then return nil end
  return not v, v and "not wanted: " .. reason or reason
end
