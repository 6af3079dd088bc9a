-- Time drives time, and the queue keeps what `keep` wants: jobs of a real run, by the real clock.

local json = require "cjson"
local place = require "place"
local support = require "support"
local has, lacks, sh = place.has, place.lacks, place.must_sh
local CKPT, read, write = support.runner, support.read, support.write

local dir

place.with_directory(function(made)
  dir = made
  sh "mkdir out"
  write(dir .. "/job.sh", ([[
CKPT='%s'
save() {
  mkdir out/.new && head -c "${2:-10}" /dev/zero >out/.new/model.bin &&
  echo '{}' >out/.new/trainer_state.json && mv out/.new out/checkpoint-$1
}
# Waits, 10 s at most, until the target has it.
saved() {
  for _ in $(seq 100); do
    "$CKPT" ls store 2>/dev/null | grep -q "checkpoint-$1 " && return
    sleep 0.1
  done
  echo "checkpoint-$1 was not saved while the job ran"
  return 1
}
]]):format(CKPT))
end)

local function policy(text) write(dir .. "/p.lua", "return { api = 1, " .. text .. " }\n") end

--- Runs this job under the policy; returns what was said and what the target has.
local function run(job, environment, options)
  local text = place.sh_ends(0, ("%s '%s' run --dir out --to store %s -- bash -c '. ./job.sh; %s'")
    :format(environment or "", CKPT, options or "-p ./p.lua", job))
  return text, place.listed "store"
end

local function ended() return json.decode(read(dir .. "/out.ckpt/exit.json")) end

-- A zone in which it is this many seconds before a time of day, "XYZ-01:02:03".
local function zone_before(hour, seconds)
  local ahead = (hour * 3600 - seconds - os.time()) % 86400
  local sign = "-"
  if ahead > 43200 then
    ahead, sign = 86400 - ahead, "+"
  end
  local h, m, s = math.floor(ahead / 3600), math.floor(ahead / 60) % 60, ahead % 60
  return ("XYZ%s%02d:%02d:%02d"):format(sign, h, m, s)
end

describe("a rule of time", function()
  it("saves when it holds, though nothing is reported and the job goes on", function()
    policy 'sync = when.at_most_every "2s"'
    local text, listed = run "save 1; saved 1 && save 2 && saved 2"
    lacks(text, "was not saved")
    assert.are.equal("checkpoint-1 checkpoint-2", listed)
  end)

  it("saves when a window of the local clock begins", function()
    policy 'sync = when.hours("22:00", "06:00")'
    local text, listed = run("save 1; sleep 1; \"$CKPT\" ls store | grep -c weights; saved 1",
      ("TZ=%s"):format(zone_before(22, 4)))
    lacks(text, "was not saved")
    assert.are.equal("checkpoint-1", listed)
  end)

  it("lets a function name the time, and shows it the local one", function()
    policy [[sync = function(e)
      if e.event == "time" then return true, "at " .. e.localtime.hour .. " o'clock" end
      return false, "not yet", 1
    end]]
    local text, listed = run("save 1; saved 1", ("TZ=%s"):format(zone_before(12, 1800)))
    lacks(text, "was not saved")
    assert.are.equal("checkpoint-1", listed)
    has(place.must "show store checkpoint-1", "at 11 o'clock")
  end)

  it("does not keep the run busy", function()
    policy 'sync = when.at_most_every "1h"'
    local used = 'awk "{print \\"used\\", \\$14+\\$15}" /proc/$PPID/stat; '
    local text = run("save 1; saved 1 && save 2; sleep 1; " .. used .. "sleep 2; " .. used)
    local first, second = text:match "used (%d+)\nused (%d+)"
    assert.is_true(second - first < 20, text) -- of 200 ticks
  end)
end)

describe("a policy's function", function()
  it("counts each checkpoint once, however many results come", function()
    policy [[sync = function(e, memory)
      memory.seen = (memory.seen or 0) + 1
      return memory.seen % 3 == 0, "each third"
    end]]
    local _, listed = run [[for n in 1 2 3 4 5 6 7; do save $n; sleep 0.3
      "$CKPT" notify loss=$n; "$CKPT" notify loss=$n; sleep 0.1; done]]
    assert.are.equal("checkpoint-3 checkpoint-6", listed)
  end)

  it("that says no at the end is named as who did not want it", function()
    policy [[sync = function(e)
      if e.checkpoint.step == 1 then return true, "day" end
      return false, "night"
    end]]
    local text, listed = run "save 1; saved 1; save 2; sleep 0.2"
    assert.are.equal("checkpoint-1", listed)
    has(text, "; not wanted: checkpoint-2 (by p: night)\n")
    assert.are.equal("checkpoint-2", ended().not_wanted.unit)
    policy "ready = function() return false, 'never' end"
    sh "rm -r out out.ckpt store; mkdir out"
    text = run "save 1; sleep 0.2"
    has(text, "; not wanted: checkpoint-1 (by p: never)\n")
    assert.are.equal("not_wanted", ended().standing)
  end)
end)

describe("the queue", function()
  local big = 32 * 1024 * 1024

  it("lets nothing go that `keep` wants", function()
    policy "keep = any { keep.last(1), keep.every_steps(3) }"
    local text, listed = run(("for n in 1 2 3 4 5 6 7; do save $n %d; done; sleep 0.2"):format(big))
    has(" " .. listed .. " ", " checkpoint-3 ")
    has(" " .. listed .. " ", " checkpoint-6 ")
    has(" " .. listed .. " ", " checkpoint-7 ")
    lacks(text, "though `keep` wants it")
  end)

  it("saves all that is complete when the job ends, the oldest first", function()
    -- Written in place, they are complete when nobody can write any more.
    local _, listed = run("for n in 1 2 3 4; do mkdir out/checkpoint-$n; " ..
      "echo $n >out/checkpoint-$n/model.bin; sleep 0.02; done", "", "")
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3 checkpoint-4", listed)
    assert.are.equal(0, ended().let_go)
  end)

  it("saves them too when the end was asked for, and they fit", function()
    place.background(("'%s' run --dir out --to store --grace 60s -- bash -c '" ..
      ". ./job.sh; trap \"save 2; save 3; save 4; exit 0\" TERM; save 1; saved 1; touch ready; " ..
      "while :; do sleep 0.1; done' & pid=$!; until [ -e ready ]; do sleep 0.05; done; " ..
      "kill -TERM $pid; wait $pid"):format(CKPT))
    local code, said = place.ended()
    assert.are.equal(0, code, said)
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3 checkpoint-4", place.listed "store")
  end)

  it("names what a policy leaves when time is short", function()
    policy "queue = 'all', on_preempt = 'newest'"
    write(dir .. "/end.sh", [[
for n in 2 3 4; do
  mkdir out/checkpoint-$n && echo $n >out/checkpoint-$n/model.bin
  echo '{}' >out/checkpoint-$n/trainer_state.json
  sleep 0.05
done
exit 0
]])
    place.background(("'%s' run --dir out --to store --grace 60s -p ./p.lua -- bash -c '" ..
      ". ./job.sh; trap \". ./end.sh\" TERM; save 1; saved 1; touch ready; " ..
      "while :; do sleep 0.1; done' & pid=$!; until [ -e ready ]; do sleep 0.05; done; " ..
      "kill -TERM $pid; wait $pid"):format(CKPT))
    local code, said = place.ended()
    assert.are.equal(0, code, said)
    assert.are.equal("checkpoint-1 checkpoint-4", place.listed "store")
    has(said, "; not saved: checkpoint-2 (")
    has(said, ", checkpoint-3 (")
    assert.are.equal(2, #ended().not_durable)
    has(ended().not_durable[1].reason, "not saved: ")
  end)
end)
