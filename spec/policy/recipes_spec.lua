--- Each recipe of docs/recipes.md is a policy that `policy check` has nothing against, and answers
--- as its heading says.
local library = require "policy.rules"
local place = require "place"
local support = require "support"

local page = support.read(support.root .. "/docs/recipes.md")

-- The Lua block below each heading, and the headings in their order.
local recipes, headings = {}, {}
for at, heading in page:gmatch "()\n## %.%.%. ([^\n]+)%?\n" do
  local text = page:sub(at + 4)
  headings[#headings + 1] = heading
  recipes[heading] = text:sub(1, text:find("\n## ", 1, true)):match "\n```lua\n(.-)\n```"
end

local function load(heading)
  local block = assert(recipes[heading], heading)
  return (library.one("return { api = 1,\n" .. block .. "\n}"))
end

--- What is kept of so many checkpoints, whose loss `more` sets.
local function kept(heading, count, more, hook)
  return (library.kept(load(heading), library.items(count, more), hook))
end

--- The answers of `sync` to these events, one after the other, with the memory of the one before.
local function asked(heading, events)
  local M, memory, said = load(heading), {}, {}
  for i, more in ipairs(events) do
    local answer, _, _, now = M.ask("sync", library.event(more), memory)
    said[i], memory = answer, now or memory
  end
  return table.concat(said, " ")
end

local function named(i, metrics)
  return { checkpoint = { name = "c" .. i, step = i, bytes = 1, generation = 0,
    metrics = metrics or {} } }
end

local function at(hour, weekday)
  return { localtime = { year = 2026, month = 11, day = 23, hour = hour, minute = 0, second = 0,
    weekday = weekday or 1, offset = 0 } }
end

-- The loss falls to the middle, and rises again.
local function valley(item, i) item.metrics.eval_loss = math.abs(i - 4) end

local function one_line(command) return (place.must_sh(command):gsub("\n", " "):sub(1, -2)) end

-- The files at a target after a save by this policy of a checkpoint with these files.
local function stored(heading, files)
  place.must_sh "mkdir -p out/checkpoint-1"
  for path in files:gmatch "%S+" do
    local to = "out/checkpoint-1/" .. path
    place.must_sh(("mkdir -p $(dirname %s); echo '{}' >%s"):format(to, to))
  end
  support.write(place.at "@/wish.lua", "return { api = 1,\n" .. recipes[heading] .. "\n}")
  place.must "sync out --to store --settle 0 -p ./wish.lua"
  return one_line "cd store; find * -type f ! -name '.*' | sort"
end

local claims = {
  ["save every ten minutes, and whenever the loss is better"] = function(h)
    local function after(seconds, loss)
      local e = named(1, { eval_loss = loss })
      e.since, e.results = { seconds = seconds, results = 1 }, 1
      return e
    end
    assert.equal("sync skip sync sync", asked(h,
      { after(599, 5), after(599, 6), after(599, 4), after(600, 9) }))
  end,
  ["keep the two newest, the three best and each 5,000th"] = function(h)
    local list = function(item, i)
      valley(item, i)
      item.step = i * 1000
    end
    assert.equal("c3 c4 c5 c10 c11 c12", kept(h, 12, list))
  end,
  ["keep the best by a number that my trainer writes into a file"] = function(h)
    local _, data = library.one("return { api = 1,\n" .. recipes[h] .. "\n}")
    assert.is_table(data.metrics)
    assert.equal("c2 c5", kept(h, 5, function(item, i) item.metrics.bleu = i == 2 and 9 or 1 end))
  end,
  ["keep fewer the older they are"] = function(h)
    local names = kept(h, 24 * 30)
    local _, count = names:gsub("c%d+", "")
    assert(count >= 24 + 5 and count <= 24 + 7 + 8, names)
  end,
  ["stay under a size"] = function(h)
    local large = function(item) item.bytes = 200e9 end
    assert.equal("c19 c20", kept(h, 20, large))
  end,
  ["try a rule that deletes before it deletes"] = function(h)
    local answer, _, _, _, warnings = load(h).ask("keep", { list = library.items(8) })
    assert.is_nil(answer)
    assert.truthy(warnings[1]:find("they would free 3 of 8", 1, true), warnings[1])
  end,
  ["be sure that the best one never goes"] = function(h)
    assert.equal("c4 c18 c19 c20", kept(h, 20, valley))
  end,
  ["save only what was evaluated"] = function(h)
    local last = named(3)
    last.event = "end"
    local without = named(1)
    without.checkpoint.metrics = nil
    assert.equal("skip skip sync sync",
      asked(h, { without, named(1), named(2, { eval_loss = 1 }), last }))
  end,
  ["save every fifth"] = function(h)
    local events = {}
    for i = 1, 10 do events[i] = named(i) end
    assert.equal("skip skip skip skip sync skip skip skip skip sync", asked(h, events))
  end,
  ["save nothing in the first hour"] = function(h)
    assert.equal("skip sync sync", asked(h, { { result = { time_total_s = 3600 } },
      { result = { time_total_s = 3601 } }, { store = { commits = 1 } } }))
  end,
  ["keep uploads out of office hours"] = function(h)
    assert.equal("sync skip skip sync", asked(h, { at(7), at(8), at(17), at(18) }))
  end,
  ["do so on weekdays only"] = function(h)
    assert.equal("skip skip sync sync", asked(h, { at(9, 1), at(17, 5), at(9, 6), at(18, 1) }))
  end,
  ["save before the time of the job is over"] = function(h)
    local function left(seconds, since)
      return { job = { seconds = 9, left = seconds }, since = { seconds = since } }
    end
    assert.equal("skip sync sync", asked(h, { left(301, 60), left(300, 60), left(9e3, 3600) }))
  end,
  ["spend at most 5% of the time on saves"] = function(h)
    local function spent(seconds, ran)
      return { job = { seconds = ran }, saves = { seconds = 10, spent = seconds },
        since = { seconds = 300 } }
    end
    assert.equal("skip sync", asked(h, { spent(40, 999), spent(40, 1000) }))
  end,
  ["save as Ray Tune did"] = function(h)
    local function of(results, seconds)
      return { results = results, result = { training_iteration = results, time_total_s = seconds },
        since = { results = results } }
    end
    assert.equal("skip sync", asked(h, { of(1, 5), of(3, 20) }))
  end,
  ["leave the optimizer out"] = function(h)
    assert.equal("checkpoint-1/model.bin checkpoint-1/trainer_state.json", stored(h,
      "model.bin optimizer.pt global_step1/mp_rank_00_optim_states.pt trainer_state.json"))
  end,
  ["save the optimizer now and then"] = function(h)
    local function left(step, event)
      local e = library.event { event = event, checkpoint = { step = step } }
      return (load(h).ask("exclude", e))
    end
    assert.same({ "optimizer.pt" }, left(100, "complete"))
    assert.is_nil(left(5000, "complete"))
    assert.is_nil(left(100, "end"))
    assert.is_nil(left(100, "preempt"))
  end,
  ["keep the optimizer with the newest alone"] = function(h)
    local _, data = library.one("return { api = 1,\n" .. recipes[h] .. "\n}")
    assert.equal(2, data.newest_only.newest)
    assert.same({ "optimizer.pt", "*_optim_states.pt", "scheduler.pt" }, data.newest_only.files)
  end,
  ["save the files of rank 0 alone"] = function(h)
    assert.equal("checkpoint-1/model_rank0.bin checkpoint-1/trainer_state.json", stored(h,
      "model_rank0.bin model_rank1.bin model_rank17.bin trainer_state.json"))
  end,
  ["save what my own program calls a checkpoint"] = function(h)
    assert.equal("snap-1/DONE snap-1/a",
      stored(h, "../snap-1/a ../snap-1/b.log ../snap-1/tmp/c ../snap-1/DONE a DONE"))
  end,
  ["put a file beside the checkpoints back, too"] = function(h)
    place.must_sh "mkdir out; echo checkpoint-1 >out/latest"
    stored(h, "model.bin trainer_state.json ../vocab.json ../runs/b/c ../other.json")
    place.must_sh "rm -rf out"
    place.must "run --dir out --to store --continue-run -p ./wish.lua -- true"
    assert.equal("latest runs/b/c vocab.json",
      one_line "cd out; find * -type f ! -path '*/model.bin' ! -name '*_state.json' | sort")
  end,
  ["go on from the best, and not from the newest"] = function(h)
    assert.equal("c4", kept(h, 9, valley, "restore"))
    local without = function(item) item.metrics = nil end
    assert.is_nil((load(h).ask("restore", { list = library.items(3, without), now = 2e9 })))
  end,
  ["free the disk of the node"] = function(h)
    assert.equal("c4 c5", kept(h, 5, nil, "keep_local"))
  end,
  ["save the newest alone when the job is evicted"] = function(h)
    assert.equal("newest", (load(h).ask("on_preempt", library.event { event = "preempt" })))
  end,
  ["give up after so many errors, or never"] = function(h)
    local function said(code, tries)
      local e = { event = "error", error = { code = code, tries = tries } }
      return (load(h).ask("on_error", library.event(e), {}))
    end
    assert.same({ action = "abort" }, said("ACCESS", 1))
    assert.same({ action = "retry", seconds = 60 }, said("EIO", 99))
    assert.same({ action = "skip" }, said("EIO", 100))
  end,
}

describe("docs/recipes.md", function()
  local dir

  place.with_directory(function(made) dir = made end)

  it("has twenty recipes", function() assert(#headings >= 20, #headings) end)

  for _, heading in ipairs(headings) do
    local block = recipes[heading]
    if block then
      it("says right how to " .. heading, function()
        assert(claims[heading], "nothing says what it does")(heading)
        support.write(dir .. "/wish.lua", "return {\n  api = 1,\n" .. block .. "\n}\n")
        local said, code = support.sh(("'%s' policy check '%s/wish.lua' 2>&1")
          :format(support.runner, dir))
        assert.equal(0, code, said)
        assert.falsy(said:find "warning", said)
      end)
    end
  end
end)
