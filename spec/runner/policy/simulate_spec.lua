-- policy simulate: what a policy would have done in a run that is told by its events.

local place = require "place"
local support = require "support"
local ends, has, sh = place.ends, place.has, place.must_sh

local dir

place.with_directory(function(made) dir = made end)

-- A file of events: lines of Lua tables would be no shorter.
local function tell(...) support.write(dir .. "/e.jsonl", table.concat({ ... }, "\n") .. "\n") end

local function policy(keys) support.write(dir .. "/p.lua", "return { api = 1, " .. keys .. " }") end

-- The lines of a simulation, and its sum behind them.
local function simulate(args, code)
  local text = ends(code or 0, "policy simulate e.jsonl --json " .. (args or "-p builtin"))
  local rows = place.objects(text)
  return rows, table.remove(rows)
end

local function checkpoint(t, name, more)
  return ('{"t":%s,"event":"checkpoint","checkpoint":{"name":"%s","bytes":100%s}}')
    :format(t, name, more or "")
end

-- "1 2 3": of each row the words that `key` has.
local function all(rows, key)
  local words = {}
  for i, row in ipairs(rows) do
    words[i] = type(row[key]) == "table" and table.concat(row[key], "+") or tostring(row[key])
  end
  return table.concat(words, " ")
end

describe("policy simulate", function()
  it("says that it does not ask what one is saved without", function()
    policy "exclude = { '*.log', function() return 'optim*' end }"
    tell('{"event":"start"}', checkpoint(10, "c-1"))
    local text, said = ends(0, "policy simulate e.jsonl --json -p ./p.lua")
    has(said, "the function of `exclude` is not asked here: each checkpoint has the bytes")
    local rows = place.objects(text)
    assert.are.equal(100, rows[#rows].bytes_sent)
    policy "exclude = { '*.log' }"
    assert.are.equal("", (select(2, ends(0, "policy simulate e.jsonl --json -p ./p.lua"))))
  end)

  it("says that it does not ask what only the newest keep", function()
    policy "newest_only = { 'optim*' }"
    tell('{"event":"start"}', checkpoint(10, "c-1"))
    has(select(2, ends(0, "policy simulate e.jsonl --json -p ./p.lua")),
      "newest_only is not asked here: each checkpoint has the bytes")
  end)

  it("tells each event in order, with the decision and its reason, and then the sum", function()
    policy "sync = when.at_most_every('1m'), keep = keep.last(1)"
    tell('{"event":"start"}', checkpoint(10, "c-1"), checkpoint(20, "c-2"), checkpoint(80, "c-3"),
      '{"t":90,"event":"end"}')
    local rows, sum = simulate "-p ./p.lua --max-delete 100%"
    assert.equal("0 1 2 3 4", all(rows, "i"))
    assert.equal("0 10 20 80 90", all(rows, "t"))
    assert.equal("start checkpoint checkpoint checkpoint end", all(rows, "event"))
    assert.equal("skip sync skip skip sync", all(rows, "decision"))
    has(rows[3].reason, "10.0 of 60 s")
    assert.equal("p", rows[3].by)
    assert.equal(" c-1 c-2  c-3", all(rows, "saved")) -- c-2 as soon as it may be
    assert.equal("  c-1  c-2", all(rows, "deleted"))
    assert.equal("summary", sum.event)
    assert.same({ 5, 3, 1, 2, 0, 300 },
      { sum.events, sum.saves, sum.kept, sum.dropped, sum.crashes, sum.bytes_sent })
  end)

  it("is soon done with many checkpoints that a policy holds back", function()
    local lines = {}
    for i = 1, 1000 do
      lines[2 * i - 1] = checkpoint(10 * i, "c-" .. i)
      lines[2 * i] = ('{"t":%d,"event":"result"}'):format(10 * i + 5)
    end
    tell(unpack(lines))
    policy "sync = function() return false, 'not now' end"
    -- Of the processor, whatever else the machine does.
    sh(("ulimit -t %d && '%s' policy simulate e.jsonl -p ./p.lua --json >out")
      :format(support.sanitized and 60 or 3, support.runner))
  end)

  it("is soon done with many checkpoints that wait for the end of their grace", function()
    local lines = {}
    for i = 1, 2000 do lines[i] = checkpoint(10 * i, "c-" .. i) end
    tell(unpack(lines))
    policy "keep = keep.last(3)"
    sh(("ulimit -t %d && '%s' policy simulate e.jsonl -p ./p.lua --max-delete 100%% --json >out")
      :format(support.sanitized and 80 or 5, support.runner))
  end)

  -- Beside them a name whose older generations go, so that it is asked each time what stays.
  it("is soon done with many checkpoints of which most stay", function()
    local lines = {}
    for i = 1, 5000 do
      lines[2 * i - 1] = checkpoint(60 * i, "c-" .. i)
      lines[2 * i] = checkpoint(60 * i + 30, "last")
    end
    tell(table.concat(lines, "\n"))
    policy 'unit = { "c-{step}/", "last/" }'
    local sum = "tail -n 1 out | grep -o '\"saves\":10000,'"
    sh(("ulimit -t %d && '%s' policy simulate e.jsonl -p ./p.lua --json >out && %s")
      :format(support.sanitized and 80 or 5, support.runner, sum))
  end)

  it("is soon done with many checkpoints that no store takes", function()
    local lines = {}
    for i = 1, 1500 do lines[i] = checkpoint(60 * i, "c-" .. i) end
    lines[1] = lines[1]:gsub("}$", ',"transfer":{"seconds":1,"outcome":"fail"}}')
    tell(unpack(lines))
    sh(("ulimit -t %d && '%s' policy simulate e.jsonl -p builtin --json >out")
      :format(support.sanitized and 80 or 5, support.runner))
  end)

  it("shows the same to people", function()
    tell(checkpoint(10, "c-1"), '{"t":70,"event":"crash"}')
    local text = ends(0, "policy simulate e.jsonl -p builtin")
    has(text, "10.0  checkpoint  -      sync      c-1         saved c-1")
    has(text, "lost 60 s")
    has(text, "1 crash, 60 s of work lost")
    assert.equal(text, (ends(0, "policy simulate - -p builtin <e.jsonl")))
  end)

  it("lets a save take its time, and the newest of those that wait comes next", function()
    tell(checkpoint(0, "c-1"), checkpoint(1, "c-2"), checkpoint(2, "c-3"), checkpoint(30, "c-4"))
    local rows, sum = simulate "-p builtin --bandwidth 10/s"
    assert.equal("  c-1+c-3 c-4", all(rows, "saved"))
    assert.equal("  c-2 ", all(rows, "let_go"))
    assert.same({ 3, 1, 40 }, { sum.saves, sum.passed_over, sum.seconds })
    policy "queue = 'all'"
    assert.equal("  c-1+c-2+c-3 c-4", all(simulate "-p ./p.lua --bandwidth 10/s", "saved"))
    policy "queue = 'skip'"
    rows = simulate "-p ./p.lua --bandwidth 10/s"
    assert.equal("sync skip skip sync", all(rows, "decision"))
    has(rows[2].reason, "the policy wants no queue")
  end)

  it("tries a failed save again as a run does, until the policy gives up", function()
    tell('{"event":"start","transfer":{"seconds":1,"outcome":"fail"}}', checkpoint(10, "c-1"),
      '{"t":100,"event":"result","transfer":{"outcome":"ok"}}')
    local rows, sum = simulate()
    -- Tries at 10, 12, 15, 20, 29, 46 and 79 s; the one at 140 s gets there.
    assert.equal(7, #rows[2].failed)
    assert.same({ "c-1" }, rows[3].saved)
    assert.same({ 7, 1, 141 }, { sum.failures, sum.saves, sum.seconds })
    policy "on_error = function() return 'skip' end"
    rows, sum = simulate "-p ./p.lua"
    assert.equal(1, #rows[2].failed)
    assert.same({ 0, 1 }, { sum.saves, sum.unsaved })
  end)

  it("says what a crash costs: the work since the last checkpoint that is in the store", function()
    tell('{"event":"start"}', checkpoint(10, "c-1"), checkpoint(20, "c-2"),
      '{"t":25,"event":"crash"}', '{"t":40,"event":"start"}', '{"t":47,"event":"crash"}')
    local rows, sum = simulate "-p builtin --bandwidth 10/s"
    assert.equal("0 0 0 15 0 7", all(rows, "lost_s"))
    assert.same({ 2, 22, 1, 1 }, { sum.crashes, sum.lost_s, sum.saves, sum.unsaved })
  end)

  it("saves what fits into the grace of a preemption, and loses the rest", function()
    tell(checkpoint(0, "c-1"), '{"t":100,"event":"preempt","grace":15}', checkpoint(101, "c-2"),
      checkpoint(102, "c-3"), '{"t":200,"event":"result"}')
    local rows, sum = simulate "-p builtin --bandwidth 10/s"
    assert.equal("c-1   c-2 ", all(rows, "saved"))
    assert.same({ 2, 1 }, { sum.saves, sum.unsaved })
    policy "on_preempt = 'none'"
    rows = simulate "-p ./p.lua"
    assert.equal("sync skip skip skip skip", all(rows, "decision"))
    has(rows[3].reason, "nothing saved when time is short")
  end)

  it("lets a preemption cost what was at work when the job had ended before", function()
    tell('{"event":"start"}', checkpoint(50, "c-1"), '{"t":55,"event":"complete"}',
      '{"t":57,"event":"preempt","grace":1}', '{"t":58,"event":"end"}')
    assert.same({ 55, 1 }, { select(2, simulate "-p builtin --bandwidth 10/s").lost_s,
      select(2, simulate "-p builtin --bandwidth 10/s").unsaved })
    assert.equal(0, select(2, simulate()).lost_s) -- all was saved
  end)

  it("begins no trial again whose machine is being taken", function()
    tell(checkpoint(0, "c-1"), '{"t":100,"event":"preempt","grace":100000}',
      '{"t":90000,"event":"end"}')
    local _, sum = simulate "-p builtin --failures mtbf=1h,seed=1"
    assert.is_true(sum.crashes > 3, sum.crashes)
    assert.equal(100, sum.lost_s)
  end)

  it("makes up the same crashes for the same seed", function()
    local lines = {}
    for i = 1, 50 do lines[i] = checkpoint(i * 100, "c-" .. i) end
    tell(unpack(lines))
    local rows, sum = simulate "-p builtin --failures mtbf=10m,seed=7"
    local again, same = simulate "-p builtin --failures mtbf=10m,seed=7"
    local _, other = simulate "-p builtin --failures mtbf=10m,seed=8"
    assert.same(rows, again)
    assert.same(sum, same)
    assert.not_same(sum, other)
    assert.is_true(sum.crashes > 2 and sum.crashes < 20 and sum.lost_s > 0, sum.crashes)
    assert.equal(50, sum.events)
  end)

  it("keeps by the rules of a run: those of the policy, and those of the engine", function()
    policy "keep = keep.best('loss', 1, 'min')"
    local lines = {}
    for i = 1, 8 do lines[i] = checkpoint(i, "c-" .. i, (',"metrics":{"loss":%d}'):format(i)) end
    tell(unpack(lines))
    local rows, sum = simulate "-p ./p.lua --max-delete 100%"
    assert.equal("  c-2 c-3 c-4 c-5 c-6 c-7", all(rows, "deleted"))
    assert.same({ 2, 6, 800, 800 }, { sum.kept, sum.dropped, sum.bytes_kept, sum.bytes_most })
    sum = select(2, simulate("-p ./p.lua --max-delete 100% --grace-delete 0"))
    assert.same({ 200, 300 }, { sum.bytes_kept, sum.bytes_most })
    sum = select(2, simulate("-p builtin"))
    assert.equal(8, sum.kept)
  end)

  it("lets a policy remember, and forget what a crash took", function()
    policy [[sync = function(e, memory)
      if e.event ~= "complete" then return false end
      memory.n = (memory.n or 0) + 1
      return memory.n % 2 == 1, "it is number " .. memory.n
    end]]
    tell(checkpoint(1, "c-1"), checkpoint(2, "c-2"), '{"t":3,"event":"crash"}',
      checkpoint(4, "c-3"))
    local rows = simulate "-p ./p.lua"
    assert.equal("sync skip skip skip", all(rows, "decision"))
    has(rows[4].reason, "it is number 2")
  end)

  it("takes what is told of all trials for each that has begun", function()
    policy "sync = function(e) return e.results > 1, 'results: ' .. e.results end"
    tell('{"event":"start","trial":"*"}', '{"t":1,"event":"start","trial":"a/b"}',
      '{"t":2,"event":"checkpoint","trial":"a/b","checkpoint":{"name":"c-1"}}',
      '{"t":3,"event":"result","trial":"*","metrics":{"loss":1}}',
      '{"t":4,"event":"result","trial":"*"}',
      '{"t":5,"event":"checkpoint","trial":"c","checkpoint":{"name":"c-1"}}',
      '{"t":6,"event":"crash","trial":"*"}')
    local rows, sum = simulate "-p ./p.lua"
    assert.equal("skip skip skip skip sync sync skip", all(rows, "decision"))
    assert.equal("results: 2", rows[6].reason)
    assert.equal(4 + 1, rows[7].lost_s) -- since the checkpoint of the one, and of the other
    assert.same({ 2, 1 }, { sum.saves, sum.crashes })
  end)

  it("takes the time of each save, and its end, as they are told", function()
    tell(checkpoint(0, "c-1"), checkpoint(100, "c-2"), checkpoint(200, "c-3"),
      '{"t":300,"event":"transfer","checkpoint":{"name":"c-2","bytes":100},"transfer":'
        .. '{"seconds":3,"outcome":"fail"}}',
      '{"t":300,"event":"transfer","checkpoint":{"name":"c-2","bytes":100},"transfer":'
        .. '{"seconds":40}}')
    policy "on_error = function() return 'retry', 10 end"
    local rows, sum = simulate "-p ./p.lua"
    assert.equal(" c-2   ", all(rows, "failed"))
    assert.equal("c-1 c-2 c-3  ", all(rows, "saved")) -- c-1 and c-3 by the pace of c-2
    assert.same({ 3, 1 }, { sum.saves, sum.failures })
    tell(checkpoint(0, "c-1"), '{"t":39,"event":"crash"}',
      '{"t":300,"event":"transfer","checkpoint":{"name":"c-9","bytes":100},"transfer":'
        .. '{"seconds":40}}')
    assert.equal(0, select(2, simulate "-p ./p.lua").saves)
  end)

  it("gives a result to the checkpoint that it names", function()
    policy "keep = keep.best('loss', 1, 'min')"
    tell(checkpoint(1, "c-1"), '{"t":2,"event":"result","metrics":{"loss":1,"checkpoint":"c-1"}}',
      checkpoint(3, "c-2", ',"metrics":{}'),
      '{"t":4,"event":"result","metrics":{"loss":2,"checkpoint":"c-2"}}',
      checkpoint(5, "c-3", ',"metrics":{}'),
      '{"t":6,"event":"result","metrics":{"loss":3,"checkpoint":"c-3"}}')
    local rows = simulate "-p ./p.lua --max-delete 100%"
    assert.equal("c-2", table.concat(rows[5].deleted) .. table.concat(rows[6].deleted))
  end)

  it("asks about what is complete after the end of the job as at its end", function()
    policy "sync = function(e) return e.event == 'end', e.event end"
    tell('{"event":"start"}', '{"t":5,"event":"end"}', checkpoint(6, "c-1"),
      '{"t":7,"event":"crash"}')
    local rows, sum = simulate "-p ./p.lua"
    assert.equal("skip skip sync skip", all(rows, "decision"))
    assert.equal(0, sum.lost_s)
  end)

  it("leaves out a last line that was cut while it was written, and says so", function()
    support.write(dir .. "/e.jsonl", checkpoint(1, "c-1") .. '\n{"t":2,"event":"check')
    local text, said = ends(0, "policy simulate e.jsonl -p builtin --json")
    assert.equal(1, place.objects(text)[2].events)
    has(said, "e.jsonl:2: the last line was cut while it was written, and is left out")
    -- One that is whole and wrong is an error, and so is a file that is something else.
    support.write(dir .. "/e.jsonl", checkpoint(1, "c-1") .. '\n{"event":"stop"}')
    ends(2, "policy simulate e.jsonl -p builtin")
    support.write(dir .. "/e.jsonl", "{ of mine")
    ends(2, "policy simulate e.jsonl -p builtin")
  end)

  it("keeps trials apart, each with its own clock and log", function()
    policy "sync = when.at_most_every('1m'), keep = keep.last(1)"
    tell('{"t":1,"event":"checkpoint","trial":"a","checkpoint":{"name":"c-1"}}',
      '{"t":2,"event":"checkpoint","trial":"b","checkpoint":{"name":"c-1"}}',
      '{"t":3,"event":"checkpoint","trial":"a","checkpoint":{"name":"c-2"}}')
    local rows, sum = simulate "-p ./p.lua"
    assert.equal("sync sync skip", all(rows, "decision"))
    assert.equal("a b a", all(rows, "trial"))
    assert.equal(2, sum.kept) -- and nobody waits for what comes behind the last event
  end)

  it("takes a trial that names no checkpoint for one itself, at each of its events", function()
    tell('{"t":1,"event":"result","trial":"a","training_iteration":5}',
      '{"t":2,"event":"result","trial":"a"}', '{"t":400,"event":"complete","trial":"a"}')
    local rows = simulate "-p ray_tune"
    assert.equal("sync skip sync", all(rows, "decision"))
    assert.equal("a a a", all(rows, "name"))
  end)

  it("goes on with a trial's own save that waits when the next question is answered no", function()
    tell('{"event":"start","trial":"a","transfer":{"seconds":100}}',
      '{"t":1,"event":"result","trial":"a","training_iteration":5}',
      '{"t":10,"event":"checkpoint","trial":"a"}', '{"t":20,"event":"result","trial":"a"}',
      '{"t":300,"event":"end"}')
    local rows = simulate "-p ray_tune"
    assert.equal("skip sync sync skip", all({ unpack(rows, 1, 4) }, "decision"))
    assert.equal("   a+a a", all(rows, "saved"))
  end)

  it("says that something is saved, also where the last word was of something else", function()
    policy "sync = function(e) return e.event == 'end' and e.group == 'a' end"
    tell('{"event":"checkpoint","trial":"a","checkpoint":{"name":"c-1"}}',
      '{"event":"checkpoint","trial":"b","checkpoint":{"name":"c-2"}}', '{"event":"end"}')
    local rows = simulate "-p ./p.lua"
    assert.equal("skip skip sync", all(rows, "decision"))
    assert.same({ "c-1", { "c-1" } }, { rows[3].name, rows[3].saved })
  end)

  it("adds up to what its lines say", function()
    policy "on_error = function() return 'skip' end"
    tell(checkpoint(0, "c-1"), checkpoint(1, "c-2"), checkpoint(2, "c-3"),
      '{"t":15,"event":"result","transfer":{"outcome":"fail"}}',
      '{"t":25,"event":"result","transfer":{"outcome":"ok"}}')
    local rows, sum = simulate "-p ./p.lua --bandwidth 10/s"
    assert.equal("  c-2  ", all(rows, "let_go")) -- and it comes back when c-3 did not make it
    assert.same({ 1, 2, 1 }, { sum.passed_over, sum.saves, sum.unsaved })
    -- Written again under its name while it waits:
    tell(checkpoint(0, "last"), checkpoint(1, "last"), checkpoint(2, "last"))
    rows, sum = simulate "-p builtin --bandwidth 10/s"
    assert.equal("  last", all(rows, "let_go"))
    assert.same({ 1, 2 }, { sum.passed_over, sum.saves })
    -- Never sent in full, and waiting behind that:
    tell('{"event":"checkpoint","checkpoint":{"name":"c-1","bytes":1152921504606846976}}',
      checkpoint(1, "c-2"))
    sum = select(2, simulate "-p builtin --bandwidth 1/s")
    assert.same({ 0, 2 }, { sum.saves, sum.unsaved })
  end)

  it("saves nothing that is in memory, null or temporary", function()
    tell(checkpoint(1, "c-1", ',"kind":"memory"'), checkpoint(2, "c-2", ',"kind":"null"'),
      checkpoint(3, "c-3", ',"kind":"temp"'), checkpoint(4, "c-4", ',"kind":"perm"'))
    assert.equal("skip skip skip sync", all(simulate(), "decision"))
  end)

  describe("names the line that is wrong, and tells nothing:", function()
    for what, row in pairs {
      ["a line that was cut"] = { '{"event":"sta', "e.jsonl:2: " },
      ["a number that is none"] = { '{"t":NaN,"event":"start"}', "e.jsonl:2: " },
      ["one that is too large"] = { '{"t":1e400,"event":"start"}', "e.jsonl:2: " },
      ["a time in another unit"] = { '{"t":1e12,"event":"end"}', '"t" is to be seconds' },
      ["a time that goes back"] = { '{"t":0.5,"event":"end"}', "before the event before it (1)" },
      ["an event that there is none"] = { '{"event":"stop"}', '"event" is to be "start", "res' },
      ["a member that nobody reads"] = { '{"event":"end","x":1}', 'an event has no member "x"' },
      ["a path for a name"] = { checkpoint(2, "a/b"), '"name" is to be a name' },
      ["bytes below 0"] = {
        '{"event":"checkpoint","checkpoint":{"bytes":-1}}', '"bytes" is to be a whole number',
      },
      ["bytes that are too many"] = {
        '{"event":"checkpoint","checkpoint":{"bytes":1e19}}', '"bytes" is to be a whole number',
      },
      ["an outcome that there is none"] = {
        '{"event":"end","transfer":{"outcome":"maybe"}}', '"outcome" is to be "ok" or "fail"',
      },
      ["a checkpoint of all trials"] = {
        '{"event":"checkpoint","trial":"*","checkpoint":{"name":"c-1"}}', "not of \"*\"",
      },
      ["a way out"] = { '{"event":"end","trial":"a/../b"}', '"trial" is to be a name' },
      ["a transfer of nothing"] = { '{"event":"transfer"}', "a transfer is told with" },
      ["a list"] = { "[1]", "an event is an object" },
      ["numbers that are none"] = { '{"event":"end","metrics":[]}', '"metrics" is to be an obj' },
      ["a NUL"] = { '{"event":"end"}\0', "e.jsonl:2: " },
    } do
      it(what, function()
        tell('{"t":1,"event":"start"}', row[1])
        local text, said = ends(2, "policy simulate e.jsonl -p builtin")
        assert.equal("", text)
        has(said, "e.jsonl:2: ")
        has(said, row[2])
      end)
    end

    it("one that is too long", function()
      tell('{"event":"start"}', '{"event":"end","trial":"' .. ("x"):rep(2 ^ 20) .. '"}')
      has(select(2, ends(1, "policy simulate e.jsonl -p builtin")), "e.jsonl:2: the line is longer")
    end)
  end)

  it("reads standard input from where it stands", function()
    tell('{"event":"start"}', '{"t":1,"event":"end"}')
    local text = sh(("(read -r first; '%s' policy simulate - -p builtin --json) <e.jsonl")
      :format(support.runner))
    assert.equal(1, place.objects(text)[2].events)
  end)

  it("ends a history that has no end", function()
    support.write(dir .. "/line", (" "):rep(1000000) .. "\n")
    local _, said = ends(1, "policy simulate - -p builtin", "sh -c 'while cat line; do :; done' |")
    has(said, "more than 256 MiB")
  end)

  it("says in its help the codes that it has", function()
    has(ends(0, "policy simulate --help"), "Exit code: 2 a line of the file is wrong")
  end)

  it("has code 2 for what is asked wrongly, 1 for a file that is not there", function()
    tell('{"event":"end"}')
    for _, args in ipairs { "--failures often", "--failures seed=1", "--failures mtbf=0",
      "--bandwidth fast", "--bandwidth 0", "-p ./none.lua", "-p default -o nothing=1" } do
      ends(2, "policy simulate e.jsonl " .. args)
    end
    has(select(2, ends(2, "policy simulate")), "policy simulate: which FILE?")
    ends(4, "policy simulate none.jsonl")
    ends(1, "policy simulate e.jsonl >/dev/full")
  end)

  it("is bounded, whatever a policy does", function()
    tell(checkpoint(1, "c-1"), checkpoint(2, "c-2"), '{"t":1e8,"event":"end"}')
    policy "sync = function() while true do end end"
    local rows, sum = simulate "-p ./p.lua"
    assert.equal("sync sync skip", all(rows, "decision"))
    assert.equal(2, sum.fallbacks)
    policy "sync = function() return false, 'not yet', 0.01 end"
    has(select(2, ends(1, "policy simulate e.jsonl -p ./p.lua")), "let it name a later one")
  end)

  it("writes nothing", function()
    tell(checkpoint(1, "c-1"))
    local function files() return sh "find . -type f ! -name err.txt -exec ls -l {} +" end
    local before = files()
    simulate "-p default"
    assert.equal(before, files())
  end)

  it("takes 5,000 events in seconds", function()
    local lines = {}
    for i = 1, 5000 do lines[i] = checkpoint(i * 10, "c-" .. i) end
    tell(unpack(lines))
    policy "sync = when.at_most_every('1m'), keep = any { keep.last(3), keep.every_steps(1000) }"
    local _, sum = simulate "-p ./p.lua --grace-delete 0"
    assert.same({ 5000, 0 }, { sum.events, sum.fallbacks })
    assert.is_true(sum.kept < 10 and sum.saves > 800, sum.saves)
  end)
end)
