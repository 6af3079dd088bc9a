--- Asks the policies of a chain, and unites their answers.
local M = ...

local ipairs, type = ipairs, type
local format = string.format
local concat = table.concat
local max, min = math.max, math.min

local table_at = M.table_at

local REASON_MAX, MEMORY_MAX, SAID_MAX = 200, 64 * 1024, 100
local GLOBS_MAX = 64 -- that one checkpoint is saved without
local SOONEST = 1 -- second: a function that says "now" must not keep the run busy

-- ---- answers ----

--- Makes a reason that a policy gave fit to be shown.
function M.reason(v, default)
  if v == nil then return default end
  if type(v) ~= "string" and type(v) ~= "number" then
    M.fail("answer", format("a reason is %s: a text", M.show(v)))
  end
  return M.one_line(v .. "", REASON_MAX)
end

local function wrong_answer(ctx, v, expected)
  M.fail("answer", format("%s: `%s` returned %s: %s", ctx.name, ctx.hook, M.show(v), expected))
end

--- Takes the third value of a function: in how long it is to be asked again.
function M.ask_again(ctx, v)
  if v == nil then return end
  local seconds = M.seconds(v)
  if not seconds then
    local text = '%s: `%s` says to ask again in %s: a time as "10m", or seconds'
    M.fail("answer", format(text, ctx.name, ctx.hook, M.show(v)))
  end
  M.changes_in(ctx, max(seconds, SOONEST))
end

local evaluate = {}

function evaluate.ready(f, ctx)
  local v, reason, again = f(M.hand(ctx.e, ctx.e), ctx.memory)
  M.ask_again(ctx, again)
  if v ~= nil and type(v) ~= "boolean" then wrong_answer(ctx, v, "true or false, and a reason") end
  return v, M.reason(reason, "its function says so")
end

function evaluate.sync(v, ctx)
  local yes, reason = M.judge_when(v, ctx, true)
  if yes == nil then return nil end
  if yes then
    for k, item in M.each(ctx.remember) do ctx.rules[k] = item end
  end
  return yes and "sync" or "skip", M.one_line(reason, REASON_MAX)
end

local function evaluate_word(key)
  evaluate[key] = function(v, ctx)
    if type(v) == "string" then return v, "its setting" end
    local word, reason = v(M.hand(ctx.e, ctx.e), ctx.memory)
    local words, expected = M.words_of(key)
    if word ~= nil and not words[word] then wrong_answer(ctx, word, expected) end
    return word, M.reason(reason, "its function says so")
  end
end
evaluate_word "queue"
evaluate_word "on_preempt"

function evaluate.on_error(f, ctx)
  local action, seconds, reason = f(M.hand(ctx.e, ctx.e), ctx.memory)
  if action == nil then return nil end
  if action == "skip" or action == "abort" then
    return { action = action }, M.reason(seconds, "its function says so")
  end
  local s = action == "retry" and M.seconds(seconds)
  if not s then wrong_answer(ctx, action, '"retry" and seconds, "skip", or "abort"') end
  return { action = "retry", seconds = s }, M.reason(reason, "its function says so")
end

-- Returns the globs that functions of a policy give, and their reasons.
function evaluate.exclude(functions, ctx)
  local out, why = {}, {}
  for _, f in ipairs(functions) do
    local v, reason = f(M.hand(ctx.e, ctx.e), ctx.memory)
    local globs, expected = {}, nil
    if v ~= nil then globs, expected = M.globs(v, ctx.name .. ".lua") end
    if not globs then wrong_answer(ctx, v, expected) end
    for _, glob in ipairs(globs) do out[#out + 1] = glob end
    if #globs > 0 then why[#why + 1] = M.reason(reason) end
  end
  return out, why
end

local function evaluate_names(key)
  evaluate[key] = function(f, ctx)
    local v = f(M.hand(ctx.e, ctx.e), ctx.memory)
    if v == nil then return nil end
    local expected = "a list of names of hook programs"
    if type(v) ~= "table" or not M.list_length(v) then wrong_answer(ctx, v, expected) end
    local out = {}
    for i, name in ipairs(v) do
      if type(name) ~= "string" then wrong_answer(ctx, name, expected) end
      out[i] = name
    end
    return out, ""
  end
end
evaluate_names "on_committed"
evaluate_names "on_failed"

-- ---- what is remembered ----

-- The memory table holds { user = { POLICY: ... }, rules = { POLICY: ... } }; none is empty. Asked
-- again about the same checkpoint, a function is handed what it was handed first: it counts one
-- thing once, and says of it what it said.
local function context(policy, hook, asking)
  M.asking = policy.name
  return {
    e = asking.event,
    name = policy.name,
    hook = hook,
    memory = table_at(table_at(asking.before or asking.memory, "user"), policy.name),
    rules = table_at(table_at(asking.memory, "rules"), policy.name),
    remember = {},
    warn = asking.warn,
  }
end

local function store(memory, key, name, t)
  local all = table_at(memory, key)
  all[name] = not M.is_empty(t) and t or nil
  memory[key] = not M.is_empty(all) and all or nil
end

-- Returns the tables of the memory that was handed back last: anybody may have written there since.
local function known_memory(memory)
  local known = {}
  for _, key in ipairs { "user", "rules" } do
    local t = table_at(memory or {}, key)
    if not M.is_empty(t) then known[key] = t end
  end
  return known
end

local function put_back(asking, ctx)
  if not asking.before then store(asking.memory, "user", ctx.name, ctx.memory) end
  store(asking.memory, "rules", ctx.name, ctx.rules)
  if ctx.again then asking.again = min(ctx.again, asking.again or ctx.again) end
end

-- ---- asking ----

local function ask_first(hook, asking)
  for _, policy in ipairs(M.chain) do
    local v = policy.hooks[hook]
    if v ~= nil then
      local ctx = context(policy, hook, asking)
      local answer, reason = evaluate[hook](v, ctx)
      put_back(asking, ctx)
      if answer ~= nil then return answer, reason, policy.name end
    end
  end
end

local function checked_items(event)
  local items = event.list
  if type(items) ~= "table" or not M.list_length(items) then
    M.fail("answer", "the event has no list")
  end
  return items
end

-- Tells what a rule would free that a policy has written out and not put in force: everything
-- stays.
local function advise(policy, items, asking)
  local ctx = context(policy, "would_keep", asking)
  local kept = M.judge_keep(policy.would_keep, items, ctx)
  local count, bytes = 0, 0
  for i, item in ipairs(kept and items or {}) do
    if not kept[i] then
      count = count + 1
      bytes = bytes + (M.is_finite(item.bytes) and item.bytes or 0)
    end
  end
  if count == 0 then return end
  local text = "the keep rules in %s.lua are not in force; if they were, they would free "
    .. "%d of %d checkpoints (%s)"
  local said_as = policy.name .. " would free"
  asking.warn(format(text, policy.name, count, #items, M.show_bytes(bytes)), said_as)
end

-- A verdict has three lists: of each item whether it is kept, why, and by which policies; what is
-- not in `by` is by the first one that had a word.
local function verdict(kept, why, name)
  return { keep = kept, reason = why, by = {}, first = name }
end

-- Unites one more policy's word on the list: kept stays kept.
local function unite(said, kept, why, name)
  local keep, reason, by = said.keep, said.reason, said.by
  for i = 1, #kept do
    if kept[i] and not keep[i] then
      keep[i], reason[i], by[i] = true, why[i], name
    elseif kept[i] == keep[i] then
      reason[i] = M.join({ reason[i], why[i] }, ", ")
      by[i] = (by[i] or said.first) .. ", " .. name
    end
  end
end

-- Lets everything stay where what would be left breaks a `must` of any policy.
local function hold_must(said, items, asking)
  if not M.has_must() then return nil end
  local entry, why, name = M.broken_must(items, said.keep, { e = asking.event })
  if not entry then return nil end
  local text = format("`must` of %s (%s) is broken: %s: all are kept", name, entry.name, why)
  for i = 1, #items do said.keep[i], said.reason[i], said.by[i] = true, text, name end
  local warning = "%s: `must`: %s is broken by what `keep` would leave: %s; all are kept"
  asking.warn(format(warning, entry.line, entry.name, why), entry)
  return name
end

local function rows_of(said)
  local rows = {}
  for i = 1, #said.keep do
    rows[i] = { keep = said.keep[i], reason = said.reason[i], by = said.by[i] or said.first }
  end
  return rows
end

local function ask_all(hook, asking)
  local items, said, by = checked_items(asking.event), nil, {}
  for _, policy in ipairs(M.chain) do
    local v = policy.hooks[hook]
    if v ~= nil then
      local ctx = context(policy, hook, asking)
      local kept, why = M.judge_keep(v, items, ctx)
      put_back(asking, ctx)
      if kept then
        by[#by + 1] = policy.name
        if said then
          unite(said, kept, why, policy.name)
        else
          said = verdict(kept, why, policy.name)
        end
      end
    end
  end
  if not said then return nil end
  local guarded = hook == "keep" and hold_must(said, items, asking)
  if guarded then by = { guarded } end
  local reasons, lines = said.reason, {} -- a long list has few reasons
  for i = 1, #items do
    local reason = reasons[i]
    local line = lines[reason]
    if not line then
      line = M.one_line(reason, REASON_MAX)
      lines[reason] = line
    end
    reasons[i] = line
  end
  return asking.in_lists and said or rows_of(said), "", concat(by, ", ")
end

-- Unites what any policy leaves out of one checkpoint.
local function ask_exclude(hook, asking)
  local out, seen, reasons, by = {}, {}, {}, {}
  for _, policy in ipairs(M.chain) do
    local v = policy.hooks[hook]
    if v ~= nil then
      local ctx = context(policy, hook, asking)
      local globs, why = evaluate[hook](v, ctx)
      put_back(asking, ctx)
      if #globs > 0 then by[#by + 1] = policy.name end
      for _, reason in ipairs(why) do reasons[#reasons + 1] = reason end
      for _, glob in ipairs(globs) do
        if not seen[glob] then out[#out + 1] = glob end
        seen[glob] = true
      end
    end
  end
  if #out > GLOBS_MAX then
    M.fail("answer", format("`exclude`: %d globs for one checkpoint: at most %d", #out, GLOBS_MAX))
  end
  if #out == 0 then return nil end
  return out, M.one_line(M.join(reasons, ", "), REASON_MAX), concat(by, ", ")
end

-- True if the list has checkpoints that are not stored yet: it is a matter of opinion then.
local function has_waiting(items)
  for _, item in ipairs(items) do
    if item.durable == false then return true end
  end
  return false
end

local function ask_keep(hook, asking)
  local rows, reason, by = ask_all(hook, asking)
  if rows or hook ~= "keep" or has_waiting(checked_items(asking.event)) then
    return rows, reason, by
  end
  for _, policy in ipairs(M.chain) do
    if policy.would_keep ~= nil then
      advise(policy, checked_items(asking.event), asking)
      return nil
    end
  end
end

local asks = {}
for _, hook in ipairs(M.hooks) do asks[hook] = ask_first end
asks.exclude = ask_exclude
asks.keep, asks.keep_local, asks.restore = ask_keep, ask_keep, ask_keep

local said, said_count = {}, 0

-- Warns once of each thing: the same question comes with every checkpoint.
local function warner(warnings)
  return function(text, key)
    key = key or text
    if said[key] or said_count >= SAID_MAX then return end
    said[key], said_count = true, said_count + 1
    warnings[#warnings + 1] = text
  end
end

local function changed_memory(memory, before)
  local after = M.canonical(memory, "memory")
  if after == before then return nil end
  if #after > MEMORY_MAX then
    M.fail("answer", format("memory has grown to %d bytes: at most %d", #after, MEMORY_MAX))
  end
  return memory
end

--- Asks the policies about one event.
---@param hook string
---@param event table
---@param memory? table what was handed back last, or nil
---@param before? table the memory when this was asked first, if it is asked again: what functions
--- remember is not changed then
---@param in_lists? boolean a word on a list of checkpoints is { keep = LIST, reason = LIST }, not a
--- list of { keep, reason, by }: 10,000 tables take their time
---@return any answer nil: no policy has an opinion
---@return string? reason
---@return string? by name of the policy
---@return table? memory nil: it was not changed
---@return string[] warnings
---@return number? again in how many seconds the answer may be another one
function M.ask(hook, event, memory, before, in_lists)
  local ask, warnings = asks[hook], {}
  if not ask then M.fail("answer", format("there is no hook %s", M.show(hook))) end
  local asking = {
    event = event,
    memory = known_memory(memory),
    before = before and known_memory(M.copy(before)),
    warn = warner(warnings),
    in_lists = in_lists,
  }
  local was = M.canonical(asking.memory, "memory")
  local answer, reason, by = ask(hook, asking)
  return answer, reason, by, changed_memory(asking.memory, was), warnings, asking.again
end
