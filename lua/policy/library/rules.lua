--- Rule objects, and any / all / none over them.
---
--- A policy holds a rule as an object without content; what it means is in `bodies` here. Two kinds
--- are evaluated: "when" says yes or no to one event, "keep" picks out of a list. Four are data for
--- the engine: "done", "from", "unit", "pattern".
local M = ...

local ipairs, pairs, setmetatable, tonumber, type = ipairs, pairs, setmetatable, tonumber, type
local find, format, gsub, match, rep, sub =
  string.find, string.format, string.gsub, string.match, string.rep, string.sub
local concat = table.concat
local min = math.min

-- ---- objects ----

local bodies = setmetatable({}, { __mode = "k" })
local made = {} -- objects of the file that is being loaded, in order

--- Makes a rule object. The body has `kind`, `name` ("keep.last"), and what the kind needs.
function M.rule(body)
  if not M.loading then
    M.misuse("%s makes a rule: write it in the table that the file returns", body.name)
  end
  local title = "the rule " .. body.name
  local object = setmetatable({}, {
    __metatable = false,
    __index = function(_, k) M.misuse("%s has no %s", title, M.show(k)) end,
    __newindex = function() M.misuse("%s cannot be changed", title) end,
    __tostring = function() return body.name end,
    __call = function() M.misuse("%s is called as if it were a function", title) end,
  })
  body.line = M.where()
  bodies[object] = body
  made[#made + 1] = object
  return object
end

--- Returns the meaning of a rule object; nil for any other value.
function M.body(object) return bodies[object] end

local rule_words = { when = true, keep = true, done = true, from = true, survives = true }

-- Returns "keep.last" if this is that very function: somebody forgot to call it.
local function maker_name(v)
  for word in M.each(rule_words) do
    for name, f in M.each(M[word]) do
      if f == v then return word .. "." .. name end
    end
  end
  if v == M.never_fewer_than then return "never_fewer_than" end
end

--- True for a function of the policy's own.
function M.is_function(v) return type(v) == "function" and not maker_name(v) end

--- Returns a name for messages: "keep.last", "a function", "5".
function M.describe(v)
  local body, maker = bodies[v], type(v) == "function" and maker_name(v)
  if maker then return maker .. " without its ( )" end
  return body and body.name or M.show(v)
end

-- ---- arguments ----

--- Takes a whole number of at least `least`; another value is an error at the line of the policy.
function M.need_count(v, least, name)
  if not M.is_finite(v) or v % 1 ~= 0 or v < least then
    M.misuse("%s: a whole number of at least %d, not %s", name, least, M.show(v))
  end
  return v
end

function M.need_seconds(v, name)
  local s = M.seconds(v)
  if not s then M.misuse('%s: a time as "5m", "1h30m" or seconds, not %s', name, M.show(v)) end
  return s
end

function M.need_text(v, name)
  if type(v) ~= "string" or v == "" or not M.is_plain(v) then
    M.misuse("%s: a text, not %s", name, M.show(v))
  end
  return v
end

--- Takes "min" or "max": which scores are good.
function M.need_mode(v, name)
  if v ~= "min" and v ~= "max" then
    M.misuse('%s: say "min" or "max": is a low or a high value good?', name)
  end
  return v
end

--- Refuses keys that a table of arguments does not have.
function M.need_keys(t, known, name)
  if type(t) ~= "table" or bodies[t] then M.misuse("%s: a table, not %s", name, M.describe(t)) end
  for _, k in ipairs(M.sorted_keys(t)) do
    if not known[k] then
      M.misuse("%s has no %s%s", name, M.show(k), M.did_you_mean(k, known))
    end
  end
end

-- ---- any, all, none ----

local evaluated = { when = true, keep = true }

-- Returns the one kind of the parts; functions go with "when" and "keep".
local function kind_of_parts(parts, name)
  local kind, first, has_function
  for i, part in ipairs(parts) do
    local body = bodies[part]
    if body and body.kind then
      if not evaluated[body.kind] and body.kind ~= "done" then
        M.misuse("%s: %s is no rule of yes or no", name, body.name)
      elseif kind and kind ~= body.kind then
        M.misuse("%s: %s and %s are not of one kind", name, first, body.name)
      end
      kind, first = body.kind, body.name
    elseif M.is_function(part) then
      has_function = true
    elseif not body then
      M.misuse("%s: part %d is no rule but %s", name, i, M.describe(part))
    end
    has_function = has_function or (body and body.has_function)
  end
  if kind == "done" and has_function then
    M.misuse("%s: done rules do not go with functions; for a function there is `ready`", name)
  end
  return kind, has_function
end

local function combine(name)
  return function(parts)
    local n = type(parts) == "table" and not bodies[parts] and M.list_length(parts)
    if not n then M.misuse("%s takes a list of rules: %s { rule, rule }", name, name) end
    if n == 0 then M.misuse("%s has no rule in it", name) end
    local kind, has_function = kind_of_parts(parts, name)
    local own = {}
    for i, part in ipairs(parts) do own[i] = part end
    return M.rule {
      kind = kind,
      name = name,
      op = name,
      parts = own,
      has_function = has_function,
    }
  end
end

M.any, M.all, M.none = combine "any", combine "all", combine "none"

-- ---- what was made and is not used ----

local function reach(v, seen)
  if type(v) ~= "table" or seen[v] then return end
  seen[v] = true
  local body = bodies[v]
  for _, part in pairs(body and body.parts or v) do reach(part, seen) end
end

--- Checks that each rule that was made is reached from what the file returns: `keep.last(3) and
--- keep.best(...)` is Lua, and drops the first.
function M.check_used(result)
  local seen = {}
  local text = "%s: %s is made here and not used: put rules together with any { ... }, all { ... }"
  reach(result, seen)
  for i = #made, 1, -1 do -- what others are a part of is named, not the parts
    local object = made[i]
    local body = bodies[object]
    if not seen[object] then M.fail("syntax", format(text, body.line, body.name)) end
  end
end

function M.forget_made() made = {} end

-- Makes a Lua text in which comments and strings are blank, and lines are where they were.
local function code_of(text)
  local out, at = {}, 1
  local function blank(last)
    out[#out + 1] = gsub(sub(text, at, last), "[^\n]", "_")
    at = last + 1
  end
  while at <= #text do
    local from = find(text, "[\"'%[%-]", at) or #text + 1
    out[#out + 1] = sub(text, at, from - 1)
    at = from
    local two = sub(text, at, at + 1)
    local quote = match(two, "^[\"']")
    local level = (two == "--" or two == "[[" or two == "[=")
      and match(sub(text, at, at + 40), "^%-?%-?%[(=*)%[")
    if level then
      local _, last = find(text, "]" .. level .. "]", at, true)
      blank(last or #text)
    elseif two == "--" then
      local last = (find(text, "\n", at, true) or #text + 1) - 1
      out[#out + 1] = rep("_", last - at + 1)
      at = last + 1
    elseif quote then
      local last = at
      repeat
        last = find(text, "[\\\n" .. quote .. "]", last + 1) or #text
        local escaped = sub(text, last, last) == "\\"
        if escaped then last = last + 1 end
      until not escaped or last >= #text
      blank(min(last, #text))
    else
      out[#out + 1] = sub(two, 1, 1)
      at = at + 1
    end
  end
  return concat(out)
end

-- Returns the number that stands at `at`, as digits or as size "20GB", and where it ends.
local function number_at(code, text, at)
  local word = match(sub(code, at, at + 63), "^[%w_.]+")
  local number = gsub(word, "_+$", "") -- what follows is a text or a comment
  local spelt = number == "size"
    and match(sub(text, at, at + 63), "^size%s?%(?%s?[\"']([%w.]+)[\"']")
  return spelt and M.bytes(spelt) or match(word, "^%d") and tonumber(number), at + #word
end

--- Returns the numbers over 1 that stand in a policy's text, the first few of them. Each is looked
--- at by itself: how much text a pattern may look through is bounded.
function M.numerals(text, most)
  local code, out, at = code_of(text), {}, 1
  while #out < most do
    at = find(code, "[%w_.]", at)
    if not at then break end
    local n
    n, at = number_at(code, text, at)
    if n and n > 1 then out[#out + 1] = n end
  end
  return out
end

-- Returns the place of the last letter before `at` that is no space.
local function back(code, at)
  repeat at = at - 1 until at < 1 or not find(sub(code, at, at), "%s")
  return at
end

-- Returns the word that ends at `last`, dots in it, and where it begins.
local function word_at(code, last)
  local first = last
  while first > 0 and find(sub(code, first, first), "[%w_.]") do first = first - 1 end
  return sub(code, first + 1, last), first + 1
end

-- Returns "keep.last" if the code before `at` is a call of it, and where that begins.
local function call_before(code, at)
  local last, open = back(code, at), 0
  if sub(code, last, last) ~= ")" then return nil end
  for i = last, 1, -1 do
    local c = sub(code, i, i)
    open = open + (c == ")" and 1 or c == "(" and -1 or 0)
    if open == 0 then return word_at(code, back(code, i)) end
  end
end

--- Refuses `keep.last(3) or keep.best(...)`, which drops the second before it is even made: only
--- the text shows that. `x and keep.last(3) or keep.best(...)` is how Lua writes a choice, and is
--- fine.
function M.check_text(name, text)
  if not text or not find(text, "%f[%w]or%f[%W]") then return end
  local code, at = code_of(text), 0
  while true do
    at = find(code, "%f[%w_]or%f[^%w_]", at + 1)
    if not at then return end
    local word, from = call_before(code, at)
    local kind = word and match(word, "^(%a+)%.")
    if kind and rule_words[kind] and word_at(code, back(code, from)) ~= "and" then
      local _, lines = gsub(sub(code, 1, from), "\n", "")
      local said = "%s.lua:%d: `%s(...) or ...` drops the second: write any { ..., ... }"
      M.fail("syntax", format(said, name, lines + 1, word))
    end
  end
end
