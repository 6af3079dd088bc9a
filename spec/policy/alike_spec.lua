--- What must not change a decision: a start anew of the policies' process, the same question again,
--- and the order in which a table was filled.
local library = require "policy.rules"

local seed = 11
local function random(n)
  seed = (seed * 16807) % 2147483647
  return seed % n
end

local COUNTS = [[function(e, memory)
  memory.seen = (memory.seen or 0) + 1
  memory.of = memory.of or {}
  memory.of[e.checkpoint.name] = memory.seen
  return (memory.seen * 7 + (memory.of["checkpoint-3"] or 0)) % 3 > 0, "this is " .. memory.seen
end]]

local LEAVES = {
  "when.iterations(%d)",
  "when.at_most_every(%d)",
  "none { when.bytes(%d) }",
  "when.metric_improved('loss', 'min')",
  "when.metric_improved('acc', 'max')",
  COUNTS,
}

local function random_rule()
  local rules = {}
  for i = 1, 1 + random(3) do rules[i] = LEAVES[1 + random(#LEAVES)]:gsub("%%d", random(6)) end
  return ("%s { %s }"):format(random(2) == 0 and "any" or "all", table.concat(rules, ", "))
end

local function random_event(i)
  return library.event {
    checkpoint = {
      name = "checkpoint-" .. i,
      step = i,
      bytes = random(10),
      generation = 0,
      metrics = { loss = random(9), acc = random(9) },
    },
    since = { results = random(6), seconds = random(6), bytes = random(6) },
    results = i,
  }
end

-- The same table, whose members were put in in another order, and some taken out again.
local function shuffled(value)
  if type(value) ~= "table" then return value end
  local keys, made = {}, {}
  for key in pairs(value) do table.insert(keys, 1 + random(#keys + 1), key) end
  for i = 1, random(20) do made["gone" .. i] = i end
  for _, key in ipairs(keys) do made[key] = shuffled(value[key]) end
  for key in pairs(made) do if value[key] == nil then made[key] = nil end end
  return made
end

describe("A decision, of random rules over random events,", function()
  -- Asks both, and goes on; tells of each question what was asked and answered, and the memory.
  local function each_question(fn)
    local asked = 0
    for _ = 1, 60 do
      local keys = "sync = " .. random_rule()
      local lived, memory = library.keys(keys), {}
      for i = 1, 12 do
        local e, before = random_event(i), memory
        local answer, reason, _, changed = lived.ask("sync", shuffled(e), lived.copy(before))
        if changed then memory = lived.copy(changed) end
        fn(keys, e, before, { answer, reason, memory })
        asked = asked + (answer == "sync" and 1 or 0)
      end
    end
    assert.is_true(asked > 100 and asked < 620, asked) -- both answers were given
  end

  it("is the same by policies that were loaded anew", function()
    each_question(function(keys, e, before, said)
      local M = library.keys(keys)
      local answer, reason, _, changed = M.ask("sync", e, shuffled(M.copy(before)))
      assert.same(said, { answer, reason, changed and M.copy(changed) or before }, keys)
    end)
  end)

  it("is the same when it is asked for again, and nothing more is remembered", function()
    each_question(function(keys, e, before, said)
      local M = library.keys(keys)
      for _ = 1, 2 do
        local answer, reason, _, changed = M.ask("sync", e, M.copy(said[3]), M.copy(before))
        assert.same({ said[1], said[2] }, { answer, reason }, keys)
        assert.is_nil(changed, keys)
      end
    end)
  end)
end)
