--- What the specs of policies share: a chain out of texts or files, in plain LuaJIT.
local library = {}

local root = io.popen("pwd"):read "*l"
package.path = root .. "/lua/?.lua;" .. package.path
local policy = require "policy.library"

--- Loads a chain: { { name, text }, ... }. Returns the library's table and what `load` answers.
--- Errors are raised as they come.
function library.load(files, settings)
  local M = policy.new()
  for _, file in ipairs(files) do
    local name, text = file[1], file[2]
    local env = M.environment(name, settings or {}, text)
    local chunk = assert(loadstring(text, "=" .. name .. ".lua"))
    M.add(name, env, setfenv(chunk, env)())
  end
  return M, M.finish(settings or {})
end

--- One policy by its text.
function library.one(text, settings) return library.load({ { "mine", text } }, settings) end

--- One policy by the content of the table that it returns.
function library.keys(text, settings)
  return library.one("return { api = 1, " .. text .. " }", settings)
end

--- A shipped policy.
function library.shipped(name, settings)
  local file = assert(io.open(root .. "/policies/" .. name .. ".lua"))
  local text = file:read "*a"
  file:close()
  return library.load({ { name, text } }, settings)
end

--- The error of loading a text: its kind and its text.
function library.refusal(text, settings)
  local ok, why = pcall(library.one, text, settings)
  assert(not ok, "it loads")
  if type(why) == "table" then return why.kind, why.text end
  return "error", why
end

--- The names of what a keep rule keeps of a list, as one text, and its answer.
function library.kept(M, items, hook, memory)
  local answer = M.ask(hook or "keep", { list = items, now = 2e9 }, memory)
  local names = {}
  for i, row in ipairs(answer or {}) do
    if row.keep then names[#names + 1] = items[i].name end
  end
  return table.concat(names, " "), answer
end

--- Checkpoints c1, c2, ... an hour apart, the oldest first; `more` may change each.
function library.items(count, more)
  local list = {}
  for i = 1, count do
    list[i] = {
      number = i,
      name = "c" .. i,
      dir = "c" .. i,
      step = i * 100,
      time = 1700000000 + i * 3600,
      files = 2,
      bytes = 1000000,
      metrics = {},
      kind = "perm",
      newest = i == count,
      pinned = false,
      durable = true,
    }
    if more then more(list[i], i) end
  end
  return list
end

--- An event with what is usual in it.
function library.event(more)
  local e = {
    event = "complete",
    now = 1700000000,
    group = "",
    grace = 1e9,
    checkpoint = { name = "checkpoint-3", step = 3, bytes = 1000, generation = 0, metrics = {} },
    results = 0,
    since = { results = 0, checkpoints = 1, bytes = 1000 },
    queue = { waiting = 0, running = false },
    store = { commits = 0 },
  }
  for k, v in pairs(more or {}) do e[k] = v end
  return e
end

return library
