-- The bounds are wide enough for a run of 10,000 checkpoints with 4 KiB of metrics each, and what
-- that takes stays small beside a trainer.

local support = require "support"

local place = require "place"
local sh, within = place.sh, place.within

local dir

support.with_directory(function(made) dir = made end, place.begin_in_memory)

describe("a run of 10,000 checkpoints with 4 KiB of metrics each", function()
  it("is saved, listed, gone on with and put back", function()
    sh [[python3 -c '
import json, os
def make(i):
    place = "out/checkpoint-%d" % i
    os.makedirs(place)
    open(place + "/model.bin", "w").write("x%d" % i)
    metrics = {"m%02d" % k: "v" * 55 for k in range(62)}
    metrics["step"] = i
    json.dump(metrics, open(place + "/trainer_state.json", "w"))
for i in range(1, 10001): make(i)
os.rename("out/checkpoint-10000", "last")']]
    support.write(dir .. "/p.lua",
      'return { api = 1, metrics = { from.json "trainer_state.json" } }')
    within(250, "sync out --to store -p ./p.lua --settle 0")
    sh "mv last out/checkpoint-10000"
    within(250, "sync out --to store -p ./p.lua --settle 0")
    local listed = within(250, "ls store --json")
    local _, count = listed:gsub("\n", "")
    assert(count >= 10000 and count <= 10001, count)
    local metrics = listed:match '"step":10000,.-"metrics":(%b{})'
    assert(metrics and #metrics > 3800, metrics)
    within(250, "restore store checkpoint-10000 --dir back")
    assert.are.equal("", (sh "diff -r out/checkpoint-10000 back/checkpoint-10000"))
  end)
end)
