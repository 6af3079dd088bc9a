--- A policy under test: asked here, by the rules that a run has, with a line or two.

jit.off(true, true)
local coverage = require "ckpt.testing.testing_coverage"
local facts = require "ckpt.testing.testing_facts"
local misuse = require "ckpt.base.misuse"
local runner = require "ckpt.testing.testing_runner"
local source = require "ckpt.base.clock"

local STEPS_MAX = 1e7 -- for one question, as in a run

-- The rules stand beside this library, where it is installed too.
local function rules()
  local here = debug.getinfo(1, "S").source:match "^@(.*)/testing_policy%.lua$"
  for _, dir in ipairs { here .. "/policy", here .. "/../../policy" } do
    local chunk = loadfile(dir .. "/library.lua")
    if chunk then return chunk() end
  end
  misuse(("testing.policy: there is no policy/library.lua beside %s"):format(here))
end

local library

---@class ckpt.testing.Policy
---@field memory table what it remembers; it may be looked at and set
---@field warnings string[] what it said
local Policy = {}
Policy.__index = Policy

-- Runs `f` with the bounds of a question; errors are texts.
local function bounded(f, ...)
  local function stop() error("it took more than 10 million steps", 2) end
  local function hook(event, number)
    if event == "line" then coverage.line(number) else stop() end
  end
  debug.sethook(hook, coverage.wanted() and "l" or "", STEPS_MAX)
  local results = { pcall(f, ...) }
  debug.sethook()
  if results[1] then return unpack(results, 2, 7) end
  local why = results[2]
  error(type(why) == "table" and why.text or why, 0)
end

local function text_of(name)
  local file = io.open(name, "rb")
  if file then
    local text = file:read "*a"
    file:close()
    return text, name:match "([^/]*)%.lua$" or name:match "[^/]*$"
  end
  if not name:match "^[%w_]+$" then
    misuse(("testing.policy: there is no file %s"):format(name))
  end
  local pipe = assert(io.popen(("'%s' policy show %s 2>/dev/null"):format(runner.path, name)))
  local text = pipe:read "*a"
  pipe:close()
  if text == "" then
    misuse(("testing.policy: no policy is called %s, and no file"):format(name))
  end
  return text, name
end

local function texts(settings)
  local out = {}
  for name, value in pairs(settings or {}) do out[name] = tostring(value) end
  return out
end

local function load_into(M, name, text, settings)
  local env = M.environment(name, settings, text)
  local chunk, why = loadstring(text, "=" .. name .. ".lua")
  if not chunk then error(why, 0) end
  jit.off(chunk, true) -- what is compiled is not counted
  coverage.note_file(name, chunk)
  M.add(name, env, setfenv(chunk, env)())
  M.finish(settings)
  coverage.note_rules(M)
end

--- Loads a policy: a file, or the name of a shipped one. What is wrong with it is an error.
---@param name string
---@param settings? table<string, any> its options
---@return ckpt.testing.Policy
function Policy.new(name, settings)
  library = library or rules()
  local text, short = text_of(name)
  local M = library.new()
  bounded(load_into, M, short, text, texts(settings))
  return setmetatable({ memory = {}, warnings = {}, again = nil, _rules = M }, Policy)
end

--- Asks a hook; what it changes in `memory` is there at the next question.
---@param hook string
---@param event table
---@return any answer nil: it has no opinion
---@return string? reason
function Policy:ask(hook, event)
  local answer, reason, _, memory, warnings, again =
    bounded(self._rules.ask, hook, event, self.memory)
  self.memory = memory or self.memory
  self.again = again
  for _, text in ipairs(warnings or {}) do self.warnings[#self.warnings + 1] = text end
  return answer, reason
end

--- Is it to be saved now? `policy.again` is in how many seconds the answer may be another one.
---@param event? table as testing.event() takes it
---@return boolean?, string? reason
function Policy:sync(event)
  local answer, reason = self:ask("sync", facts.event(event))
  if answer == nil then return nil, reason end
  return answer == "sync", reason
end

---@param event? table
---@return boolean?, string? reason
function Policy:ready(event) return self:ask("ready", facts.event(event)) end

--- What stays of a list.
---@param list table[]|integer as testing.checkpoints() takes it
---@param hook? "keep"|"keep_local"|"restore"
---@return string[]? names the oldest first; nil: it has no opinion, all stay
---@return table<string, string>? reasons by name, of those that go too
function Policy:keep(list, hook)
  local items = facts.checkpoints(list)
  local answer = self:ask(hook or "keep", { list = items, now = source.now() })
  if answer == nil then return nil end
  local names, reasons = {}, {}
  for i, row in ipairs(answer) do
    if row.keep then names[#names + 1] = items[i].name end
    reasons[items[i].name] = row.reason
  end
  return names, reasons
end

return Policy
