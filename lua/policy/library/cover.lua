--- What the questions of a test reach of a policy (`cover` in engine/decision/policy_link.h):
--- which lines have code is told here, and of each rule whether it has said yes and no. The lines
--- that are run are noted in C.
local M = ...

local ipairs, type = ipairs, type
local format = string.format
local huge = math.huge
local util = require "jit.util"

-- ---- lines ----

local function note_lines(f, lines, seen)
  for pc = 1, util.funcinfo(f).bytecodes - 1 do
    local line = util.funcinfo(f, pc).currentline
    if line and line > 0 and not seen[line] then
      seen[line] = true
      lines[#lines + 1] = line
    end
  end
  for i = -1, -huge, -1 do
    local inner = util.funck(f, i)
    if inner == nil then return end
    if type(inner) == "proto" then note_lines(inner, lines, seen) end
  end
end

--- Lists the lines that have code, of a function and of those in it.
---@param f function
---@return integer[]
function M.code_lines(f)
  local lines = {}
  note_lines(f, lines, {})
  return lines
end

-- ---- rules ----

--- What was not told yet: `made` { { policy =, place = }, ... }, and `yes` and `no`, the numbers of
--- those that have said so. Whoever tells it puts an empty table here.
M.covered = {}

local function note(key, value)
  local list = M.covered[key] or {}
  M.covered[key] = list
  list[#list + 1] = value
end

local count = 0

-- Returns a function that answers as `judge` does, and notes the answer, or each of a list.
local function watched(judge, name, line, policy)
  local said = {}
  count = count + 1
  local number = count
  note("made", { policy = policy, place = format("%s: %s", line, name) })
  local function hear(answer)
    local word = answer and "yes" or "no"
    if not said[word] then
      said[word] = true
      note(word, number)
    end
  end
  return function(...)
    local answer, reason = judge(...)
    if type(answer) == "table" then
      for _, one in ipairs(answer) do hear(one) end
    elseif answer ~= nil then
      hear(answer)
    end
    return answer, reason
  end
end

local function watch_must(policy)
  for _, entry in ipairs(policy.must or {}) do
    local key = entry.of_policy and "of_policy" or "holds"
    entry[key] = watched(entry[key], entry.name, entry.line, policy.name)
  end
end

--- Begins to note what the rules of the chain say.
function M.cover()
  local seen = {}
  for _, policy in ipairs(M.chain) do
    local function visit(body)
      if not body.judge or seen[body] then return end
      seen[body] = true
      body.judge = watched(body.judge, body.name, body.line, policy.name)
    end
    for _, v in M.each(policy.hooks) do M.each_rule(v, visit) end
    M.each_rule(policy.would_keep, visit)
    watch_must(policy)
  end
end
