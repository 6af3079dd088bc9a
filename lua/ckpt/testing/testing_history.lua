--- A whole run, told by its events, and played by `ckpt-lua policy simulate` against a policy.

jit.off(true, true)
local json = require "ckpt.base.json"
local misuse = require "ckpt.base.misuse"
local runner = require "ckpt.testing.testing_runner"

local LISTS = { "saved", "failed", "remedies", "let_go", "deleted", "restored" }

---@class ckpt.testing.Played
---@field saved string[] names, in the order of their saves
---@field failed string[] one for each try
---@field remedies string[] what came of each of them: "retry 30", "skip", "abort"
---@field let_go string[]
---@field deleted string[]
---@field restored string[] with which trials went on whose machine was lost
---@field rows table[] a row for each event, as `policy simulate --json` has it
---@field sum table the last row

local function quoted(text) return "'" .. tostring(text):gsub("'", "'\\''") .. "'" end

local function write(path, events)
  local file = assert(io.open(path, "wb"))
  for _, event in ipairs(events) do file:write(json.encode(event), "\n") end
  file:close()
end

local function run(command)
  local pipe = assert(io.popen(command .. " 2>&1; echo \" $?\""))
  local text = pipe:read "*a"
  pipe:close()
  local said, code = text:match "^(.*) (%d+)\n$"
  return said, tonumber(code)
end

local function add_all(to, names)
  for _, name in ipairs(names) do to[#to + 1] = name end
end

local function result_of(text)
  local played = { rows = {} }
  for _, key in ipairs(LISTS) do played[key] = {} end
  for line in text:gmatch "[^\n]+" do
    if line:sub(1, 1) == "{" then played.rows[#played.rows + 1] = json.decode(line) end
  end
  played.sum = table.remove(played.rows)
  for _, row in ipairs(played.rows) do
    for _, key in ipairs(LISTS) do add_all(played[key], row[key]) end
  end
  return played
end

--- Plays a history: a list of events, or a file of them, such as `run --record` writes.
---@param policy string a file, or the name of a shipped one
---@param history table[]|string
---@param options? { settings: table<string, any>, args: string } `args`: more for the command line
---@return ckpt.testing.Played
local function simulate(policy, history, options)
  options = options or {}
  local path = type(history) == "string" and history or os.tmpname()
  if type(history) == "table" then write(path, history) end
  local by_path = policy:find "/" or not policy:find "%.lua$"
  local words = {
    quoted(runner.path), "policy simulate", quoted(path), "--json -p",
    quoted(by_path and policy or "./" .. policy),
  }
  for name, value in pairs(options.settings or {}) do
    words[#words + 1] = "-o " .. quoted(name .. "=" .. tostring(value))
  end
  words[#words + 1] = options.args
  local text, code = run(table.concat(words, " "))
  if path ~= history then os.remove(path) end
  if code ~= 0 then misuse(("testing.simulate: %s"):format(text)) end
  return result_of(text)
end

return simulate
