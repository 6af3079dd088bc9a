-- The bounds are wide enough for a checkpoint of 100,000 files, and what that takes stays small
-- beside a trainer.

local support = require "support"

local place = require "place"
local sh, within = place.sh, place.within

support.with_directory(nil, place.begin_in_memory)

describe("a checkpoint of 100,000 files", function()
  it("is saved, listed, verified and put back", function()
    sh [[python3 -c '
import os
for i in range(100):
    os.makedirs("out/checkpoint-1/shard-%03d" % i)
    for k in range(1000):
        place = "out/checkpoint-1/shard-%03d/tensor-%04d.bin" % (i, k)
        with open(place, "w") as f: f.write(str(i * k))
open("out/checkpoint-1/trainer_state.json", "w").write("{}")']]
    within(250, "sync out --to store --settle 0")
    assert.is_truthy(within(250, "ls store"):find("checkpoint%-1 +1 +100001 "))
    within(250, "verify store")
    within(250, "restore store --dir back")
    assert.are.equal("", (sh "diff -rq out back"))
  end)
end)
