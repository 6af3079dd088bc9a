--- Looks for the smallest list of checkpoints on which something is so, a piece at a time: each
--- request of a check may take no longer than a question.
local M = ...

local ipairs, type = ipairs, type
local format, match = string.format, string.match
local concat, remove = table.concat, table.remove
local floor, max, min = math.floor, math.max, math.min

local checks = M.checks

-- ---- pieces ----

-- Lists are of different length, and functions cost more than rules: so many rows go through so
-- many rules in one piece, which is about a third of what a question may take.
local WORK = 40000

--- Makes a search: piece(work) goes on, and returns true when it is at its end.
---@param sizes integer[] of lists, in the order in which they are looked at
---@param new_walks fun(size: integer): table[] one after the other
---@param visit fun(walk: table, size: integer): boolean? true: enough was seen
---@param at_end? fun(size: integer): boolean? of a size; true: enough was seen
function M.searcher(sizes, new_walks, visit, at_end)
  local place, walks, of = 0, {}, 1
  local search = { lists = 0, whole = true }
  local function next_walk()
    of = of + 1
    if walks[of] then return true end
    if place > 0 and at_end and at_end(sizes[place]) then return false end
    place, of = place + 1, 1
    search.size = sizes[place] -- the one that is looked at; nil: none is any more
    if not sizes[place] then return false end
    walks = new_walks(sizes[place])
    return walks[1] ~= nil or next_walk()
  end
  local running
  function search.piece(cost)
    running = running or next_walk()
    local left = WORK
    while running and left > 0 do
      local walk = walks[of]
      if walk.next() then
        search.lists, left = search.lists + 1, left - max(1, sizes[place] * cost)
        if visit(walk, sizes[place]) then return true end
      else
        search.whole = search.whole and walk.whole
        running = next_walk()
      end
    end
    return not running
  end
  return search
end

-- ---- what a function looks at ----

local function silent() end

--- Makes what a rule or a function is asked with.
function M.made_up_context(policy, hook, items, trial)
  local now = items[#items].time + 1
  return {
    e = { event = hook, list = items, now = now, run = "", group = "", trial = trial },
    name = policy.name,
    hook = hook,
    memory = {},
    warn = silent,
  }
end

local NUMERALS = 4
local LEAST_SIZE = 1e6 -- a smaller number is hardly meant to be bytes

--- Adds what functions of a policy look at: the metrics that they read in a usual list, and the
--- numbers in the file.
---@param ask fun(ctx: table) asks them
function M.note_functions(looks, policy, hook, ask)
  local items = M.usual_list(3)
  local seen = M.watch_begin()
  ask(M.made_up_context(policy, hook, items, { numbers = true }), items)
  for _, metric in ipairs(M.sorted_keys(seen.metrics)) do
    M.note_looks(looks, { metrics = { metric } })
  end
  for _, n in ipairs(M.numerals(M.texts[policy.name] or "", NUMERALS)) do
    if n >= LEAST_SIZE then M.note_looks(looks, { sizes = { n } }) end
    if n % 1 == 0 and n < LEAST_SIZE then M.note_looks(looks, { steps = { n } }) end
  end
end

-- ---- telling a list ----

local function number_text(v)
  if v ~= v then return "NaN" end
  return format("%.10g", v)
end

--- Says of one made-up checkpoint what of it is not as of all.
---@param looks table what was varied
function M.item_text(looks, item, newest)
  local out = {}
  for _, metric in ipairs(looks.metrics) do
    local v = item.metrics[metric]
    out[#out + 1] = v and format("%s = %s", metric, number_text(v)) or "no " .. metric
  end
  if #looks.steps > 0 then out[#out + 1] = item.step and "step " .. item.step or "no step" end
  if #looks.times > 0 then
    local age = newest - item.time
    out[#out + 1] = item.time <= 0 and "no time" or number_text(age) .. " s old"
  end
  if #looks.sizes > 0 then
    out[#out + 1] = item.bytes and number_text(item.bytes) .. " bytes" or "no size"
  end
  return #out > 0 and format("%s (%s)", item.name, concat(out, ", ")) or item.name
end

function M.newest_time(items)
  local newest = 0
  for _, item in ipairs(items) do newest = max(newest, item.time) end
  return newest
end

-- ---- must ----

local MUST_LISTS, FUNCTION_LISTS = 1200, 300 -- of each size
local PAIRED_MOST = 6
local COUNT_MOST = 1000 -- a larger number is hardly meant to be one of checkpoints

local function is_function_in(v)
  local body = M.body(v)
  return type(v) == "function" or body ~= nil and body.has_function == true
end

-- Returns what of a list the policy's `keep` leaves; nil: it has no opinion.
local function left_of(policy, items)
  return M.judge_keep(policy.hooks.keep, items, M.made_up_context(policy, "keep", items))
end

-- What several rules keep together, as in any { keep.last(3), keep.best("loss", 5) }, is tried like
-- what each of them keeps: two of them, and all. Of many rules there are too many pairs.
local function with_sums(counts)
  local known, sum = {}, 0
  for i, a in ipairs(counts) do
    known[a], sum = true, sum + a
    for k = 1, min(i, PAIRED_MOST) - 1 do known[a + counts[k]] = true end
  end
  if sum > 0 then known[sum] = true end
  return M.sorted_keys(known)
end

-- A function counts its lists by numbers that are in the file alone.
local function note_counts(looks, policy)
  for _, n in ipairs(M.numerals(M.texts[policy.name] or "", NUMERALS)) do
    if n % 1 == 0 and n <= COUNT_MOST then M.note_looks(looks, { counts = { n } }) end
  end
end

local function looks_of_must(policy)
  local looks, functions = M.no_looks(), is_function_in(policy.hooks.keep)
  local body = M.body(policy.hooks.keep)
  if body then M.note_looks(looks, body) end
  for _, entry in ipairs(policy.must) do
    M.note_looks(looks, entry)
    functions = functions or entry.of_policy ~= nil
  end
  if not functions then return looks, false end
  note_counts(looks, policy)
  M.note_functions(looks, policy, "keep", function(ctx, items)
    local kept = M.judge_keep(policy.hooks.keep, items, ctx) or { true, true, true }
    for _, entry in ipairs(policy.must) do M.must_holds(entry, items, kept, ctx) end
  end)
  return looks, true
end

local function must_text(looks, entry, items, kept, why)
  local all, left, newest = {}, {}, M.newest_time(items)
  for i, item in ipairs(items) do
    all[i] = i <= 10 and M.item_text(looks, item, newest) or nil
    if kept[i] then left[#left + 1] = item.name end
  end
  if #items > 10 then all[11] = format("%d more", #items - 10) end
  local text = "`keep` breaks %s with %d checkpoint%s: of %s it leaves %s: %s"
  local names = #left > 0 and concat(left, ", ", 1, min(#left, 10)) or "none"
  local few, of = #items == 1 and "" or "s", concat(all, ", ")
  return format(text, entry.name, #items, few, of, names, why)
end

-- Looks for a list for each entry of a policy's `must` that its `keep` breaks.
local function must_search(policy)
  local looks, functions = looks_of_must(policy)
  local dimensions, sizes = M.dimensions(looks), M.sizes_of(with_sums(looks.counts))
  local found, open = {}, {}
  for i, entry in ipairs(policy.must) do open[i] = entry end
  local function new_walks(size)
    local lists = functions and FUNCTION_LISTS or MUST_LISTS
    return { M.walk(dimensions, size, max(4, floor(lists * 8 / max(8, size)))) }
  end
  local search = M.searcher(sizes, new_walks, function(walk)
    local items = walk.items
    local kept = left_of(policy, items)
    if not kept then return false end
    local ctx = M.made_up_context(policy, "keep", items)
    for i = #open, 1, -1 do
      local holds, why = M.must_holds(open[i], items, kept, ctx)
      if not holds then
        local text = must_text(looks, open[i], items, kept, why)
        local word = open[i].of_policy and "function" or match(open[i].name, "^[%w_.]+")
        found[#found + 1] = { line = open[i].line, word = word, text = text }
        remove(open, i)
      end
    end
    return #open == 0
  end)
  return { search = search, found = found, cost = functions and 100 or 2 + #policy.must }
end

local running

--- Looks for lists that break `must`; `first` begins; it is asked again until it is done. Returns
--- { done =, lists =, list = { { line =, word =, text = }, ... } }.
function checks.must(request)
  if request.first then
    local policy = M.chain[1]
    running = policy and policy.must and policy.hooks.keep ~= nil and must_search(policy) or nil
    if not running then return { done = true, lists = 0, list = {} } end
  end
  if not running then M.fail("answer", "the search was lost") end
  local done = running.search.piece(running.cost)
  return { done = done, lists = running.search.lists, list = done and running.found or {} }
end

M.is_function_in = is_function_in
