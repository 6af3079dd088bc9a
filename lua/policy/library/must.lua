--- must: what no answer of `keep` may break, whatever rule or function gave it.
---
--- A list of rules and functions. Each gets the list before and what of it would be left, and says
--- whether that may be so. Where one says no, or fails, everything stays.
local M = ...

local ipairs, type = ipairs, type
local format = string.format
local concat = table.concat
local min = math.min

local function must_rule(body)
  body.kind = "must"
  return M.rule(body)
end

--- At least n are left; where there are fewer, all of these.
---@param n integer
function M.never_fewer_than(n)
  M.need_count(n, 1, "never_fewer_than")
  return must_rule {
    name = format("never_fewer_than(%d)", n),
    counts = { n },
    holds = function(items, kept)
      local count = 0
      for i = 1, #items do count = count + (kept[i] and 1 or 0) end
      if count >= min(n, #items) then return true end
      return false, format("of %d only %d would be left", #items, count)
    end,
  }
end

-- ---- what a rule would keep survives ----

local function silent() end

local survives = {}
M.survives = survives

-- Lists the names of what is missing, a few of them.
local function missing_text(missing)
  local more = #missing > 3 and format(" and %d more", #missing - 3) or ""
  return concat(missing, ", ", 1, min(3, #missing)) .. more
end

-- What a rule of `keep` keeps, as far as it can judge. The rule is a part of this one.
local function survivor(name, rule)
  local of = M.body(rule)
  return must_rule {
    name = name,
    parts = { rule },
    counts = of.counts,
    steps = of.steps,
    holds = function(items, kept)
      local wanted = M.judge_keep(rule, items, { warn = silent }, false)
      local missing = {}
      for i, item in ipairs(items) do
        if wanted[i] and not kept[i] then missing[#missing + 1] = item.name end
      end
      return #missing == 0, missing_text(missing) .. " would not be left"
    end,
  }
end

--- The n newest are left.
---@param n integer
function survives.last(n)
  M.need_count(n, 1, "survives.last")
  return survivor(format("survives.last(%d)", n), M.keep.last(n))
end

--- Those are left whose step is a multiple of n; one without a step is not asked about.
---@param n integer
function survives.every_steps(n)
  M.need_count(n, 1, "survives.every_steps")
  return survivor(format("survives.every_steps(%d)", n), M.keep.every_steps(n))
end

--- One that has the best score by a metric is left. Where none has a score, nothing is asked.
---@param metric string
---@param mode "min"|"max"
function survives.best(metric, mode)
  M.need_text(metric, "survives.best")
  M.need_mode(mode, "survives.best")
  local sign = mode == "min" and 1 or -1
  local function score_of(item)
    local v = M.table_at(item, "metrics")[metric]
    return M.is_finite(v) and sign * v or nil
  end
  return must_rule {
    name = format("survives.best(%q, %q)", metric, mode),
    metrics = { metric },
    counts = { 1 },
    holds = function(items, kept)
      local best, of, left
      for _, item in ipairs(items) do
        local v = score_of(item)
        if v and (not best or v <= best) then best, of = v, item.name end
      end
      for i, item in ipairs(items) do left = left or kept[i] and score_of(item) == best end
      if not best or left then return true end
      return false, format("%s would not be left, the best with %s = %g", of, metric, sign * best)
    end,
  }
end

-- ---- the key ----

local EXPECTED = "a list of rules as never_fewer_than(2), survives.best(\"loss\", \"min\"), and of "
  .. "functions (before, after)"
local MOST = 32

-- Returns the meaning of one entry; nil: it is none.
local function entry_of(v, policy)
  local body = M.body(v)
  if body and body.kind == "must" then return body end
  if not M.is_function(v) then return nil end
  return { name = "its function", line = M.line_of(v), of_policy = v, policy = policy.name }
end

--- Takes the value of the key `must`; returns what it should have been if it is wrong.
function M.must_entries(v, policy)
  local list, out = v, {}
  if M.body(v) or type(v) ~= "table" then list = { v } end
  local n = M.list_length(list)
  if not n or n == 0 then return nil, EXPECTED end
  if n > MOST then return nil, format("a list of at most %d rules", MOST) end
  for i = 1, n do
    out[i] = entry_of(list[i], policy)
    if not out[i] then
      return nil, format("%s; entry %d is %s", EXPECTED, i, M.describe(list[i]))
    end
  end
  return out
end

-- ---- testing ----

local function ask_function(entry, items, kept, ctx)
  local before, after = {}, {}
  for i, item in ipairs(items) do
    before[i] = M.hand(ctx.e, item)
    if kept[i] then after[#after + 1] = before[i] end
  end
  local holds, why = entry.of_policy(before, after)
  if type(holds) ~= "boolean" then
    local text = "%s: `must` returned %s: true or false, and a reason"
    M.fail("answer", format(text, entry.line, M.show(holds)))
  end
  return holds, M.reason(why, "it says no")
end

--- Asks one entry whether it may be so.
---@param entry table of a policy's `must`
---@param items table[] the list, as it is
---@param kept boolean[] of each
---@param ctx table with the event, `e`
---@return boolean holds
---@return string? why not
function M.must_holds(entry, items, kept, ctx)
  if entry.of_policy then return ask_function(entry, items, kept, ctx) end
  return entry.holds(items, kept)
end

--- True if any policy of the chain has the key.
function M.has_must()
  for _, policy in ipairs(M.chain) do
    if policy.must then return true end
  end
  return false
end

--- Tells the first entry of a chain that says no of what would be left.
---@return table? entry nil: all say yes
---@return string? why
---@return string? name of its policy
function M.broken_must(items, kept, ctx)
  for _, policy in ipairs(M.chain) do
    for _, entry in ipairs(policy.must or {}) do
      local holds, why = M.must_holds(entry, items, kept, ctx)
      if not holds then return entry, why, policy.name end
    end
  end
end
