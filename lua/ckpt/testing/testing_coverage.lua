--- Counts what the questions of tests have reached of a policy: its lines, and of each rule whether
--- it has said yes and no. The policies' own process tells it, with its answers.

jit.off(true, true)

local coverage = {}

local wanted = false
local files, order = {}, {} -- by name: { lines = { [line] = reached }, rules = { [place] = row } }

--- Begins to count.
function coverage.start() wanted = true end

---@return boolean
function coverage.wanted() return wanted end

local function file_of(name)
  if not files[name] then
    files[name] = { lines = {}, rules = {} }
    order[#order + 1] = name
  end
  return files[name]
end

---@class ckpt.testing.Rule
---@field yes? true it has said so
---@field no? true

--- Adds what came with an answer (`covered` in engine/decision/policy_link.h).
---@param covered table
---@param made ckpt.testing.Rule[] the rules of the policy that answered, in their order: grows
function coverage.add(covered, made)
  for _, told in ipairs(covered.files) do
    local lines = file_of(told.policy).lines
    for _, line in ipairs(told.code) do lines[line] = lines[line] or false end
    for _, line in ipairs(told.reached) do lines[line] = true end
  end
  for _, rule in ipairs(covered.rules.made or {}) do
    local rules = file_of(rule.policy).rules
    rules[rule.place] = rules[rule.place] or {}
    made[#made + 1] = rules[rule.place]
  end
  for _, word in ipairs { "yes", "no" } do
    for _, i in ipairs(covered.rules[word] or {}) do made[i][word] = true end
  end
end

local function tell_lines(name, lines, write)
  local all, reached, missed = 0, 0, {}
  for line, is_reached in pairs(lines) do
    all = all + 1
    if is_reached then reached = reached + 1 else missed[#missed + 1] = line end
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
    local said = row.yes and "yes" or row.no and "no" or "never"
    if not (row.yes and row.no) then texts[#texts + 1] = SAID[said]:format(place) end
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
