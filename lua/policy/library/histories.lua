--- Makes up lists of checkpoints, all that there are of a kind or a known part of them.
---
--- What a rule looks at is a dimension: the order by a metric, the steps, the times, the bytes. Of
--- each the next checkpoint of a list has so many choices, the first of which is the usual one. A
--- walk goes through all choices of all checkpoints; where these are too many, through those lists
--- in which at most so many choices differ from the usual one, once for each way to be usual.
local M = ...

local ipairs, type = ipairs, type
local format = string.format
local ceil, huge, max = math.ceil, math.huge, math.max

local NAN = 0 / 0
local BEGIN = 1704067200 -- a Monday, the first of a month and of a year, in UTC
local HOUR, USUAL_BYTES = 3600, 1e9

-- ---- the order by a metric ----

-- How many orders of 1, 2, ... there are, equal ones and those without a number among them; of 8,
-- in which each has a number.
local ORDERS = { 2, 6, 26, 150, 1082, 9366, 94586, 545835 }
local NUMBERED = 8 -- so long lists, which are all gone through, have numbers only

-- The usual next one: better than all, worse than all, as the one before, without a number.
local ORDER_BASES = 4

local function usual_place(base, places)
  if base == 1 then return 2 * places + 1 end
  if base == 2 then return places + 1 end
  return base == 3 and max(places, 1) or 0
end

-- A checkpoint gets a number between those of the ones before, or the same as one of them, or none.
-- Without a number it has NaN at even places of the list and nothing at odd ones.
local function start_order(metric, base, count)
  local known = { [0] = {} } -- the different numbers after k checkpoints, ascending
  local none = count == NUMBERED and base ~= 4 and 0 or 1 -- a choice is to have no number
  local width = function(k) return 2 * #known[k - 1] + 1 + none end
  local function put(k, choice, item)
    local before = known[k - 1]
    local places = #before
    local v
    local at = (usual_place(base, places) + choice - 2 + none) % (2 * places + 1 + none) + 1 - none
    known[k] = before
    if at == 0 then
      v = k % 2 == 0 and NAN or nil
    elseif at <= places then
      v = before[at]
    else
      local above, after = at - places, {}
      local low, high = before[above - 1], before[above]
      v = low and high and (low + high) / 2 or low and low + 1 or high and high - 1 or 0
      for i = 1, k < count and places + 1 or 0 do -- nobody comes after the last one
        after[i] = i < above and before[i] or i == above and v or before[i - 1]
      end
      known[k] = after
    end
    item.metrics[metric] = v
  end
  return { width = width, put = put }
end

local function order_dimension(metric)
  return {
    name = format("metric %s", metric),
    metric = metric,
    bases = ORDER_BASES,
    mean = function(count) return count + 2 end,
    all = function(count) return ORDERS[count] or huge end,
    start = function(base, count) return start_order(metric, base, count) end,
  }
end

-- ---- dimensions of few choices ----

local function add_choice(choices, v)
  for _, known in ipairs(choices) do
    if known == v then return end
  end
  choices[#choices + 1] = v
end

-- `new_put(choices)` makes the function that gives checkpoint k a choice; false: it has none.
local function dimension(name, choices, bases, new_put)
  return {
    name = name,
    choices = choices,
    bases = #bases,
    mean = function() return #choices end,
    all = function(count) return (#choices) ^ count end,
    start = function(base)
      local put, usual = new_put(), bases[base]
      return {
        width = function() return #choices end,
        put = function(k, choice, item, row)
          put(k, choices[(usual + choice - 2) % #choices + 1], item, row)
        end,
      }
    end,
  }
end

local function place_of(choices, v)
  for i, known in ipairs(choices) do
    if known == v then return i end
  end
end

local EXACT, MULTIPLES = 2 ^ 53, 200

local function common_multiple(a, b)
  local x, y = a, b
  while y > 0 do x, y = y, x % y end
  return a / x * b
end

-- Adds the least common multiple of some of the steps, for each choice of some: so there is a step
-- for whatever of them can divide one. Returns whether these are too many.
local function add_multiples(choices, steps)
  local multiples = { 1 }
  for _, c in ipairs(steps) do
    for i = 1, #multiples do
      local v = common_multiple(multiples[i], c)
      if v <= EXACT then add_choice(multiples, v) end
    end
    if #multiples > MULTIPLES then return true end
  end
  for i = 2, #multiples do add_choice(choices, multiples[i]) end
  return false
end

local function step_dimension(steps)
  local choices = {}
  for _, c in ipairs(steps) do
    for _, v in ipairs { c + 1, c, c - 1, 2 * c } do
      if v >= 0 then add_choice(choices, v) end
    end
  end
  add_choice(choices, 0)
  local left_out = add_multiples(choices, steps)
  choices[#choices + 1] = false
  local made = dimension("step", choices, { 1, 2 }, function()
    return function(_, v, item, row)
      item.step, row.step = v or nil, v or -1
    end
  end)
  made.left_out = left_out
  return made
end

local function time_dimension(times)
  local choices, bases = { 1, 0 }, { 1 }
  for _, c in ipairs(times) do
    local least = c >= 10 and 1 or c / 8
    for _, v in ipairs { c + least, c, c - least } do
      if v > 0 then add_choice(choices, v) end
    end
    bases[#bases + 1] = place_of(choices, c + least)
  end
  choices[#choices + 1] = false
  return dimension("time", choices, bases, function()
    local clock = { [0] = BEGIN }
    return function(k, v, item, row)
      clock[k] = clock[k - 1] + (v or 1)
      item.time = v and clock[k] or 0
      row.time = item.time
    end
  end)
end

local function size_dimension(sizes)
  local choices, bases = { 1 }, { 1 }
  for _, c in ipairs(sizes) do
    for _, v in ipairs { c, c + 1, c - 1, c / 2, c / 2 + 1 } do add_choice(choices, v) end
    bases[#bases + 1] = place_of(choices, c / 2)
  end
  choices[#choices + 1] = false
  return dimension("bytes", choices, bases, function()
    return function(_, v, item) item.bytes = v or nil end
  end)
end

--- Makes the dimensions in which lists are made up for what is looked at.
---@param looks { metrics: string[], steps: number[], times: number[], sizes: number[] }
function M.dimensions(looks)
  local out = {}
  for _, metric in ipairs(looks.metrics) do out[#out + 1] = order_dimension(metric) end
  if #looks.steps > 0 then out[#out + 1] = step_dimension(looks.steps) end
  if #looks.times > 0 then out[#out + 1] = time_dimension(looks.times) end
  if #looks.sizes > 0 then out[#out + 1] = size_dimension(looks.sizes) end
  return out
end

-- ---- a walk ----

--- Makes the list in which nothing is unusual.
function M.usual_list(count)
  local items = {}
  for i = 1, count do
    items[i] = {
      number = i,
      name = "c" .. i,
      dir = "c" .. i,
      step = i,
      time = BEGIN + i * HOUR,
      age = (count - i) * HOUR,
      files = 1,
      bytes = USUAL_BYTES,
      metrics = {},
      kind = "perm",
      newest = i == count,
      pinned = false,
      durable = true,
    }
  end
  return items
end

-- Returns how many choices may differ from the usual so that about `limit` lists are made.
local function most_unusual(dimensions, count, limit)
  local slots, others = #dimensions * count, 0
  for _, d in ipairs(dimensions) do others = others + (d.mean(count) - 1) / #dimensions end
  local lists, ways, most = 1, 1, 0
  while most < slots do
    ways = ways * (slots - most) / (most + 1) * others
    if lists + ways > limit then break end
    lists, most = lists + ways, most + 1
  end
  return most
end

-- Returns the ways to be usual, each a base for each dimension, and how much may differ from it.
local function turns_of(dimensions, count, limit, alone)
  local all, first, turns = 1, {}, {}
  for i, d in ipairs(dimensions) do
    all, first[i] = all * d.all(count), 1
  end
  if alone then return { first }, 1 end
  if all <= limit then return { first }, huge end
  for i, d in ipairs(dimensions) do
    for base = i == 1 and 1 or 2, d.bases do
      local turn = {}
      for j = 1, #dimensions do turn[j] = j == i and base or 1 end
      turns[#turns + 1] = turn
    end
  end
  return turns, most_unusual(dimensions, count, limit / #turns)
end

--- Makes a walk: `next()` makes the next list in `items` (and `rows`, as rules take them) and
--- returns true, or false after the last. `whole`: it goes through all lists that there are.
---@param dimensions table[]
---@param count integer of checkpoints in a list
---@param limit integer about so many lists are made
---@param alone? boolean each checkpoint counts by itself: one that is not usual shows all
function M.walk(dimensions, count, limit, alone)
  local items = M.usual_list(count)
  local rows = M.in_order(items)
  local each, slots = #dimensions, #dimensions * count
  local turns, most = turns_of(dimensions, count, limit, alone)
  local started, width, digit, unusual, turn = {}, {}, {}, { [0] = 0 }, 0
  local function put(s)
    local k = ceil(s / each)
    started[(s - 1) % each + 1].put(k, digit[s], items[k], rows[count + 1 - k])
  end
  local function fill(from)
    for s = from, slots do
      local dim = started[(s - 1) % each + 1]
      width[s] = unusual[s - 1] < most and dim.width(ceil(s / each)) or 1
      digit[s], unusual[s] = 1, unusual[s - 1]
      put(s)
    end
    return true
  end
  local function next_turn()
    turn = turn + 1
    if turn > max(#turns, 1) then return false end
    for i, d in ipairs(dimensions) do started[i] = d.start(turns[turn][i], count) end
    return fill(1)
  end
  local function next_list()
    for s = turn > 0 and slots or 0, 1, -1 do
      if digit[s] < width[s] then
        digit[s], unusual[s] = digit[s] + 1, unusual[s - 1] + 1
        put(s)
        return fill(s + 1)
      end
    end
    return next_turn()
  end
  return { next = next_list, items = items, rows = rows, whole = alone or most == huge }
end

-- ---- which sizes ----

local WHOLE, MOST = 8, 1001

--- Returns the sizes of lists that are looked at, ascending: up to 8, and around each number of
--- checkpoints that a rule names; and whether one was too large.
function M.sizes_of(counts)
  local wanted, out, left_out = {}, {}, false
  for n = 1, WHOLE do wanted[n] = true end
  for _, c in ipairs(counts) do
    for n = c, c + 2 do
      if n <= MOST then wanted[n] = true end
    end
    left_out = left_out or c + 1 > MOST
  end
  for n in M.each(wanted) do out[#out + 1] = n end
  return out, left_out
end

-- ---- what is looked at ----

local CONSTANTS = { "metrics", "counts", "steps", "times", "sizes" }

--- Adds what a rule, or an entry of `must`, looks at, and its parts.
function M.note_looks(looks, body)
  for _, key in ipairs(CONSTANTS) do
    for _, v in ipairs(type(body[key]) == "table" and body[key] or {}) do
      add_choice(looks[key], v)
    end
  end
  for _, part in ipairs(body.parts or {}) do
    local of = M.body(part)
    if of then M.note_looks(looks, of) end
  end
end

--- Makes an empty set of what is looked at.
function M.no_looks()
  local looks = {}
  for _, key in ipairs(CONSTANTS) do looks[key] = {} end
  return looks
end
