--- Checks the table that a policy file returns, key by key, and makes the data of the whole chain
--- for the engine.
---
--- Along the chain the first policy that sets a key wins; a function that returns nothing passes on
--- to the next. Excludes are united, and so are the keep rules: kept is what any policy keeps.
local M = ...

local ipairs, pairs, type = ipairs, pairs, type
local format, match = string.format, string.match
local concat = table.concat
local max = math.max

-- { name, hooks = {HOOK: rule|function|text}, data = {KEY: value}, options, would_keep }
local chain = {}
M.chain = chain

local WORDS = {
  queue = { newest = true, all = true, skip = true, block = true },
  on_preempt = { newest = true, all = true, none = true },
}

local words_shown = {}
for hook, words in pairs(WORDS) do
  local shown = {}
  for word in M.each(words) do shown[#shown + 1] = M.show(word) end
  words_shown[hook] = concat(shown, ", ")
end

--- Returns the words that a hook answers with; and as a text for messages.
function M.words_of(hook) return WORDS[hook], words_shown[hook] end

-- ---- keys ----

-- Each key: takes the value and the policy; returns what the value should have been if it is wrong.
local keys = {}
M.keys = keys

local function function_key(key)
  keys[key] = function(v, policy)
    if not M.is_function(v) then return "a function" end
    policy.hooks[key] = v
  end
end
for _, key in ipairs { "ready", "on_error", "on_committed", "on_failed" } do function_key(key) end

local function rule_key(key, kind, put)
  keys[key] = function(v, policy)
    local body = M.body(v)
    local fits = body and (body.kind or body.parts and kind) == kind
    if not M.is_function(v) and not fits then return format("a %s rule or a function", kind) end
    put(policy, v)
  end
end

local function hook_rule(key, kind)
  rule_key(key, kind, function(policy, v) policy.hooks[key] = v end)
end
hook_rule("sync", "when")
for _, key in ipairs { "keep", "keep_local", "restore" } do hook_rule(key, "keep") end
rule_key("would_keep", "keep", function(policy, v) policy.would_keep = v end)

function keys.must(v, policy)
  local entries, expected = M.must_entries(v, policy)
  policy.must = entries
  return not entries and expected or nil
end

local function word_key(key)
  local words, expected = M.words_of(key)
  keys[key] = function(v, policy)
    if not M.is_function(v) and not words[v] then return expected .. ", or a function" end
    policy.hooks[key] = v
  end
end
word_key "queue"
word_key "on_preempt"

local function data_key(key, convert)
  keys[key] = function(v, policy)
    local data, expected = convert(v, policy)
    policy.data[key] = data
    return not data and expected or nil
  end
end
data_key("unit", function(v, policy) return M.globs(v, policy.name .. ".lua", true) end)

-- Of a list the globs are for all checkpoints, and the functions are asked about each one.
function keys.exclude(v, policy)
  local list = (type(v) ~= "table" or M.body(v)) and { v } or v
  local n, globs, functions = M.list_length(list), {}, {}
  for i = 1, n or 0 do
    local to = M.is_function(list[i]) and functions or globs
    to[#to + 1] = list[i]
  end
  local data, expected = M.globs(globs, policy.name .. ".lua")
  policy.data.exclude = data
  policy.hooks.exclude = #functions > 0 and functions or nil
  if not n then expected = "a glob, a function, or a list of them" end
  return expected
end

data_key("above", function(v, policy) return M.globs(v, policy.name .. ".lua") end)
data_key("with", function(v, policy) return M.globs(v, policy.name .. ".lua") end)
data_key("newest_only", M.newest_only)
data_key("complete", M.complete_tree)
data_key("metrics", M.metric_sources)
data_key("markers", function(v)
  local expected = 'a table of file names: { null = ".null_marker", temp = ".temp_marker" }'
  if type(v) ~= "table" or M.body(v) then return nil, expected end
  local out = {}
  for k, name in M.each(v) do
    local is_name = type(name) == "string" and match(name, "^[^/%c]+$")
    if not is_name or (k ~= "null" and k ~= "temp") then return nil, expected end
    out[k] = name
  end
  return out
end)

-- `keep` decides where any policy has it: then this is not looked at.
function keys.keep_in_place(v, policy)
  if v ~= "few" and v ~= "all" then return '"few" or "all"' end
  policy.data.keep_in_place = v
end

function keys.api(v)
  if v ~= 1 then return "1, the version of the vocabulary that is meant" end
end

--- Adds the table that a file returned.
---@param name string
---@param _ table its environment
---@param result any
function M.add(name, _, result)
  local file = name .. ".lua"
  if type(result) ~= "table" or M.body(result) then
    local what = result == nil and "nothing" or M.describe(result)
    local text = "%s: it returns %s; a policy ends with: return { api = 1, ... }"
    M.fail("syntax", format(text, file, what))
  end
  M.check_used(result)
  local policy = { name = name, hooks = {}, data = {}, options = M.declared[name] }
  for k, v in M.each(result) do
    if not keys[k] then
      M.fail("syntax", format("%s: unknown key %s%s", file, M.show(k), M.did_you_mean(k, keys)))
    end
    local expected = keys[k](v, policy)
    if expected then
      local is_plain_table = type(v) == "table" and not M.body(v)
      local found = is_plain_table and "" or ", not " .. M.describe(v)
      M.fail("syntax", format("%s: `%s` is %s%s", file, k, expected, found))
    end
  end
  if result.api == nil then
    M.fail("syntax", format("%s: `api` is missing: return { api = 1, ... }", file))
  end
  M.forget_made()
  chain[#chain + 1] = policy
  M.loading = nil
end

-- ---- what the engine is told ----

--- The hooks that can be asked.
local HOOKS = {
  "ready",
  "sync",
  "queue",
  "exclude",
  "keep",
  "keep_local",
  "restore",
  "on_error",
  "on_preempt",
  "on_committed",
  "on_failed",
}

M.hooks = HOOKS

local function check_settings(settings)
  local known = {}
  for _, policy in ipairs(chain) do
    for name in M.each(policy.options) do known[name] = true end
  end
  for name in M.each(settings) do
    if not known[name] then
      local text = "no policy has an option %s%s"
      M.fail("setting", format(text, M.show(name), M.did_you_mean(name, known)))
    end
  end
end

local function first_of(key)
  for _, policy in ipairs(chain) do
    if policy.data[key] then return policy.data[key] end
  end
end

local function united(key)
  local out, seen = {}, {}
  for _, policy in ipairs(chain) do
    for _, v in ipairs(policy.data[key] or {}) do
      if not seen[v] then
        seen[v] = true
        out[#out + 1] = v
      end
    end
  end
  return #out > 0 and out or nil
end

-- Of what several say the files are united, and the largest number counts.
local function newest_only()
  local out = { files = {}, newest = 0, by = {} }
  local seen = {}
  for _, policy in ipairs(chain) do
    local said = policy.data.newest_only
    for _, glob in ipairs(said and said.files or {}) do
      if not seen[glob] then out.files[#out.files + 1] = glob end
      seen[glob] = true
      out.newest = max(out.newest, said.newest)
    end
    if said and #said.files > 0 then out.by[#out.by + 1] = policy.name end
  end
  return #out.files > 0 and out or nil
end

local function asked_about(hook)
  local names = {}
  for _, policy in ipairs(chain) do
    local wanted = policy.hooks[hook] ~= nil or hook == "keep" and policy.would_keep ~= nil
    if wanted then names[#names + 1] = policy.name end
  end
  return #names > 0 and names or nil
end

local function has_function(must)
  for _, entry in ipairs(must or {}) do
    if entry.of_policy then return true end
  end
  return false
end

-- True if a function of a policy's own has a part in the answer.
local function is_written(hook)
  for _, policy in ipairs(chain) do
    if hook == "keep" and has_function(policy.must) and asked_about "keep" then return true end
    local v = policy.hooks[hook]
    local body = M.body(v)
    if type(v) == "function" or body and body.has_function then return true end
    if hook == "exclude" and v then return true end
  end
  return false
end

local function first_hook(hook)
  for _, policy in ipairs(chain) do
    if policy.hooks[hook] ~= nil then return policy.hooks[hook] end
  end
end

--- Ends loading.
---@param settings? table<string, string>
---@return table data see `load` in engine/decision/policy_link.h
function M.finish(settings)
  local data = { has = {}, notes = M.notes, options = {}, warnings = {} }
  check_settings(settings or {})
  for _, key in ipairs { "unit", "complete", "metrics", "markers", "above", "with" } do
    data[key] = first_of(key)
  end
  data.exclude = united "exclude"
  data.newest_only = newest_only()
  data.few = first_hook "keep" == nil and first_of "keep_in_place" ~= "all"
  for _, hook in ipairs(HOOKS) do
    data.has[hook] = asked_about(hook)
    if is_written(hook) then
      data.written = data.written or {}
      data.written[hook] = true
    end
  end
  local queue = first_hook "queue"
  if type(queue) == "string" then
    data.queue, data.has.queue = queue, nil
  end
  for _, policy in ipairs(chain) do
    for _, row in ipairs(M.option_rows(policy.name, policy.options)) do
      data.options[#data.options + 1] = row
    end
  end
  return data
end
