-- What a checkpoint names, and a resume from it may want, is told with it.

local cjson = require "cjson"
local place = require "place"
local support = require "support"
local has, lacks, must = place.has, place.lacks, place.must

local dir

local function save(n, best)
  local path = ("%s/out/checkpoint-%d/"):format(dir, n)
  place.sh(("mkdir -p out/checkpoint-%d"):format(n))
  support.write(path .. "model.bin", "weights " .. n)
  support.write(path .. "trainer_state.json", cjson.encode {
    best_model_checkpoint = best and "/there/out/checkpoint-" .. best or cjson.null })
end

place.with_directory(function(made) dir = made end)

describe("what a checkpoint needs beside it", function()
  it("is told by show and ls", function()
    save(1)
    save(2, 1)
    must "sync out --to store --settle 0"
    has(must "show store", "needs      checkpoint-1\n")
    assert.are.same({ "checkpoint-1" }, cjson.decode(must "show store --json").needs)
    local rows = place.objects((must "ls store --json"))
    assert.is_nil(rows[1].needs)
    assert.are.same({ "checkpoint-1" }, rows[2].needs)
  end)

  it("is not, where it names nothing else", function()
    save(1, 1)
    must "sync out --to store --settle 0"
    lacks(must "show store", "needs")
    assert.is_nil(cjson.decode(must "show store --json").needs)
  end)
end)
