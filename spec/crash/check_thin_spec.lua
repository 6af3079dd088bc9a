-- The independent reader of a store knows checkpoints that lost files since newer ones were there.

local place = require "place"
local support = require "support"
local has, ends, sh = place.has, place.ends, place.must_sh
local dir

local JUDGE = "'" .. support.root .. "/spec/crash/check.py' "

local function judged(code) return place.sh_ends(code, JUDGE .. "store --trained --final store") end

place.with_directory(function(made) dir = made end)

describe("the reader of stores", function()
  before_each(function()
    support.write(dir .. "/p.lua", "return { api = 1, newest_only = { 'a' } }\n")
    support.write(dir .. "/job.sh", ([[
mkdir -p out
for step in 1 2 3 4; do
  %s train out $step
  until [ -e store/checkpoint-$step/.ckpt-manifest.json ]; do sleep 0.02; done
done
]]):format(JUDGE))
    ends(0, "run --run r --dir out --to store --settle 0 --marker DONE -p ./p.lua " ..
      "--grace-delete 0 --max-delete 100% -- bash job.sh")
  end)

  it("takes them for whole without what their entries mean", function()
    assert.are.equal("b\n", (sh "ls store/checkpoint-1/parts"))
    judged(0)
    sh "cp -p out/checkpoint-1/parts/a store/checkpoint-1/parts/a" -- as before its removal
    judged(0)
  end)

  it("misses each other file, and the note behind which files go", function()
    sh "mv store/checkpoint-1/model.bin kept"
    has(judged(1), "checkpoint-1: not the same names: model.bin")
    sh "mv kept store/checkpoint-1/model.bin; rm store/checkpoint-1/.ckpt-thin.json"
    has(judged(1), "checkpoint-1: files are gone, and no note beside it says so")
  end)

  it("misses what no entry means", function()
    sh "rm store/checkpoint-4/parts/a"
    has(judged(1), "checkpoint-4: not the same names: parts/a")
  end)
end)
