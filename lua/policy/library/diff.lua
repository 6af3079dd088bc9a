--- Looks for the shortest list of checkpoints of which two policies keep different ones.
---
--- A rule looks at one thing alone: the order by a metric, the steps, the times, or the sizes. So
--- the lists of each are walked through by themselves, and what the rules say of the n-th
--- checkpoint in any list of one thing goes together with what others say in any list of another
--- one. Where a function has a part, which may look at everything, whole lists are made up, and
--- nothing is proven.
local M = ...

local ipairs, tostring, type = ipairs, tostring, type
local format = string.format
local floor, huge, max, min = math.floor, math.huge, math.max, math.min

local checks = M.checks

-- ---- a tree of rules as a function of what its rules say ----

local function silent() end

local quiet = { warn = silent }

-- What holds where a policy does not have the key.
local ABSENT = {
  keep = { name = "no keep", judge = function(list)
    local kept = {}
    for i = 1, #list do kept[i] = true end
    return kept
  end },
  restore = { name = "no restore", judge = function(list)
    local kept = {}
    for i = 1, #list do kept[i] = i == 1 end
    return kept
  end },
}
ABSENT.keep_local = ABSENT.keep

-- tostring() leaves digits of a large number out.
local function exact(v) return type(v) == "number" and format("%.17g", v) or tostring(v) end

local function leaf_of(body, leaves, want)
  local key = format("%s %s %s", body.name, exact(body.same), tostring(want))
  if not leaves[key] then
    leaves[#leaves + 1] = { body = body, want = want, judge = body.judge }
    leaves[key] = #leaves
  end
  return { leaf = leaves[key] }
end

local function compile(body, leaves, want)
  if body.judge then return leaf_of(body, leaves, want) end
  local node = { op = body.op, parts = {} }
  if body.op == "none" then want = not want end
  for i, part in ipairs(body.parts) do
    node.parts[i] = compile(M.body(part), leaves, want)
  end
  return node
end

local function decide(node, said)
  if node.leaf then return said[node.leaf] end
  local decisive = node.op ~= "all"
  for _, part in ipairs(node.parts) do
    if decide(part, said) == decisive then return node.op == "any" end
  end
  return node.op ~= "any"
end

local PROOF_MOST = 10

-- True if the trees say the same whatever their rules say.
local function is_same_tree(a, b, leaves)
  local said = {}
  for code = 0, #leaves <= PROOF_MOST and 2 ^ #leaves - 1 or -1 do
    for i = 1, #leaves do said[i] = floor(code / 2 ^ (i - 1)) % 2 == 1 end
    if decide(a, said) ~= decide(b, said) then return false end
  end
  return #leaves <= PROOF_MOST
end

-- ---- the rules by what they look at ----

local LOOKS = { steps = "step", times = "time", sizes = "bytes" }

-- Returns the place of the dimension in which a rule sees a difference; 0: it counts alone.
local function dimension_of(leaf, dimensions)
  for i, d in ipairs(dimensions) do
    if leaf.body.metrics and leaf.body.metrics[1] == d.metric then return i end
    for key, name in M.each(LOOKS) do
      if leaf.body[key] and d.name == name then return i end
    end
  end
  return 0
end

local function groups_of(leaves, dimensions)
  local groups, by = {}, {}
  for i, leaf in ipairs(leaves) do
    local at = dimension_of(leaf, dimensions)
    if not by[at] then
      by[at] = { dimensions = { dimensions[at] }, leaves = {}, alone = true }
      groups[#groups + 1] = by[at]
    end
    by[at].leaves[#by[at].leaves + 1] = i
    by[at].alone = by[at].alone and leaf.body.alone
  end
  return groups
end

-- ---- what a walk has shown ----

local function snapshot(dimension, items)
  local out = {}
  for i, item in ipairs(items) do
    out[i] = {
      step = item.step,
      time = item.time,
      bytes = item.bytes,
      score = dimension and dimension.metric and item.metrics[dimension.metric],
    }
  end
  return out
end

-- Notes of each place of the list which words of the group's rules go together, and a list in which
-- they do.
local function look(group, leaves, walk, size)
  local codes = group.codes
  for i = 1, size do codes[i] = 0 end
  local bit = 1
  for _, at in ipairs(group.leaves) do
    local leaf = leaves[at]
    local kept = leaf.judge(walk.rows, quiet, leaf.want)
    for i = 1, size do
      if kept[i] then codes[i] = codes[i] + bit end
    end
    bit = bit * 2
  end
  for i = 1, size do
    local seen = group.seen[i]
    if not seen[codes[i]] then
      seen[codes[i]] = snapshot(group.dimensions[1], walk.items)
      seen.list[#seen.list + 1] = codes[i]
    end
  end
end

local function forget(groups, size)
  for _, group in ipairs(groups) do
    group.codes, group.seen = {}, {}
    for i = 1, size do group.seen[i] = { list = {} } end
  end
end

local function put_said(group, code, said)
  for _, at in ipairs(group.leaves) do
    said[at] = code % 2 == 1
    code = floor(code / 2)
  end
end

-- Returns for one place of the list the codes with which the two differ, one of each group.
local function clash(groups, place, a, b, said, at)
  local group = groups[at]
  if not group then return decide(a, said) ~= decide(b, said) and {} or nil end
  for _, code in ipairs(group.seen[place].list) do
    put_said(group, code, said)
    local rest = clash(groups, place, a, b, said, at + 1)
    if rest then
      rest[at] = code
      return rest
    end
  end
end

-- Puts the lists together in which the groups saw these codes.
local function together(groups, place, codes, size)
  local items = M.usual_list(size)
  for at, group in ipairs(groups) do
    local d, seen = group.dimensions[1], group.seen[place][codes[at]]
    for i, item in ipairs(d and items or {}) do
      if d.metric then
        item.metrics[d.metric] = seen[i].score
      else
        item[d.name] = seen[i][d.name]
      end
    end
  end
  return items
end

-- ---- one question ----

-- So many lists of each size, beside the orders of up to 8, which are all looked at.
local WHOLE, ALL_ORDERS, LISTS, LONG_LISTS, FUNCTION_LISTS = 8, 1.1e6, 60000, 16000, 3000

-- Where a `must` is broken, all are kept.
local function hold_must(policy, hook, items, kept, why)
  local ctx = M.made_up_context(policy, hook, items)
  for _, entry in ipairs(hook == "keep" and policy.must or {}) do
    local holds, broken = M.must_holds(entry, items, kept, ctx)
    if not holds then
      for i = 1, #items do kept[i], why[i] = true, format("%s: %s", entry.name, broken) end
      return
    end
  end
end

local function kept_of(policy, hook, items)
  local v = policy.hooks[hook]
  local kept, why
  if v ~= nil then kept, why = M.judge_keep(v, items, M.made_up_context(policy, hook, items)) end
  if kept then
    hold_must(policy, hook, items, kept, why)
    return kept, why
  end
  local rows = M.in_order(items)
  local by_row = ABSENT[hook].judge(rows)
  kept, why = {}, {}
  for i, row in ipairs(rows) do kept[row.at], why[row.at] = by_row[i], ABSENT[hook].name end
  return kept, why
end

local function differ(q, items)
  local a, b = kept_of(q.a, q.hook, items), kept_of(q.b, q.hook, items)
  for i = 1, #items do
    if a[i] ~= b[i] then return true end
  end
  return false
end

local function without(items, left_out)
  local out = {}
  for i, item in ipairs(items) do
    if i ~= left_out then out[#out + 1] = M.copy(item) end
  end
  for i, item in ipairs(out) do
    item.number, item.name, item.newest = i, "c" .. i, i == #out
  end
  return out
end

local SHRINK_MOST = 64

-- Leaves out what is not needed for the difference.
local function shrink(q, items)
  local i = #items <= SHRINK_MOST and 1 or #items + 1
  while i <= #items and #items > 1 do
    local less = without(items, i)
    if differ(q, less) then items = less else i = i + 1 end
  end
  return items
end

local function limit_of(q, group, size)
  if q.functions then return max(4, floor(FUNCTION_LISTS * 8 / max(8, size))) end
  if size > 8 then return max(4, floor(LONG_LISTS / size)) end
  return group.dimensions[1] and group.dimensions[1].metric and ALL_ORDERS or LISTS
end

local function note_whole(q, group, size, walk)
  for _, d in ipairs(group.dimensions) do
    if walk.whole and q.whole[d.name] == size - 1 then q.whole[d.name] = size end
    q.steps_left_out = q.steps_left_out or d.left_out
    d.alone = group.alone
  end
end

local function new_walks(q, size)
  local walks = {}
  forget(q.groups, size)
  for i, group in ipairs(q.groups) do
    local walk = M.walk(group.dimensions, size, limit_of(q, group, size), group.alone)
    walk.group = group
    q.partial = q.partial or size > WHOLE and not walk.whole
    note_whole(q, group, size, walk)
    walks[i] = walk
  end
  return walks
end

local function visit(q, walk, size)
  if not q.functions then return look(walk.group, q.leaves, walk, size) end
  if differ(q, walk.items) then
    q.found = without(walk.items)
    return true
  end
end

-- What is put together at the end of a size has to fit into a question, too.
local TOGETHER, LEAVES_MOST = 200000, 40

local function is_too_much(q, size)
  local work = size * #q.leaves
  for _, group in ipairs(q.groups) do
    local most = 1
    for i = 1, size do most = max(most, #group.seen[i].list) end
    work = work * most
  end
  return work > TOGETHER
end

local function at_end(q, size)
  if not q.functions and is_too_much(q, size) then
    q.why = format("with %d checkpoints the rules say too much to put it together", size)
    return true
  end
  for place = 1, q.functions and 0 or size do
    local codes = clash(q.groups, place, q.tree_a, q.tree_b, {}, 1)
    if codes then
      q.found = together(q.groups, place, codes, size)
      if not differ(q, q.found) then M.fail("answer", "the rules do not say the same twice") end
      return true
    end
  end
  return false
end

-- An entry of `must` looks at whole lists, as a function does.
local function look_at_must(q, policy)
  local functions = false
  q.functions, q.must = true, true
  for _, entry in ipairs(policy.must) do
    M.note_looks(q.looks, entry)
    functions = functions or entry.of_policy ~= nil
  end
  if not functions then return end
  M.note_functions(q.looks, policy, q.hook, function(ctx, items)
    for _, entry in ipairs(policy.must) do M.must_holds(entry, items, { true, true, true }, ctx) end
  end)
end

local function look_at(q, policy)
  local v = policy.hooks[q.hook]
  local body = M.body(v)
  if body then M.note_looks(q.looks, body) end
  if v ~= nil and policy.must and q.hook == "keep" then look_at_must(q, policy) end
  if v == nil or not M.is_function_in(v) then return end
  q.functions = true
  M.note_functions(q.looks, policy, q.hook, function(ctx, items) M.judge_keep(v, items, ctx) end)
end

local function tree_of(q, policy)
  local v = policy.hooks[q.hook]
  return compile(v ~= nil and M.body(v) or ABSENT[q.hook], q.leaves, true)
end

local function begin(hook)
  local a, b = M.chain[1], M.chain[2]
  local q = { hook = hook, a = a, b = b, looks = M.no_looks(), leaves = {}, whole = {} }
  look_at(q, a)
  look_at(q, b)
  q.dimensions = M.dimensions(q.looks)
  for _, d in ipairs(q.dimensions) do q.whole[d.name] = 0 end
  if not q.functions then
    q.tree_a, q.tree_b = tree_of(q, a), tree_of(q, b)
    q.proven = is_same_tree(q.tree_a, q.tree_b, q.leaves)
  end
  if #q.leaves > LEAVES_MOST then
    q.functions, q.why = true, format("there are more than %d rules", LEAVES_MOST)
  end
  q.groups = { { dimensions = q.dimensions, leaves = {} } }
  if not q.functions then q.groups = groups_of(q.leaves, q.dimensions) end
  q.sizes, q.left_out = M.sizes_of(q.looks.counts)
  q.cost = q.functions and 400 or 1
  q.search = M.searcher(q.sizes, function(size) return new_walks(q, size) end, function(walk, size)
    return visit(q, walk, size)
  end, function(size) return at_end(q, size) end)
  return q
end

-- ---- the answer ----

-- The largest size that was gone through.
local function last_size(q)
  if q.found then return #q.found end
  local last = 0
  for _, size in ipairs(q.sizes) do
    if not q.stopped or size < q.stopped then last = size end
  end
  return last
end

-- Of 8 checkpoints each has a number; of fewer some may have none.
local function dimension_text(q, d)
  local whole = q.whole[d.name]
  local title = d.metric and format("orders by %s, with equal ones, NaN and missing ones", d.metric)
    or format("%d choices of the %s, or none", #d.choices - 1, d.name)
  if d.metric and whole >= 8 then
    title = format("545,835 orders of 8 by %s, with equal ones; NaN and missing in fewer", d.metric)
  end
  if d.alone then return title .. ": all of each checkpoint" end
  local last = last_size(q)
  local more = last > whole and "; of more those with few unusual ones" or ""
  return format("%s: all of up to %d checkpoints%s", title, whole, more)
end

local function searched_text(q)
  local out = {}
  for i, d in ipairs(q.dimensions) do out[i] = dimension_text(q, d) end
  local last = last_size(q)
  local beyond = last > 8 and format(", and of some sizes up to %d", last) or ""
  if q.stopped then beyond = format("%s, and a part of those of %d", beyond, q.stopped) end
  out[#out + 1] = format("lists of 1 to %d checkpoints%s", min(last, 8), beyond)
  return out
end

local function held_text(q)
  local out, looks = {}, q.looks
  if #looks.steps == 0 then out[#out + 1] = "steps count up" end
  out[#out + 1] = #looks.times == 0 and "an hour from one to the next" or "no time goes back"
  if #looks.sizes == 0 then out[#out + 1] = "all of one size" end
  if #looks.metrics == 0 then out[#out + 1] = "no numbers" end
  out[#out + 1] = "one series, all stored, none pinned or suspect"
  out[#out + 1] = "nothing remembered"
  for _, policy in ipairs(M.chain) do
    if policy.data.newest_only then
      out[#out + 1] = "newest_only takes nothing"
      break
    end
  end
  return out
end

local function told(q)
  local items, rows = shrink(q, q.found), {}
  local newest = M.newest_time(items)
  local a, why_a = kept_of(q.a, q.hook, items)
  local b, why_b = kept_of(q.b, q.hook, items)
  for i, item in ipairs(items) do
    rows[i] = {
      name = item.name,
      facts = M.item_text(q.looks, item, newest),
      a = a[i],
      b = b[i],
      why_a = why_a[i],
      why_b = why_b[i],
    }
  end
  return rows
end

local function verdict_of(q)
  if q.found then return "differ" end
  if q.proven then return "equal" end
  if q.stopped then
    return "none", format("all lists are too many: it came to those of %d", q.stopped)
  end
  if q.why then return "none", q.why end
  if q.must then return "none", "a `must` may look at more than was tried" end
  if q.functions then return "none", "a function may look at more than was tried" end
  if q.left_out then return "none", "a rule counts more checkpoints than a list here has" end
  if q.steps_left_out then return "none", "the rules name too many numbers of steps" end
  if q.partial then
    return "none", format("of more than %d checkpoints not all lists were looked at", WHOLE)
  end
  return "equal"
end

-- The search ends where it is: what was begun with a size is not all of it.
local function stop(q)
  q.stopped = q.search.size
  for name, whole in M.each(q.whole) do q.whole[name] = min(whole, q.stopped - 1) end
end

local running

--- Looks for a difference in what `hook` keeps, between the two policies that are loaded. `first`
--- begins; it is asked again until it is done, which it is after `most` such pieces: a bound on the
--- work, so that one answer is given on each machine.
function checks.diff(request)
  if request.first then
    if #M.chain ~= 2 or not ABSENT[request.hook] then M.fail("answer", "diff: wrong request") end
    running = begin(request.hook)
    running.left = request.most or huge
  end
  if type(running) ~= "table" then M.fail("answer", "the search was lost") end
  local q = running
  local leaves = 0
  for _, group in ipairs(q.groups) do leaves = max(leaves, #group.leaves) end
  local done = q.search.piece(q.cost * max(1, leaves))
  q.left = q.left - 1
  if not done and q.left <= 0 then
    stop(q)
    done = true
  end
  local answer = { done = done, lists = q.search.lists }
  answer.searched, answer.held = searched_text(q), held_text(q)
  if not done then return answer end
  answer.verdict, answer.why = verdict_of(q)
  answer.list = q.found and told(q) or {}
  running = nil
  return answer
end
