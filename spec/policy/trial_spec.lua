-- A policy whose functions are wrong is told of before the job starts: they are tried with facts
-- that are made up.

local place = require "place"
local support = require "support"
local has, lacks, sh = place.has, place.lacks, place.must_sh

local dir

place.with_directory(function(made)
  dir = made
  sh "mkdir out"
  place.save("out", 1, 2)
  place.says(0, "sync out --to store --settle 0 --trust")
end)

--- What `plan` says of such a policy.
local function said_of(text)
  support.write(dir .. "/p.lua", text)
  local _, said = place.ends(0, "plan store -p ./p.lua")
  return said
end

local function with(keys) return said_of("return { api = 1,\n" .. keys .. "\n}") end

describe("the functions of a policy", function()
  for _, row in ipairs {
    { "sync = function(e) return e.nothing.loss end", "sync fails: it raised an error: p.lua:2: " },
    { "sync = function() return 'savee' end", "its answer is none: p: `sync` returned" },
    { "sync = any { when.bytes(1), function(e) return e.result.loss < 1 end }", "p.lua:2: " },
    { "sync = function(e) if e.event == 'end' then e.x.y = 1 end end", "sync fails" },
    { "sync = function(e) while true do end end", "sync fails: it ran too long: p.lua:2: " },
    { "ready = function() return 'yes' end", "ready fails: its answer is none" },
    { "ready = function() return false, 'no', 'soon' end", 'says to ask again in "soon"' },
    { "queue = function() return 'oldest' end", "queue fails: its answer is none" },
    { "exclude = { 'a', function() return 5 end }", "exclude fails: its answer is none" },
    { "keep = function(list) return { 'nobody' } end", "keep fails: its answer is none" },
    { "keep_local = function(list) return list[9].name end", "keep_local fails" },
    { "restore = function(list) return list.first.name end", "restore fails" },
    { "on_error = function() return 'retry', '30 parsecs' end", "on_error fails" },
    { "on_preempt = function(e) return e.checkpoint.step > 3 and 'all' end", "on_preempt fails" },
    { "on_committed = function(e, memory) memory.f = print end", "on_committed fails" },
    { "on_failed = function(e) return e.error.code.x.y end", "on_failed fails" },
  } do
    it("is wrong, and that is told: " .. row[1], function()
      local said = with(row[1])
      has(said, "warning: policy p: tried with made-up facts, ")
      has(said, row[2])
    end)
  end

  it("are told of once, and with what happens then", function()
    local said = with "sync = function(e) return e.a.b end"
    assert.are.equal(1, select(2, said:gsub("tried with made%-up facts", "")))
    has(said, "; where it does, what is complete is saved\n")
  end)

  it("that ask before they count on a fact are fine, whatever a job reports", function()
    lacks(with [[
      sync = any { when.metric_improved("loss", "min"), function(e, memory)
        memory.n = (memory.n or 0) + 1
        local m = e.checkpoint.metrics
        if m and m.loss + m.accuracy > memory.n then return true, "good" end
        return e.event == "end" or e.result and e.result.loss < 1, "reported", "10m"
      end },
      keep = function(list)
        local chosen = {}
        for _, c in ipairs(list) do
          if not c.metrics or c.metrics.loss < 1 then chosen[#chosen + 1] = c end
        end
        return chosen
      end,
      on_error = function(e) return "retry", e.error.tries end,
      on_preempt = function(e) return e.grace > 5 and "all" or "newest" end,
      on_committed = function(e, memory) memory.last = e.checkpoint.name end]], "made-up")
  end)

  it("are not tried where there are none: rules have nothing to be wrong with", function()
    local said = with "keep = keep.best('loss', 1, 'min')"
    lacks(said, "made-up")
    has(said, "loss") -- there is none: a warning of the real question
  end)

  it("are told of at the start of a run, and what was made up leaves no trace", function()
    support.write(dir .. "/p.lua", [[
      local seen = 0
      return { api = 1, sync = function(e, memory)
        seen = seen + 1
        memory.n = (memory.n or 0) + 1
        if e.checkpoint.step == 1000 then error "no" end
        return true, "asked " .. seen .. ", counted " .. memory.n
      end }]])
    sh "rm -r out; mkdir out"
    support.write(dir .. "/job.sh", "mkdir out/.new && echo weights >out/.new/model.bin && " ..
      "mv out/.new out/checkpoint-1 && sleep 0.5\n")
    local _, said = place.ends(0, "run --dir out --to other -p ./p.lua -- sh job.sh")
    has(said, "tried with made-up facts, sync fails")
    lacks(said, "time so far")
    has(place.must "show other checkpoint-1", "asked 1, counted 1")
  end)
end)
