-- What must not change what policies decide over whole histories.

local json = require "cjson"
local place = require "place"
local support = require "support"

local dir

place.with_directory(function(made) dir = made end)

local seed = 5
local function random(n)
  seed = (seed * 16807) % 2147483647
  return seed % n
end

-- An object as JSON, with its members in a random order.
local function object(value)
  if type(value) ~= "table" then return json.encode(value) end
  local members = {}
  for key, member in pairs(value) do
    table.insert(members, 1 + random(#members + 1), ("%q:%s"):format(key, object(member)))
  end
  return "{" .. table.concat(members, ",") .. "}"
end

local function random_events()
  local t, events = 0, { { event = "start" } }
  for i = 1, 60 do
    t = t + 1 + random(200)
    events[#events + 1] = { t = t, event = "result", training_iteration = i, time_total_s = t,
      metrics = { loss = random(50) / 10 } }
    events[#events + 1] = { t = t + 1, event = "checkpoint", checkpoint = {
      name = "checkpoint-" .. i, step = i, bytes = random(9) * 1000,
      metrics = { loss = random(50) / 10 } } }
    if random(15) == 0 then
      t = t + 3
      events[#events + 1] = { t = t, event = "crash" }
      events[#events + 1] = { t = t, event = "start" }
    end
  end
  return events
end

local function tell(events)
  local lines = {}
  for i, e in ipairs(events) do lines[i] = object(e) end
  support.write(dir .. "/e.jsonl", table.concat(lines, "\n") .. "\n")
end

local function simulated(policy)
  return (place.ends(0, "policy simulate e.jsonl --json --max-delete 100% --bandwidth 100/s -p " ..
    policy))
end

local KEYS = {
  "sync = any { when.at_most_every '2m', when.metric_improved('loss', 'min') }",
  "keep = any { keep.last(2), keep.best('loss', 2, 'min'), keep.every_steps(7) }",
  "queue = function(e) return e.queue.waiting > 1 and 'skip' or 'newest' end",
  "on_error = function(e) return e.error.tries < 3 and 'retry' or 'skip', '1s' end",
  "on_committed = function(e, memory) memory[e.checkpoint.name] = true end",
}

describe("policies", function()
  it("decide alike in whatever order keys and members are written, in each process", function()
    for _ = 1, 3 do
      local events, first = random_events(), nil
      for _ = 1, 5 do
        tell(events)
        for i = #KEYS, 2, -1 do
          local j = 1 + random(i)
          KEYS[i], KEYS[j] = KEYS[j], KEYS[i]
        end
        support.write(dir .. "/p.lua", "return { api = 1,\n" .. table.concat(KEYS, ",\n") .. " }")
        local said = simulated "./p.lua"
        first = first or said
        assert.equal(first, said)
      end
      local rows = place.objects(first)
      local sum = rows[#rows]
      assert.is_true(sum.saves > 5 and sum.dropped > 0 and sum.fallbacks == 0, first)
    end
  end)

  it("that are shipped decide as what `policy show` prints of them", function()
    tell(random_events())
    local shipped = place.objects(place.must "policy list --json")
    assert.is_true(#shipped > 4)
    for _, policy in ipairs(shipped) do
      local name = policy.name
      place.must_sh(("'%s' policy show %s >%s.lua"):format(support.runner, name, name))
      assert.equal(simulated(name), simulated("./" .. name .. ".lua"), name)
    end
  end)
end)
