--- keep: rules that pick the checkpoints of a list that stay.
---
--- A rule gets the list newest first and answers two lists of the same length: kept (true or false)
--- and a reason for each. A rule that cannot judge keeps: `want` is what it then answers for the
--- whole list, which is true, and false below none{}; nothing goes because a rule was blind.
local M = ...

local ipairs, pairs, type = ipairs, pairs, type
local format = string.format
local floor, huge, min = math.floor, math.huge, math.min
local sort = table.sort

local keep = {}
M.keep = keep

-- ---- order ----

local function newer(a, b)
  if a.number ~= b.number then return a.number > b.number end
  if a.time ~= b.time then return a.time > b.time end
  if a.step ~= b.step then return a.step > b.step end
  return a.name > b.name
end

local function later(a, b)
  if a.time ~= b.time then return a.time > b.time end
  return newer(a, b)
end

local function lower(a, b)
  if a.score == b.score then return newer(a, b) end
  return a.score < b.score
end

local function higher(a, b)
  if a.score == b.score then return newer(a, b) end
  return a.score > b.score
end

-- Sorts a list unless it is in order already, which it mostly is: looking is cheaper than sorting.
local function sort_unless_sorted(list, before)
  for i = 2, #list do
    if before(list[i], list[i - 1]) then
      sort(list, before)
      return
    end
  end
end

-- As M.is_finite says, with one call less.
local function number_or(v, default)
  if type(v) == "number" and v - v == 0 then return v end
  return default
end

-- Returns the list as the rules see it: numbers that can be compared, newest first; `at` is the
-- place in the policy's list.
local function in_order(items)
  local list, place, last, sorted = {}, 0, huge, true
  for i = #items, 1, -1 do
    local item = items[i]
    local number = number_or(item.number, 0)
    place = place + 1
    list[place] = {
      at = i,
      item = item,
      number = number,
      time = number_or(item.time, 0),
      step = number_or(item.step, -1),
      name = type(item.name) == "string" and item.name or "",
      place = place,
    }
    sorted = sorted and number < last
    last = number
  end
  if sorted then return list end
  sort_unless_sorted(list, newer)
  for i, row in ipairs(list) do row.place = i end
  return list
end
M.in_order = in_order

-- ---- rules ----

-- `looks`: what it looks at, for who makes up lists: names of `metrics`, and its constants, which
-- are `counts` of checkpoints, `steps`, `times` (seconds), `sizes` (bytes). Rules of one name with
-- the same `same` decide alike. `alone`: it looks at each checkpoint by itself.
local function rule(name, judge, looks)
  looks.kind, looks.name, looks.judge = "keep", name, judge
  return M.rule(looks)
end

-- Answers for all rows alike.
local function all_rows(list, value, reason)
  local kept, why = {}, {}
  for i = 1, #list do
    kept[i], why[i] = value, reason
  end
  return kept, why
end

--- Keeps all of them.
function keep.all()
  return rule("keep.all", function(list) return all_rows(list, true, "all are kept") end, {})
end

--- Keeps the n newest.
---@param n integer
function keep.last(n)
  M.need_count(n, 1, "keep.last")
  local yes, no = format("among the last %d", n), format("older than the last %d", n)
  return rule("keep.last", function(list)
    local kept, why = {}, {}
    for i = 1, #list do
      kept[i] = i <= n
      why[i] = kept[i] and yes or no
    end
    return kept, why
  end, { same = n, counts = { n } })
end

local function metrics_of(row)
  local metrics = row.item.metrics
  return type(metrics) == "table" and metrics or {}
end

-- Returns the rows with a score that can be compared.
local function scored(list, metric)
  local rows = {}
  local count = 0
  for i = 1, #list do
    local row = list[i]
    local metrics = row.item.metrics
    local v = type(metrics) == "table" and metrics[metric]
    if type(v) == "number" and v - v == 0 then -- as M.is_finite says, without a call
      count = count + 1
      row.score, rows[count] = v, row
    end
  end
  return rows
end

local FEW = 32

-- Returns the first n rows in an order. A few of many are found in one walk: sorting long lists
-- would cost most of the budget.
local function first_in(rows, n, before)
  if n > FEW or #rows <= n then
    sort(rows, before)
    return rows
  end
  local top, last = {}, nil
  for i = 1, #rows do
    local row = rows[i]
    if not last or before(row, last) then
      local place = min(#top + 1, n)
      while place > 1 and before(row, top[place - 1]) do
        top[place] = top[place - 1]
        place = place - 1
      end
      top[place] = row
      last = top[n]
    end
  end
  return top
end

-- Lists the names that there are instead, for the warning.
local function names_seen(list)
  local names, out = {}, {}
  for _, row in ipairs(list) do
    for name in pairs(metrics_of(row)) do names[name] = true end
  end
  for i, name in ipairs(M.sorted_keys(names)) do
    if i <= 10 then out[i] = M.show(name) end
  end
  return #out == 0 and "no metrics at all" or "only " .. M.join(out, ", ")
end

--- Keeps the n best by a metric. Of equal scores the newer one is better: it has more training in
--- it. (ckpt.CheckpointManager keeps the older, as Ray does.) The newest of all is kept too,
--- whatever its score. A checkpoint without one (no number, NaN, infinite) is never among the best
--- and takes nobody's place. If none has a score, all are kept.
---@param metric string
---@param n integer
---@param mode "min"|"max"
function keep.best(metric, n, mode)
  M.need_text(metric, "keep.best")
  M.need_count(n, 1, "keep.best")
  M.need_mode(mode, "keep.best")
  local yes = format("among the %d best by %s", n, metric)
  local no = "not " .. yes
  local before = mode == "min" and lower or higher
  return rule("keep.best", function(list, ctx, want)
    local rows = scored(list, metric)
    if #rows == 0 then
      if #list == 0 then return {}, {} end
      local text = "keep.best(%q): no checkpoint has such a number, there are %s: all are kept"
      ctx.warn(format(text, metric, names_seen(list)))
      return all_rows(list, want, "none has " .. metric)
    end
    local best = first_in(rows, n, before)
    local kept, why = all_rows(list, false, no)
    for i = 1, min(n, #best) do
      kept[best[i].place], why[best[i].place] = true, yes
    end
    if not kept[1] then
      kept[1], why[1] = true, "the newest"
    end
    return kept, why
  end, { same = format("%q %d %s", metric, n, mode), metrics = { metric }, counts = { n } })
end

--- Keeps those whose step is a multiple of n. One without a step cannot be judged, and is kept.
---@param n integer
function keep.every_steps(n)
  M.need_count(n, 1, "keep.every_steps")
  local yes = format("its step is a multiple of %d", n)
  local no = format("its step is no multiple of %d", n)
  return rule("keep.every_steps", function(list, _, want)
    local kept, why = {}, {}
    for i, row in ipairs(list) do
      if row.step < 0 then
        kept[i], why[i] = want, "it has no step"
      else
        kept[i] = row.step % n == 0
        why[i] = kept[i] and yes or no
      end
    end
    return kept, why
  end, { same = n, steps = { n }, alone = true })
end

--- Keeps those not older than this before the newest (not before now: a job that rests loses
--- nothing).
---@param span number|string
function keep.within(span)
  local s = M.need_seconds(span, "keep.within")
  local text = M.show_seconds(s)
  local yes = format("within %s of the newest", text)
  local no = format("older than %s before the newest", text)
  return rule("keep.within", function(list, _, want)
    local kept, why, newest = {}, {}, 0
    for _, row in ipairs(list) do
      if row.time > newest then newest = row.time end
    end
    for i, row in ipairs(list) do
      if row.time <= 0 then
        kept[i], why[i] = want, "its time is not known"
      else
        kept[i] = newest - row.time <= s
        why[i] = kept[i] and yes or no
      end
    end
    return kept, why
  end, { same = s, times = { s } })
end

--- Keeps the newest that fit together into so many bytes: up to the first that does not. The newest
--- stays whatever its size.
---@param size number|string
function keep.budget(size)
  local most = M.bytes(size)
  if not most or most == 0 then
    M.misuse('keep.budget: a size as "500GB", "2TiB" or bytes, not %s', M.show(size))
  end
  local text = M.show_bytes(most)
  local yes, no = format("within %s from the newest on", text), format("beyond %s", text)
  return rule("keep.budget", function(list, _, want)
    local kept, why = {}, {}
    local sum, full = 0, false
    for i, row in ipairs(list) do
      local bytes = number_or(row.item.bytes, -1)
      if bytes < 0 then
        kept[i], why[i] = want, "its size is not known"
      else
        sum = sum + bytes
        full = full or sum > most
        kept[i] = not full or i == 1
        why[i] = not full and yes or kept[i] and "the newest" or no
      end
    end
    return kept, why
  end, { same = most, sizes = { most } })
end

local LEAST_FACTOR = 1.05

--- Keeps the newest and, of those before it, fewer the older they are: one for each span of age
--- that is `factor` times as long as the span before it. Of a span the oldest one stays, which goes
--- on into the next span as it ages: what is kept stays spread out however often it is asked.
---@param factor number
function keep.spaced(factor)
  if not M.is_finite(factor) or factor < LEAST_FACTOR then
    M.misuse("keep.spaced: a number of at least %g, not %s", LEAST_FACTOR, M.show(factor))
  end
  local yes = format("the oldest of its age, in spans that grow by %g", factor)
  local no = format("not the oldest of its age, in spans that grow by %g", factor)
  return rule("keep.spaced", function(list, _, want)
    local kept, why = all_rows(list, false, no)
    local rows = {}
    for i, row in ipairs(list) do
      if row.time > 0 then
        rows[#rows + 1] = row
      else
        kept[i], why[i] = want, "its time is not known"
      end
    end
    sort_unless_sorted(rows, later)
    local span = 1 -- in seconds, at which the present one ends
    for i, row in ipairs(rows) do
      local age, before = rows[1].time - row.time, rows[i + 1] and rows[1].time - rows[i + 1].time
      while age > span do span = span * factor end
      if i == 1 then
        kept[row.place], why[row.place] = true, "the newest"
      elseif not before or before > span then
        kept[row.place], why[row.place] = true, yes
      end
    end
    return kept, why
  end, { same = factor, times = { 1, factor, factor ^ 2, factor ^ 3, factor ^ 4 } })
end

-- ---- the calendar ----

-- Returns year and month (1 to 12) of a day counted from 1970-01-01 in the Gregorian calendar.
-- Years begin in March here, so that the leap day is the last of a year; 400 years are always
-- 146,097 days.
local function year_and_month(day)
  local z = day + 719468
  local era = floor(z / 146097)
  local of_era = z - era * 146097
  local year = floor(
    (of_era - floor(of_era / 1460) + floor(of_era / 36524) - floor(of_era / 146096)) / 365
  )
  local of_year = of_era - (365 * year + floor(year / 4) - floor(year / 100))
  local shifted = floor((5 * of_year + 2) / 153)
  local month = shifted < 10 and shifted + 3 or shifted - 9
  return year + era * 400 + (month <= 2 and 1 or 0), month
end

local function day_of(t) return floor(t / 86400) end

-- Times with the same number are of one hour, day, week (from Monday on), month, year, in UTC.
local calendar = {
  hourly = function(t) return floor(t / 3600) end,
  daily = day_of,
  weekly = function(t) return floor((day_of(t) + 3) / 7) end,
  monthly = function(t)
    local year, month = year_and_month(day_of(t))
    return year * 12 + month
  end,
  yearly = function(t) return (year_and_month(day_of(t))) end,
}

-- Keeps by periods as restic does: the newest of each of the last n periods that have one; while
-- there are periods left, also the oldest of all.
local function periods(name, n, bucket_of)
  local yes, oldest = format("%s, among %d", name, n), format("the oldest, %s", name)
  local no = format("not the newest of the last %d (%s)", n, name)
  return function(list, _, want)
    local kept, why = all_rows(list, false, no)
    local rows = {}
    for i, row in ipairs(list) do
      if row.time > 0 then
        rows[#rows + 1] = row
      else
        kept[i], why[i] = want, "its time is not known"
      end
    end
    sort_unless_sorted(rows, later)
    local left, last = n, nil
    for i, row in ipairs(rows) do
      local bucket = bucket_of(row.time)
      if left > 0 and (bucket ~= last or i == #rows) then
        kept[row.place], why[row.place] = true, bucket ~= last and yes or oldest
        last, left = bucket, left - 1
      end
    end
    return kept, why
  end
end

-- The longest that a period can be.
local longest = { hourly = 3600, daily = 86400, weekly = 7 * 86400 }
longest.monthly, longest.yearly = 31 * 86400, 366 * 86400

for name, bucket_of in M.each(calendar) do
  keep[name] = function(n)
    M.need_count(n, 1, "keep." .. name)
    local looks = { same = n, counts = { n }, times = { longest[name] } }
    return rule("keep." .. name, periods(name, n, bucket_of), looks)
  end
end

-- ---- functions ----

-- Turns the result of a policy's function into places: it has items of the list that it was given,
-- or names.
local function places_of(returned, copies, list, title)
  local kept, of_name, of_item = {}, {}, {}
  for i, row in ipairs(list) do
    of_item[copies[row.at]] = i
    of_name[row.name] = of_name[row.name] or {}
    of_name[row.name][#of_name[row.name] + 1] = i
  end
  if type(returned) ~= "table" or not M.list_length(returned) then
    M.fail("answer", format("%s returned %s: a list of those to keep", title, M.show(returned)))
  end
  for _, v in ipairs(returned) do
    local places = of_item[v] and { of_item[v] } or of_name[v]
    if not places then
      M.fail("answer", format("%s returned %s, which is not in the list", title, M.show(v)))
    end
    for _, i in ipairs(places) do kept[i] = true end
  end
  return kept
end

local function ask_function(f, list, ctx)
  -- Two lists of the same copies: the function may sort or empty its own.
  local given, copies = {}, {}
  for i, item in ipairs(ctx.items) do
    copies[i] = M.hand(ctx.e, item)
    given[i] = copies[i]
  end
  local returned, reason = f(given, ctx.memory, M.hand(ctx.e, ctx.e))
  if returned == nil then return nil end
  local yes = M.reason(reason, "its function keeps it")
  local named = places_of(returned, copies, list, format("%s: `%s`", ctx.name, ctx.hook))
  local kept, why = {}, {}
  for i = 1, #list do
    kept[i] = named[i] == true
    why[i] = kept[i] and yes or "its function does not keep it"
  end
  return kept, why
end

-- ---- evaluation ----

-- Merges the words of several rules on the same rows into those of the first: `decisive` of any of
-- them decides. With long lists most of the budget goes here, so it makes no tables for a row; and
-- most rows have the same reasons as the one before, which are joined already.
local function merge(results, count, decisive)
  local kept, why = results[1].kept, results[1].why
  for j = 2, #results do
    local values, reasons = results[j].kept, results[j].why
    local text, reason, joined
    for i = 1, count do
      local value = values[i]
      if value ~= kept[i] then
        if value == decisive then
          kept[i], why[i] = value, reasons[i]
        end
      elseif reasons[i] ~= why[i] then
        if why[i] ~= text or reasons[i] ~= reason then
          text, reason = why[i], reasons[i]
          joined = text .. ", " .. reason
        end
        why[i] = joined
      end
    end
  end
  return kept, why
end

local function judge_parts(body, list, ctx, want)
  local results = {}
  for _, part in ipairs(body.parts) do
    local kept, why = M.judge_rows(part, list, ctx, want)
    if kept then results[#results + 1] = { kept = kept, why = why } end
  end
  if #results == 0 then return nil end
  return merge(results, #list, body.op ~= "all")
end

function M.judge_rows(v, list, ctx, want)
  if type(v) == "function" then return ask_function(v, list, ctx) end
  local body = M.body(v)
  if body.judge then return body.judge(list, ctx, want) end
  if body.op ~= "none" then return judge_parts(body, list, ctx, want) end
  local kept, why = judge_parts(body, list, ctx, not want)
  for i = 1, kept and #list or 0 do
    if kept[i] then why[i] = "not wanted: " .. why[i] end
    kept[i] = not kept[i]
  end
  return kept, why
end

--- Returns which of `items` (oldest first, as the engine hands them over) a rule or a function
--- keeps: a list of true and false and one of reasons, in the order of `items`; nil: it has no
--- opinion.
---@param ctx { e: table, memory: table, name: string, hook: string, warn: function }
---@param want? boolean what a rule answers that cannot judge; nil: true
function M.judge_keep(v, items, ctx, want)
  local list, kept, why = in_order(items), {}, {}
  ctx.items = items
  local by_row, reasons = M.judge_rows(v, list, ctx, want ~= false)
  if not by_row then return nil end
  for i = #list, 1, -1 do -- mostly in the order of `items`: one filled from its end grows slowly
    local at = list[i].at
    kept[at], why[at] = by_row[i], reasons[i]
  end
  return kept, why
end
