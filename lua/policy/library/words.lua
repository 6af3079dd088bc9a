--- Makes the globals of a policy file; it sees nothing else.
local M = ...

local ipairs, setmetatable, type = ipairs, setmetatable, type
local format = string.format

local NOTE_MAX = 200

local declared = {} -- name of policy -> its options
M.declared = declared
M.notes = {}
M.texts = {} -- name of policy -> its own, where it is known

local refused = {}
for _, name in ipairs {
  "collectgarbage",
  "coroutine",
  "debug",
  "dofile",
  "ffi",
  "getfenv",
  "getmetatable",
  "io",
  "jit",
  "load",
  "loadfile",
  "loadstring",
  "module",
  "newproxy",
  "os",
  "package",
  "pcall",
  "print",
  "rawget",
  "rawset",
  "require",
  "setfenv",
  "setmetatable",
  "xpcall",
  "_G",
} do
  refused[name] = true
end

local function note(text)
  if not M.loading then M.misuse "note is called while the file is loaded" end
  if type(text) ~= "string" then M.misuse("note: a text, not %s", M.describe(text)) end
  M.notes[#M.notes + 1] = M.loading .. ": " .. M.one_line(text, NOTE_MAX)
end

local function unit_of(parse, name, example)
  return function(v)
    local n = parse(v)
    if not n then M.misuse("%s: %s, not %s", name, example, M.show(v)) end
    return n
  end
end

local function vocabulary(name, settings)
  local words = {}
  for k, v in M.each(M.base) do
    words[k] = type(v) == "table" and M.frozen(v, k) or v
  end
  declared[name] = {}
  words.any, words.all, words.none = M.any, M.all, M.none
  words.when = M.frozen(M.when, "when")
  words.keep = M.frozen(M.keep, "keep")
  words.done = M.frozen(M.done, "done")
  words.from = M.frozen(M.from, "from")
  words.survives, words.never_fewer_than = M.frozen(M.survives, "survives"), M.never_fewer_than
  words.proven, words.pattern, words.note = M.proven, M.pattern, note
  words.duration = unit_of(M.seconds, "duration", 'a time as "5m" or "1h30m"')
  words.size = unit_of(M.bytes, "size", 'a size as "10MB" or "1GiB"')
  words.options = M.options_of(name, settings or {}, declared[name])
  return words
end

--- Makes the globals of one policy file. The file is to be run next, and handed to M.add.
---@param name string of the policy, each once in a chain
---@param settings? table<string, string>
---@param text? string the file's text, to be looked at
---@return table
function M.environment(name, settings, text)
  M.loading = name
  if declared[name] then M.fail("syntax", format("the policy %s is named twice", name)) end
  M.add_source(name)
  M.texts[name] = text
  M.check_text(name, text)
  local words = vocabulary(name, settings)
  return setmetatable({}, {
    __metatable = false,
    __index = function(_, k)
      local v = words[k]
      if v ~= nil then return v end
      if refused[k] then
        M.misuse("a policy has no %s: it is handed a table and answers, and can do no more", k)
      end
      M.misuse("nothing is called %s%s", M.show(k), M.did_you_mean(k, words))
    end,
    __newindex = function(_, k) M.misuse("write `local` before %s", M.show(k)) end,
  })
end
