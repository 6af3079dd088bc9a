--- Counts what the questions of tests have reached of a policy: its lines, and of each rule whether
--- it has said yes and no.

jit.off(true, true)
local util = require "jit.util"

local coverage = {}

local wanted = false
local files, order = {}, {} -- by name: { lines = { [line] = times }, rules = { [place] = row } }

--- Begins to count.
function coverage.start()
  wanted = true
  jit.off() -- what is compiled is not counted
end

---@return boolean
function coverage.wanted() return wanted end

-- The lines that have code, of a function and those in it.
local function note_lines(f, lines)
  for pc = 1, util.funcinfo(f).bytecodes - 1 do
    local line = util.funcinfo(f, pc).currentline
    if line and line > 0 then lines[line] = lines[line] or 0 end
  end
  for i = -1, -math.huge, -1 do
    local inner = util.funck(f, i)
    if inner == nil then return end
    if type(inner) == "proto" then note_lines(inner, lines) end
  end
end

--- Notes the lines of a policy that is about to be run.
---@param name string
---@param chunk function
function coverage.note_file(name, chunk)
  if not wanted then return end
  if not files[name] then
    files[name] = { lines = {}, rules = {} }
    order[#order + 1] = name
  end
  note_lines(chunk, files[name].lines)
end

--- Counts a line, from a hook.
---@param line integer
function coverage.line(line)
  local file = files[(debug.getinfo(3, "S").source:match "^=(.*)%.lua$") or ""]
  if file then file.lines[line] = (file.lines[line] or 0) + 1 end
end

local function count(row, answer)
  for _, one in ipairs(type(answer) == "table" and answer or { answer }) do
    if one then row.yes = row.yes + 1 else row.no = row.no + 1 end
  end
end

local function note_rule(M, v, rules)
  local body = M.body(v)
  if not body then return end
  local judge = body.judge
  if judge then
    local place = ("%s: %s"):format(body.line, body.name)
    rules[place] = rules[place] or { name = body.name, line = body.line, yes = 0, no = 0 }
    body.judge = function(...)
      local answer, reason = judge(...)
      count(rules[place], answer)
      return answer, reason
    end
  end
  for _, part in ipairs(body.parts or {}) do note_rule(M, part, rules) end
end

--- Notes the rules of a policy that was loaded.
---@param M table its rule library
function coverage.note_rules(M)
  for _, policy in ipairs(wanted and M.chain or {}) do
    for _, v in pairs(policy.hooks) do note_rule(M, v, files[policy.name].rules) end
  end
end

local function tell_lines(name, lines, write)
  local all, reached, missed = 0, 0, {}
  for line, times in pairs(lines) do
    all = all + 1
    if times > 0 then reached = reached + 1 else missed[#missed + 1] = line end
  end
  table.sort(missed)
  write(("%s.lua: %d of %d lines"):format(name, reached, all)
    .. (#missed > 0 and "; not reached: " .. table.concat(missed, ", ") or ""))
end

local SAID = {
  never = "%s was never asked", yes = "%s never said no", no = "%s never said yes",
}

local function tell_rules(rules, write)
  local texts = {}
  for place, row in pairs(rules) do
    local said = row.yes == 0 and (row.no == 0 and "never" or "no") or row.no == 0 and "yes"
    if said then texts[#texts + 1] = SAID[said]:format(place) end
  end
  table.sort(texts)
  for _, text in ipairs(texts) do write(text) end
end

--- Tells what was reached.
---@param write fun(line: string)
function coverage.tell(write)
  for _, name in ipairs(order) do
    tell_lines(name, files[name].lines, write)
    tell_rules(files[name].rules, write)
  end
  if #order == 0 then write "no test has asked a policy with ckpt.testing.policy" end
end

return coverage
