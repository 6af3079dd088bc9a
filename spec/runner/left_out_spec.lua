-- A checkpoint that is not all of what the framework wrote says so.

local cjson = require "cjson"
local place = require "place"
local support = require "support"
local has, lacks, ends, must = place.has, place.lacks, place.ends, place.must

local dir

local function save(...)
  for _, name in ipairs { ... } do support.write(dir .. "/out/checkpoint-1/" .. name, name) end
end

place.with_directory(function(made)
  dir = made
  place.sh "mkdir -p out/checkpoint-1/states last/last"
end)

describe("files that excludes leave out", function()
  it("are counted by show, and told when a run resumes from what was restored", function()
    save("model.bin", "optimizer.pt", "states/a", "states/b", "trainer_state.json")
    must "sync out --to store --settle 0 --exclude optimizer.pt --exclude states/"
    has(must "show store", "left out   2 files, by excludes")
    assert.are.equal(2, cjson.decode(must "show store --json").left_out)
    assert.are.equal(2, cjson.decode(must "ls store --json").left_out)
    place.sh "rm -rf out out.ckpt"
    local _, err = ends(0, "run --dir out --to store --continue-run -- true")
    has(err, "checkpoint-1 was saved without 2 files that --exclude or a policy leave out")
    _, err = ends(0, "run --dir out --to store -- true")
    lacks(err, "without 2 files") -- it is the one that is here
  end)

  it("are named by show, the first sixteen", function()
    for i = 1, 20 do save(("logs-%02d"):format(i)) end
    save("model.bin", "a\nb", "states/a", "trainer_state.json")
    must "sync out --to store --settle 0 --exclude 'logs-*' --exclude states/ --exclude 'a?b'"
    local text = must "show store"
    has(text, "left out   22 files, by excludes")
    has(text, "\nleft out   a%0Ab\nleft out   logs-01\nleft out   logs-02\n")
    has(text, "\nleft out   logs-15\nleft out   and 6 more\n")
    local names = cjson.decode(must "show store --json").left_names
    assert.are.same({ 16, "a%0Ab", "logs-15" }, { #names, names[1], names[16] })
    must "sync out --to second --settle 0 --state second.state --exclude states/"
    assert.are.same({ "states/" }, cjson.decode(must "show second --json").left_names)
  end)

  it("are told by a restore by hand, and by its --json", function()
    save("model.bin", "optimizer.pt", "trainer_state.json")
    must "sync out --to store --settle 0 --exclude optimizer.pt"
    local said = "without 1 file that excludes left out of it when it was saved"
    for _, more in ipairs { "--dry-run", "" } do
      local _, err = ends(0, "restore store --dir back " .. more)
      has(err, said)
    end
    local text = ends(0, "restore store --dir again --json")
    assert.are.equal(1, cjson.decode(text).left_out)
  end)

  it("are told of one that is copied first, since it is written again under its name", function()
    for _, name in ipairs { "model.bin", "optimizer.pt", "trainer_state.json" } do
      support.write(dir .. "/last/last/" .. name, "{}")
    end
    must "sync last --to lasts --settle 0 --unit last/ --exclude optimizer.pt"
    local text = must "show lasts"
    has(text, "left out   1 file, by excludes")
    has(text, "left out   optimizer.pt\n")
  end)

  it("are none where the framework's own temporary files are left out", function()
    save("model.bin", ".tmp123456", "trainer_state.json")
    must "sync out --to store --settle 0"
    assert.is_nil(cjson.decode(must "show store --json").left_out)
    lacks(must "show store", "left out")
    lacks(select(2, ends(0, "restore store --dir back")), "left out")
  end)
end)
