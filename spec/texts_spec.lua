--- Holds the library's texts to words that an embedder's user has, too: no flag and no verb of the
--- command line, but names of the API in backquotes, for which the runner knows what is typed.

package.path = "./spec/?.lua;" .. package.path
local c = require "layers.c"

-- ckpt-script is the runner's `exec`, and speaks to who typed that.
local runner = { "^engine/runner/", "^engine/lua/ckpt/script%.c$" }

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local function paths(pattern)
  local pipe = assert(io.popen("find " .. pattern .. " | sort"))
  local list = {}
  for path in pipe:lines() do list[#list + 1] = path end
  pipe:close()
  return list
end

-- The strings of a file, those that stand one after another in one piece.
local function strings(path)
  local code = {}
  c.read(read(path), function() end, function(_, line) code[#code + 1] = line end)
  local text = table.concat(code, "\n"):gsub("'\"'", "' '"):gsub('\\"', "''"):gsub('"%s*"', "")
  return text:gmatch('"([^"\n]*)"')
end

local function each_text(fn)
  for _, path in ipairs(paths "engine -name '*.[ch]'") do
    local ours = true
    for _, pattern in ipairs(runner) do ours = ours and not path:find(pattern) end
    if ours then for text in strings(path) do fn(path, text) end end
  end
end

local function verbs()
  local set = {}
  for _, path in ipairs(paths "engine/runner/verbs -name 'verb_*.c'") do
    set[path:match("verb_(.*)%.c$")] = true
  end
  return set
end

-- A flag of another program is one.
local function is_foreign(text)
  return text:find("aws configure export-credentials --format", 1, true)
    or text:find("aws sso login --profile", 1, true)
    or text:find("--mca odls_base_sigkill_timeout", 1, true)
end

-- Who types has these under the same name: words of a policy, `why`, and what only a program gives.
local shared = { key = true, after = true, when = true, with = true, why = true, size = true,
  unfinished = true, environment = true, keep = true, sync = true, ready = true, metrics = true,
  unit = true, exclude = true }

describe("the library's texts", function()
  it("name no flag and no verb of the command line", function()
    local known, found, seen = verbs(), {}, 0
    each_text(function(path, text)
      seen = seen + 1
      local flag = not is_foreign(text) and text:match("%-%-%l[%l-]*")
      local verb = text:match("ckpt%-lua (%l+)")
      if flag then found[#found + 1] = path .. ": " .. flag end
      if verb and known[verb] then found[#found + 1] = path .. ": ckpt-lua " .. verb end
    end)
    assert.equal("", table.concat(found, "\n"))
    assert.is_true(seen > 2000 and known.gc and known.ls)
  end)

  it("name in backquotes what the runner knows a flag or a verb for, and nothing else", function()
    local typed, used, found = {}, {}, {}
    local source = read "engine/runner/cli/flags_named.c"
    for name in source:gmatch('\n    {"([%l_.]+)", "[^"]+"},') do typed[name] = true end
    each_text(function(path, text)
      if path:find("^engine/lua/") then return end
      for name in text:gmatch("`([^`]*)`") do
        used[name] = true
        if not typed[name] and not shared[name] then found[#found + 1] = path .. ": " .. name end
      end
    end)
    for name in pairs(typed) do
      if not used[name] then found[#found + 1] = "no text names " .. name end
    end
    assert.equal("", table.concat(found, "\n"))
    assert.is_true(used.take_over and used.list)
  end)
end)
