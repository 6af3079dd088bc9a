--- A policy under test: asked in the process in which the policies of a run are asked, with a line
--- or two.

jit.off(true, true)
local core = require "ckpt.core"
local coverage = require "ckpt.testing.testing_coverage"
local facts = require "ckpt.testing.testing_facts"
local json = require "ckpt.base.json"
local misuse = require "ckpt.base.misuse"
local runner = require "ckpt.testing.testing_runner"
local source = require "ckpt.base.clock"

local TEXT_MAX = 256 * 1024 -- of a policy
local DEPTH_MAX = 100 -- what is deeper is refused as JSON

local link -- to that process; engine/decision/policy_link.h has what is said there
local count = 0

---@class ckpt.testing.Policy
---@field memory table what it remembers; it may be looked at and set
---@field warnings string[] what it said
---@field again? number seconds until its last answer may be another one
local Policy = {}
Policy.__index = Policy

local function text_of(name)
  local file = io.open(name, "rb")
  if file then
    local text, why = file:read(TEXT_MAX + 1) -- what is longer is refused
    file:close()
    if not why and text and text:find("\0", 1, true) then why = "it has a byte 0: it is no text" end
    if why then misuse(("testing.policy: cannot read %s: %s"):format(name, why)) end
    return text or "", name:match "([^/]*)%.lua$" or name:match "[^/]*$"
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

-- JSON has no NaN: where a job reports it, it is written as a text, as by a run.
local function spelt(value, key, depth)
  if type(value) ~= "table" or depth > DEPTH_MAX then return value end
  local reported, out = key == "metrics" or key == "result", {}
  for k, v in pairs(value) do
    local odd = type(v) == "number" and v - v ~= 0
    if odd and not reported then
      misuse(("%s is %g: only metrics and results can be that, and no tables in them"):format(k, v))
    end
    out[k] = odd and json.encode(v) or spelt(v, k, depth + 1)
  end
  return out
end

local function encoded(request)
  local text, problem = json.encode(request)
  return text or misuse(("what a policy is to be handed: %s"):format(problem))
end

-- Makes one request of the policies' process; `list` becomes that of its event.
function Policy:_exchange(request, list)
  local problem
  if not link then
    link, problem = core.policy.open()
    if not link then error(problem, 0) end
  end
  local text, died = link:call(request, list)
  if not text then error(("%s.lua: %s"):format(self._name, died), 0) end
  local answer = assert(json.decode(text))
  if answer.covered then coverage.add(answer.covered, self._rules) end
  return answer
end

-- Raises what an answer says of a failure. What took too much is not always said with its line.
function Policy:_check(answer)
  if answer.ok then return end
  local text, file = answer.text, self._name .. ".lua"
  local over = answer.kind == "memory" or answer.kind == "budget"
  error(over and not text:find(file, 1, true) and file .. ": " .. text or text, 0)
end

function Policy:_load()
  self._rules = {}
  self:_check(self:_exchange(self._request))
end

--- Loads a policy: a file, or the name of a shipped one. What is wrong with it is an error.
---@param name string
---@param settings? table<string, any> its options
---@return ckpt.testing.Policy
function Policy.new(name, settings)
  local text, short = text_of(name)
  count = count + 1
  local policy = setmetatable({
    memory = {}, warnings = {}, again = nil, _name = short, _id = "test-" .. count, _told = {},
  }, Policy)
  policy._request = encoded {
    op = "load", id = policy._id, chain = { { name = short, text = text } },
    settings = texts(settings), cover = coverage.wanted(),
  }
  policy:_load()
  return policy
end

-- A policy that has failed is loaded anew, as by a run: what it held in its variables is gone then.
function Policy:_answer(request, list)
  local answer = self:_exchange(request, list)
  if answer.kind == "unknown" then
    self:_load()
    answer = self:_exchange(request, list)
  end
  self:_check(answer)
  return answer
end

local function ask(self, hook, event, list)
  local reply = self:_answer(encoded {
    op = "ask", id = self._id, hook = hook, event = spelt(event, "event", 1), memory = self.memory,
  }, list)
  self.memory = reply.memory or self.memory
  self.again = reply.again
  for _, text in ipairs(reply.warnings or {}) do
    if not self._told[text] then self.warnings[#self.warnings + 1] = text end
    self._told[text] = true
  end
  if reply.answer == json.null then return nil, reply.reason end
  return reply.answer, reply.reason
end

--- Asks a hook; what it changes in `memory` is there at the next question.
---@param hook string
---@param event table
---@return any answer nil: it has no opinion
---@return string? reason
function Policy:ask(hook, event) return ask(self, hook, event) end

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

--- What would one checkpoint be saved without, by functions of `exclude`? Its globs are for all.
---@param event? table
---@return string[]? globs nil: nothing more is left out
---@return string? reason
function Policy:exclude(event) return self:ask("exclude", facts.event(event)) end

--- What stays of a list.
---@param list table[]|integer as testing.checkpoints() takes it
---@param hook? "keep"|"keep_local"|"restore"
---@return string[]? names the oldest first; nil: it has no opinion, all stay
---@return table<string, string>? reasons by name, of those that go too
function Policy:keep(list, hook)
  local items = facts.checkpoints(list)
  for _, item in ipairs(items) do
    if item.metrics then item.metrics = encoded(spelt(item.metrics, "metrics", 1)) end
  end
  local answer = ask(self, hook or "keep", { now = source.now() }, items)
  if answer == nil then return nil end
  local names, reasons = {}, {}
  for i, item in ipairs(items) do
    if answer.keep:sub(i, i) == "1" then names[#names + 1] = item.name end
    reasons[item.name] = answer.reasons[answer.why[i]]
  end
  return names, reasons
end

return Policy
