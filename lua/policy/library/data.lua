--- The rules that are data, for the engine to evaluate: done (when is it complete?), from (where
--- are its metrics?), proven and pattern (names).
local M = ...

local ipairs, type = ipairs, type
local find, format, gsub, match, sub =
  string.find, string.format, string.gsub, string.match, string.sub
local floor = math.floor

-- ---- done ----

local done = {}
M.done = done

local DAY, PARTS_MAX = 86400, 1000000

-- Returns whole nanoseconds; a day at most, so that the number is written without an exponent.
local function need_ns(v, name)
  local s = M.need_seconds(v, name)
  if s > DAY then M.misuse("%s: a day at most, not %s", name, M.show(v)) end
  return floor(s * 1e9 + 0.5)
end

local function need_name(v, name)
  M.need_text(v, name)
  if find(v, "/", 1, true) then
    M.misuse("%s: a file at the top of the checkpoint, without a slash, not %s", name, M.show(v))
  end
  return v
end

local function test(name, tree)
  return M.rule { kind = "done", name = "done." .. name, tree = tree }
end

--- It got its final name by a rename.
function done.renamed() return test("renamed", { done = "renamed" }) end
--- Every file of it was closed by a writer that lived.
function done.closed() return test("closed", { done = "closed" }) end
--- It has every file name that the checkpoint of its kind before it had.
function done.superset_of_previous() return test("superset_of_previous", { done = "superset" }) end
--- The structure of its files is whole (the end of a zip, the length that a header promises, ...).
function done.sound() return test("sound", { done = "sound" }) end

--- Holds if nothing in it has changed for this long.
---@param span number|string
function done.quiet(span)
  return test("quiet", { done = "quiet", ns = need_ns(span, "done.quiet") })
end

--- The file is there. newer: and no other file of the checkpoint is newer.
---@param name string
---@param how? { newer?: boolean }
function done.marker(name, how)
  need_name(name, "done.marker")
  if how ~= nil then M.need_keys(how, { newer = true }, "done.marker's table") end
  return test("marker", { done = "marker", name = name, newer = how ~= nil and how.newer == true })
end

--- So many files, or more, have a name that the glob fits: the parts that ranks write.
---@param glob string of the name below the checkpoint
---@param count integer
function done.parts(glob, count)
  M.need_text(glob, "done.parts")
  M.need_count(count, 1, "done.parts: how many")
  if count > PARTS_MAX then M.misuse("done.parts: at most %d parts, not %d", PARTS_MAX, count) end
  return test("parts", { done = "parts", name = glob, count = count })
end

local known_keys = { markers = true, quiet = true, marked = true, sound = true, settled = true }
local row_keys = { name = true, when = true, newer = true, final = true }

local function known_markers(rows)
  local out = {}
  if type(rows) ~= "table" or not M.list_length(rows) then
    M.misuse("done.known: markers: a list, not %s", M.describe(rows))
  end
  for i, row in ipairs(rows) do
    local title = format("done.known: marker %d", i)
    M.need_keys(row, row_keys, title)
    out[i] = { name = need_name(row.name, title .. ": name") }
    out[i].newer, out[i].final = row.newer == true, row.final == true
    if row.when ~= nil then out[i].when = need_name(row.when, title .. ": when") end
  end
  return out
end

---@class ckpt.known_marker
---@field name string
---@field when? string a glob of a file beside which it is required
---@field newer? boolean an old one may be left over
---@field final? boolean it is written when every rank has written all

---@class ckpt.known
---@field markers? ckpt.known_marker[]
---@field quiet? number|string
---@field marked? number|string
---@field sound? number|string
---@field settled? number|string

--- Makes the built-in rule: renamed, or a marker and quiet, or all closed and quiet for longer,
--- with these markers and times (docs/detection.md). Members that are left out are as built in.
---@param t ckpt.known
function done.known(t)
  M.need_keys(t, known_keys, "done.known")
  local tree = { done = "known" }
  if t.markers ~= nil then tree.markers = known_markers(t.markers) end
  for _, key in ipairs { "quiet", "marked", "sound", "settled" } do
    if t[key] ~= nil then tree[key .. "_ns"] = need_ns(t[key], "done.known: " .. key) end
  end
  return test("known", tree)
end

local TESTS_MAX = 64

local function count_tests(tree)
  local n = 1
  for _, op in ipairs { "all", "any", "none" } do
    for _, part in ipairs(tree[op] or {}) do n = n + count_tests(part) end
  end
  return n
end

local function tree_of(body)
  if body.tree then return body.tree end
  local parts = {}
  for i, part in ipairs(body.parts) do parts[i] = tree_of(M.body(part)) end
  return { [body.op] = parts }
end

--- Returns the value of the key `complete`, as the engine takes it.
function M.complete_tree(v)
  local body = M.body(v)
  if not body or body.kind ~= "done" then
    return nil, "done rules, as all { done.closed(), done.quiet \"5s\" }"
  end
  local tree = tree_of(body)
  if count_tests(tree) > TESTS_MAX then return nil, format("at most %d done rules", TESTS_MAX) end
  return tree
end

-- ---- from ----

local from = {}
M.from = from

local function source(name, row)
  return M.rule { kind = "from", name = "from." .. name, source = row }
end

local function need_path(v, name)
  M.need_text(v, name)
  if sub(v, 1, 1) == "/" or find("/" .. v .. "/", "/../", 1, true) then
    M.misuse("%s: a path inside the checkpoint, not %s", name, M.show(v))
  end
  return v
end

local how_keys = { own = true }

local function from_file(kind)
  return function(file, path, how)
    local title = "from." .. kind
    need_path(file, title)
    if path ~= nil then M.need_text(path, title .. "'s path") end
    if how ~= nil then M.need_keys(how, how_keys, title .. "'s table") end
    local row = { from = kind, file = file, path = path or "" }
    if how and how.own == true then row.own = true end
    return source(kind, row)
  end
end

--- A JSON file in the checkpoint; `path` leads to the object or number in it. Of a list,
--- "log_history[-1]" is the last entry, "log_history[*]" of each name the last entry that has it,
--- and "log_history[step=global_step]" the same of the entries whose `step` is not another than the
--- file's own `global_step`. With { own = true } only of a checkpoint that is a directory: beside a
--- file there may be another one's.
from.json = from_file "json"
--- The last line of a file with one JSON object a line.
from.jsonl = from_file "jsonl"

--- The result that the job reported for it (`ckpt-lua notify loss=0.2`): one that names the
--- checkpoint, else the last one before its first write.
function from.notify() return source("notify", { from = "notify" }) end

--- The number in the checkpoint's own name that follows a text: "epoch=3-val_loss=0.126.ckpt".
--- Without a table: each NAME=NUMBER in it.
---@param t? { key: string, after: string }
function from.name(t)
  if t == nil then return source("name", { from = "names" }) end
  M.need_keys(t, { key = true, after = true }, "from.name")
  local row = {
    from = "name",
    key = M.need_text(t.key, "from.name: key"),
    after = M.need_text(t.after, "from.name: after"),
  }
  return source("name", row)
end

--- Returns the value of the key `metrics`: one source or a list of them.
function M.metric_sources(v)
  local list, out = M.body(v) and { v } or v, {}
  local n = type(list) == "table" and M.list_length(list)
  for i = 1, n or 0 do
    local body = M.body(list[i])
    if not body or body.kind ~= "from" then n = nil end
    out[i] = body and body.source
  end
  if not n or n == 0 then return nil, "from rules, as from.json(\"state.json\", \"metrics\")" end
  return out
end

-- ---- names ----

--- A unit only once it was renamed into place or holds a marker: for names that other things have.
---@param glob string
function M.proven(glob)
  M.need_text(glob, "proven")
  return M.rule { kind = "unit", name = "proven", glob = glob }
end

--- Takes a Lua pattern where a glob is expected. The engine matches globs, so it is put as one; a
--- pattern that no glob can express is an error.
---@param text string
function M.pattern(text)
  M.need_text(text, "pattern")
  return M.rule { kind = "pattern", name = "pattern", text = text }
end

local sets = {
  d = "[0-9]",
  l = "[a-z]",
  u = "[A-Z]",
  a = "[a-zA-Z]",
  w = "[a-zA-Z0-9]",
  x = "[0-9a-fA-F]",
}
local no_glob = "%s: no glob says the same as the pattern %s (%s)"

-- Reads one item of a pattern at `at`: returns its glob, and the place after it. Nil: no glob
-- expresses it.
local function item_of(text, at)
  local c = sub(text, at, at)
  if c == "%" then
    local class = sub(text, at + 1, at + 1)
    if match(class, "%a") then return sets[class], at + 2 end
    return class ~= "" and (gsub(class, "[%*%?%[]", "[%0]")) or nil, at + 2
  end
  if c == "[" then
    local set, last = match(text, "^%[(%^?[%w_ ,%-]+)%]()", at)
    return set and "[" .. gsub(set, "^%^", "!") .. "]", last
  end
  if c == "." then return "?", at + 1 end
  if find(c, "[%(%)%*%+%-%?%$]") then return nil end
  return (gsub(c, "[%*%?%[]", "[%0]")), at + 1
end

local function glob_of(text, where)
  local out, at = "", 1
  local first = match(text, "^%^()")
  at = first or at
  local function refuse(why) M.fail("syntax", format(no_glob, where, M.show(text), why)) end
  while at <= #text do
    local rest = sub(text, at)
    local step = match(rest, "^%(?%%d%+%)?()")
    local anything = match(rest, "^%.[%*%-]()")
    if rest == "$" then return (first and "" or "*") .. out end
    if step then
      if find(out, "{step}", 1, true) then refuse "%d+ twice" end
      out, at = out .. "{step}", at + step - 1
    elseif anything then
      out, at = out .. "*", at + anything - 1
    else
      local glob, after = item_of(text, at)
      if not glob or find(sub(text, after, after), "^[%*%+%-%?]$") then
        refuse("at " .. M.show(rest))
      end
      out, at = out .. glob, after
    end
  end
  return (first and "" or "*") .. out .. "*"
end

local GLOB_MAX = 255

-- Returns one name of a list of globs, or nil.
local function glob_text(v, where)
  local body = M.body(v)
  local text = body and body.kind == "pattern" and glob_of(body.text, body.line) or v
  local fits = type(text) == "string" and text ~= "" and #text <= GLOB_MAX and M.is_plain(text)
  if fits and sub(text, 1, 1) == "/" then
    local refusal = "%s: %s begins with a slash: names are below the watched directory"
    M.fail("syntax", format(refusal, where, M.show(text)))
  end
  return fits and text or nil
end

--- Returns the value of a key that holds globs: a list of them, or one. `units`: {step} is known in
--- it, and proven "..." gives { glob = , proven = true }.
function M.globs(v, where, units)
  local list, out = v, {}
  if type(v) ~= "table" or M.body(v) then list = { v } end
  local n = M.list_length(list)
  for i = 1, n or 0 do
    local body = M.body(list[i])
    if units and body and body.kind == "unit" then
      local glob = glob_text(body.glob, where)
      out[i] = glob and { glob = glob, proven = true }
    else
      out[i] = glob_text(list[i], where)
    end
    if not out[i] then
      return nil, format("globs of 1 to 255 bytes, one of which is %s", M.describe(list[i]))
    end
    if not units and type(out[i]) == "string" and find(out[i], "{", 1, true) then
      return nil, format('globs without "{": %s', M.show(out[i]))
    end
  end
  if not n then return nil, "a glob or a list of globs" end
  if units and n == 0 then return nil, "at least one glob" end
  return out
end

-- How many of the newest have such files where a policy says nothing else: the newest may not
-- load, and then the one before is what is gone on from.
local NEWEST = 2
local NEWEST_MAX = 1000

local newest_keys = { files = true, newest = true }

local function newest_expected(here)
  local form = "globs, or { files = globs, newest = a whole number from 1 to %d }; here %s"
  return nil, format(form, NEWEST_MAX, here)
end

-- Returns what a table has that is neither, or nil.
local function beside_newest(v)
  for k in M.each(v) do
    if type(k) == "number" then return "a glob stands beside a name: it belongs into files" end
    if not newest_keys[k] then
      return M.show(k) .. " is neither" .. M.did_you_mean(k, newest_keys)
    end
  end
  return nil
end

--- Returns the value of `newest_only`: globs, or { files = globs, newest = a number }.
function M.newest_only(v, policy)
  local files, newest = v, NEWEST
  if type(v) == "table" and not M.body(v) and not M.list_length(v) then
    local other = beside_newest(v)
    if other then return newest_expected(other) end
    files = v.files
    if v.newest ~= nil then newest = v.newest end
  end
  local whole = M.is_finite(newest) and newest == floor(newest)
  if not whole or newest < 1 or newest > NEWEST_MAX then
    return newest_expected("newest is " .. M.describe(newest))
  end
  if files == nil then return newest_expected "files is missing" end
  if M.is_function(files) then return newest_expected("it is " .. M.describe(files)) end
  local globs, wrong = M.globs(files, policy.name .. ".lua")
  if not globs then return nil, wrong end
  return { files = globs, newest = newest }
end
