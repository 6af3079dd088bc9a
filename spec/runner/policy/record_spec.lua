-- --record FILE: what happens in a run, written down so that `policy simulate` can play it again.

local place = require "place"
local support = require "support"
local ends, has, must, sh = place.ends, place.has, place.must, place.must_sh

local dir

place.with_directory(function(made) dir = made end)

local function policy(name, keys)
  support.write(("%s/%s.lua"):format(dir, name), "return { api = 1, " .. keys .. " }")
end

-- A job that writes a checkpoint for each of the steps, and waits until it may go on.
local function job(steps, more)
  support.write(dir .. "/job.sh", ([[
    mkdir -p out
    for n in %s; do
      mkdir out/.new; echo "weights $n" >out/.new/model.bin
      mv out/.new out/checkpoint-$n
      '%s' notify checkpoint=checkpoint-$n loss=0.$(((n * 7) %% 10)) --wait
      sleep 0.3
    done
    %s]]):format(steps, support.runner, more or ""))
end

local function run(args, code)
  return place.sh_ends(code or 0,
    ("'%s' run --dir out --to store --max-delete 100%% %s -- sh job.sh")
      :format(support.runner, args))
end

local function recorded() return place.objects(support.read(dir .. "/r.jsonl")) end

-- Names of all rows: those that were saved, and those that were dropped.
local function simulated(args)
  local text = ends(0, "policy simulate r.jsonl --json --max-delete 100% " .. args)
  local saved, dropped = {}, {}
  local rows = place.objects(text)
  local sum = table.remove(rows)
  for _, row in ipairs(rows) do
    for _, name in ipairs(row.saved) do saved[#saved + 1] = name end
    for _, name in ipairs(row.deleted) do dropped[#dropped + 1] = name end
  end
  table.sort(saved)
  table.sort(dropped)
  return saved, dropped, sum
end

-- Holds them against the target itself: how many were saved, and which of them are kept.
local function are_those_of_the_run(saved, dropped)
  local kept, names = {}, {}
  for _, row in ipairs(place.objects(must "ls store --json")) do names[#names + 1] = row.name end
  local is_dropped = {}
  for _, name in ipairs(dropped) do is_dropped[name] = true end
  for _, name in ipairs(saved) do
    if not is_dropped[name] then kept[#kept + 1] = name end
  end
  table.sort(names)
  assert.same(names, kept)
  local rows = place.objects(ends(0, "policy replay store -p builtin --json"))
  assert.equal(rows[#rows].commits, #saved)
end

local function events()
  local list = {}
  for i, row in ipairs(recorded()) do list[i] = row.event end
  return table.concat(list, " ")
end

describe("--record", function()
  it("writes down a run, which is decided again as it was, or by another policy", function()
    policy("p", [[
      sync = function(e) return e.checkpoint.step % 2 == 0 or e.checkpoint.step == 5, "by step" end,
      keep = keep.best("loss", 2, "min")]])
    policy("q", "keep = keep.last(1)")
    job "1 2 3 4 5 6 8"
    run "-p ./p.lua --record r.jsonl"
    local saved, dropped, sum = simulated "-p ./p.lua"
    assert.same({ "checkpoint-2", "checkpoint-4", "checkpoint-5", "checkpoint-6", "checkpoint-8" },
      saved)
    assert.is_true(#dropped > 0)
    are_those_of_the_run(saved, dropped)
    assert.same({ 5, 0, 0 }, { sum.saves, sum.unsaved, sum.crashes })
    local other = simulated "-p ./q.lua"
    assert.equal(7, #other)
  end)

  it("has each checkpoint with its numbers, and how long each save took", function()
    job "1 2"
    run "-p builtin --record r.jsonl"
    local made, sent, results = {}, {}, 0
    local rows = recorded()
    for _, row in ipairs(rows) do
      if row.event == "checkpoint" then made[#made + 1] = row.checkpoint end
      if row.event == "transfer" then sent[#sent + 1] = row end
      if row.event == "result" then results = results + 1 end
    end
    assert.equal("start", rows[1].event)
    assert.equal("end", rows[#rows].event)
    assert.same({ "checkpoint-1", 1, 10, "perm" },
      { made[1].name, made[1].step, made[1].bytes, made[1].kind })
    assert.same({ 2, 2, 2 }, { #made, #sent, results })
    assert.equal("ok", sent[1].transfer.outcome)
    assert.is_true(sent[1].transfer.seconds > 0)
    assert.equal("checkpoint-1", sent[1].checkpoint.name)
    -- The clock of a simulation shows the time of the run.
    local now = os.time() - 1704067200
    assert.is_true(math.abs(now - rows[1].t) < 600, rows[1].t)
  end)

  it("says that a save failed, so that the one that is played again fails, too", function()
    policy("p", "on_error = function() return 'skip' end")
    support.write(dir .. "/job.sh", [[
      mkdir -p out; rm -rf store; echo 'in the way' >store
      mkdir out/.new; echo w >out/.new/model.bin; mv out/.new out/checkpoint-1
      sleep 1]])
    place.sh(("'%s' run --dir out --to store -p ./p.lua --record r.jsonl -- sh job.sh")
      :format(support.runner))
    local failed
    for _, row in ipairs(recorded()) do
      failed = failed or row.transfer and row.transfer.outcome == "fail"
    end
    assert.is_true(failed)
    local saved, _, sum = simulated "-p ./p.lua"
    assert.same({ {}, 1, 1 }, { saved, sum.failures, sum.unsaved })
  end)

  it("goes on in the record of the run before, which a kill has ended", function()
    policy("p", "keep = keep.last(2)")
    job("1 2", "kill -9 $PPID; sleep 1")
    run("-p ./p.lua --record r.jsonl", 137)
    local before = support.read(dir .. "/r.jsonl")
    assert.equal("\n", before:sub(-1)) -- what was written is whole
    support.write(dir .. "/r.jsonl", before .. '{"t":17,"eve') -- and if the machine had died, too
    local _, said = ends(0, "policy simulate r.jsonl -p ./p.lua")
    has(said, "the last line was cut while it was written, and is left out")
    job "3 4"
    run "-p ./p.lua --record r.jsonl"
    assert.equal(before, support.read(dir .. "/r.jsonl"):sub(1, #before))
    has(events(), "crash start")
    local saved, dropped, sum = simulated "-p ./p.lua"
    are_those_of_the_run(saved, dropped)
    assert.equal(1, sum.crashes)
  end)

  it("is no reason to stop, and harms no file that is something else", function()
    job "1"
    support.write(dir .. "/notes.txt", "of mine")
    sh "mkfifo pipe"
    for _, file in ipairs { "notes.txt", "none/r.jsonl", "pipe", "/dev/full" } do
      sh "rm -rf out store"
      local text = run("-p builtin --record " .. file)
      has(text, "nothing of this run is recorded, and it goes on: ")
      assert.equal(1, #place.objects(must "ls store --json"))
    end
    assert.equal("of mine", support.read(dir .. "/notes.txt"))
  end)

  it("is left to the run that writes to it", function()
    job "1 2"
    place.background(("'%s' run --dir out --to store -p builtin --record r.jsonl -- "
      .. "sh -c 'sh job.sh; until [ -e go ]; do sleep 0.1; done'"):format(support.runner))
    sh "until grep -q checkpoint-2 r.jsonl; do sleep 0.1; done"
    local text = place.sh_ends(0, ("'%s' run --dir out2 --to store2 -p builtin --record r.jsonl "
      .. "-- mkdir -p out2"):format(support.runner))
    has(text, "nothing of this run is recorded, and it goes on: another run writes to r.jsonl")
    sh "touch go"
    place.ended()
    assert.is_nil(events():find("crash", 1, true))
    assert.equal(2, select(3, simulated "-p builtin").saves)
  end)

  it("ends, with one warning, where it cannot be written any more", function()
    job "1 2"
    -- Files of this process and of its children may have 4 KiB: the record alone is as large.
    support.write(dir .. "/r.jsonl", ('{"t":1,"event":"end"}\n'):rep(186))
    local text = place.sh_ends(0, ("ulimit -f 8; '%s' run --dir out --to store -p builtin "
      .. "--record r.jsonl -- sh job.sh"):format(support.runner))
    local _, count = text:gsub("the record of this run ends here, and the run goes on", "")
    assert.equal(1, count, text)
    ends(0, "policy simulate r.jsonl -p builtin")
    assert.equal(2, #place.objects(must "ls store --json"))
  end)

  it("is not touched by a run that is refused", function()
    job "1"
    run "-p builtin --run one --record r.jsonl"
    local before = support.read(dir .. "/r.jsonl") .. '{"t":99999999,"event":"start"}\n'
    support.write(dir .. "/r.jsonl", before)
    sh "rm -rf out out.ckpt"
    run("-p builtin --run two --record r.jsonl", 11)
    assert.equal(before, support.read(dir .. "/r.jsonl"))
  end)

  it("is written by the first of several ranks alone", function()
    support.write(dir .. "/rank.sh", ([[
      mkdir -p out$1
      '%s' run --dir out$1 --to store --rank $1 --world 2 --launch-id x -p builtin \
        --record r.jsonl -- sh -c "mkdir out$1/.n; echo w >out$1/.n/m.bin; \
          mv out$1/.n out$1/checkpoint-1; sleep 1"]]):format(support.runner))
    sh "sh rank.sh 1 & sh rank.sh 0 && wait"
    local starts = 0
    for _, row in ipairs(recorded()) do
      if row.event == "start" and row.trial == "*" then starts = starts + 1 end
    end
    assert.equal(1, starts)
    assert.same({ "checkpoint-1" }, (simulated "-p builtin"))
  end)

  it("is there for watch", function()
    sh "mkdir out"
    place.background(("'%s' watch --dir out --to store -p builtin --record r.jsonl & p=$!; "
      .. "sleep 1; mkdir out/.new; echo w >out/.new/model.bin; mv out/.new out/checkpoint-1; "
      .. "'%s' notify --dir out checkpoint=checkpoint-1 --wait; kill $p; wait $p")
      :format(support.runner, support.runner))
    place.ended()
    has(events(), "checkpoint")
    assert.same({ "checkpoint-1" }, (simulated "-p builtin"))
  end)

  it("lacks nothing of several directories, each a trial of its own", function()
    support.write(dir .. "/job.sh", [[
      for t in a b/c; do
        mkdir -p out/$t out/.new; echo w >out/.new/model.bin; mv out/.new out/$t/checkpoint-1
      done
      sleep 1]])
    run "-p builtin --record r.jsonl"
    local trials = {}
    for _, row in ipairs(recorded()) do
      if row.event == "checkpoint" then trials[row.trial] = row.checkpoint.name end
    end
    assert.same({ a = "checkpoint-1", ["b/c"] = "checkpoint-1" }, trials)
    assert.equal(2, select(3, simulated "-p builtin").saves)
  end)
end)
