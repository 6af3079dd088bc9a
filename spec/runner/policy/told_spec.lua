-- policy simulate: what a line of the file may have. One form for all events: who tells a run may
-- say of each of them how far the training is, and of its checkpoint.

local place = require "place"
local support = require "support"
local ends, has = place.ends, place.has

local dir

place.with_directory(function(made) dir = made end)

local function simulate(lines, args)
  support.write(dir .. "/e.jsonl", table.concat(lines, "\n") .. "\n")
  local rows = place.objects(ends(0, "policy simulate e.jsonl --json " .. args))
  return rows, table.remove(rows)
end

local function policy(keys) support.write(dir .. "/p.lua", "return { api = 1, " .. keys .. " }") end

-- As a program prints it that knows nothing of what is read of which event.
local function full(t, event, number)
  return ([[{"t":%d,"event":"%s","trial":"a","training_iteration":%d,"time_total_s":4.2,]]
    .. [["checkpoint":{"name":"checkpoint_00000%d","step":%d,"bytes":1000000,"kind":"perm",]]
    .. [["metrics":{"loss":0.2}},"transfer":{"seconds":5,"outcome":"ok"}}]]):format(
    t, event, number, number, number)
end

local function all(rows, key)
  local words = {}
  for i, row in ipairs(rows) do
    words[i] = type(row[key]) == "table" and table.concat(row[key], "+") or tostring(row[key])
  end
  return table.concat(words, " ")
end

local SEEN = [[sync = function(e)
  return e.event == "complete", e.event .. " " .. e.results .. " "
    .. tostring(e.result.training_iteration) .. " " .. tostring(e.checkpoint.metrics.loss)
end]]

describe("a line of policy simulate", function()
  it("may say all of a run that there is to say, of each event", function()
    local lines = {}
    for event in ("start result checkpoint complete error preempt crash end"):gmatch "%S+" do
      lines[#lines + 1] = full(10 * #lines + 10, event, #lines + 1)
    end
    local rows, sum = simulate(lines, "-p builtin")
    assert.equal("skip sync sync skip skip skip skip skip", all(rows, "decision"))
    assert.equal(" checkpoint_000002 checkpoint_000003     ", all(rows, "saved"))
    assert.same({ 8, 2, 2000000 }, { sum.events, sum.saves, sum.bytes_sent })
  end)

  it("with a checkpoint and numbers is a result, and then a checkpoint that has them", function()
    policy(SEEN)
    local own = '"training_iteration":7,"metrics":{"loss":0.5},"checkpoint":{"name":"c-1"}}'
    local apart = simulate({
      '{"event":"start"}', '{"t":1,"event":"result","training_iteration":7,"metrics":{"loss":0.5}}',
      '{"t":1,"event":"checkpoint","checkpoint":{"name":"c-1"}}',
    }, "-p ./p.lua")
    assert.equal("complete 1 7 0.5", apart[3].reason)
    for _, event in ipairs { "checkpoint", "result" } do
      local rows = simulate({ '{"event":"start"}', ('{"t":1,"event":"%s",'):format(event) .. own },
        "-p ./p.lua")
      assert.equal("complete 1 7 0.5", rows[2].reason)
      assert.same({ "c-1" }, rows[2].saved)
    end
  end)

  it("with a result and a checkpoint asks about what is held back, too", function()
    policy "sync = function(e) return e.results > 1, 'results: ' .. e.results end"
    local rows = simulate({
      '{"event":"checkpoint","checkpoint":{"name":"c-1"},"training_iteration":1}',
      '{"t":1,"event":"checkpoint","checkpoint":{"name":"d-1"},"training_iteration":2}',
    }, "-p ./p.lua")
    assert.same({ "c-1", "d-1" }, rows[2].saved)
  end)

  it("tells with another event how far the training is, and that is no result", function()
    policy [[sync = function(e)
      return e.event == "end", e.event .. " " .. e.results .. " " .. e.result.training_iteration
    end]]
    local rows, sum = simulate({
      '{"event":"result","training_iteration":1}',
      '{"t":1,"event":"checkpoint","checkpoint":{"name":"c-1"}}',
      '{"t":2,"event":"complete","training_iteration":5,"checkpoint":{"name":"c-2","bytes":7}}',
    }, "-p ./p.lua")
    assert.equal("complete 1 1", rows[2].reason)
    assert.equal("end 1 5", rows[3].reason)
    -- The checkpoint that such an event names is one that was told before.
    assert.same({ { "c-1" }, 1, 0 }, { rows[3].saved, sum.saves, sum.bytes_sent })
  end)

  it("that leaves the trial out is of the only one that there is, or of all", function()
    local function named(t, trial)
      return ('{"t":%d,"event":"checkpoint","trial":"%s","checkpoint":{"name":"c-1"}}')
        :format(t, trial)
    end
    local rows, sum = simulate({
      '{"event":"start"}', named(1, "a"), named(2, "b"),
      '{"t":5,"event":"crash"}', '{"t":6,"event":"start"}', '{"t":9,"event":"end"}',
    }, "-p builtin")
    assert.equal(" c-1 c-1   ", all(rows, "saved"))
    assert.equal(" a b   ", all(rows, "trial"))
    assert.equal(4 + 3, rows[4].lost_s)
    assert.same({ 2, 1, 2 }, { sum.saves, sum.crashes, sum.kept })
  end)

  it("that leaves it out of a checkpoint or a result is of one beside those with names", function()
    local rows, sum = simulate({
      '{"event":"start"}', '{"t":1,"event":"checkpoint","trial":"a","checkpoint":{"name":"c-1"}}',
      '{"t":2,"event":"checkpoint","checkpoint":{"name":"c-2"}}', '{"t":5,"event":"crash"}',
    }, "-p builtin")
    assert.equal(3, rows[4].lost_s)
    assert.equal(2, sum.kept)
  end)

  it("that leaves it out of a start leaves trials what they are: checkpoints themselves", function()
    local lines = {
      '{"event":"start"}', '{"t":1,"event":"result","trial":"a","training_iteration":5}',
      '{"t":400,"event":"end"}',
    }
    assert.equal("skip sync sync", all(simulate(lines, "-p ray_tune"), "decision"))
  end)

  it("names no checkpoint of all trials, beside a result neither", function()
    support.write(dir .. "/e.jsonl", '{"event":"result","trial":"*","checkpoint":{"name":"c-1"}}\n')
    has(select(2, ends(2, "policy simulate e.jsonl -p builtin")), 'not of "*"')
  end)
end)
