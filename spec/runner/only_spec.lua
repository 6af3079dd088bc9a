-- A part of a checkpoint, brought back by hand.

local place = require "place"
local support = require "support"
local sh, has, ends, must = place.must_sh, place.has, place.ends, place.must

local dir

-- The files below a directory, as "a b/c"; "" if there is none.
local function files(below)
  return (sh(("test ! -d %s || (cd %s && find . -type f -o -type l | sort)"):format(below, below))
    :gsub("%./", ""):gsub("\n$", ""):gsub("\n", " "))
end

local function restore(code, words) return ends(code, "restore store --dir back " .. words) end

place.with_directory(function(made) dir = made end)

describe("restore --only", function()
  before_each(function()
    sh "mkdir -p out/checkpoint-1/states/deep back"
    for _, name in ipairs { "model.bin", "optim.bin", "states/a.bin", "states/deep/model.txt",
      "trainer_state.json" } do
      support.write(dir .. "/out/checkpoint-1/" .. name, name)
    end
    support.write(dir .. "/out/train.log", "a line\n")
    support.write(dir .. "/with.lua", 'return { api = 1, with = { "train.log" } }')
    must "sync out --to store --settle 0 -p ./with.lua"
  end)

  it("brings the files of that name, at any depth, and nothing else", function()
    local _, foretold = restore(0, "-n --only 'model*'")
    has(foretold, "would restore what fits --only of checkpoint-1 (5 files, ")
    local text, err = restore(0, "--only 'model*'")
    assert.are.equal("back/checkpoint-1\n", text)
    has(err, "restored what fits --only of checkpoint-1 (5 files, ")
    assert.are.equal("checkpoint-1/model.bin checkpoint-1/states/deep/model.txt", files "back")
    assert.are.equal("model.bin", support.read(dir .. "/back/checkpoint-1/model.bin"))
  end)

  it("says in JSON how much it brings, and how much it leaves", function()
    for _, more in ipairs { " -n", "" } do
      for _, what in ipairs { "store", "store/checkpoint-1" } do
        local text = ends(0, ("restore %s --dir back --json --only 'model*'%s"):format(what, more))
        local one = place.objects(text)[1]
        -- Each file has its name as its content.
        assert.are.same({ 2, 30, 3, 39, 5, 69 }, { one.restored_files, one.restored_bytes,
          one.left_files, one.left_bytes, one.files, one.bytes })
        sh "rm -rf back"
      end
    end
    assert.is_nil(place.objects(restore(0, "--json"))[1].restored_files)
  end)

  it("knows the top, paths, directories with all in them, and several patterns", function()
    for pattern, want in pairs {
      ["./model*"] = "model.bin",
      ["states/a.bin"] = "states/a.bin",
      ["states/"] = "states/a.bin states/deep/model.txt",
      ["deep/"] = "states/deep/model.txt",
      ["opt*' --only 'trainer*"] = "optim.bin trainer_state.json",
      ["*"] = "model.bin optim.bin states/a.bin states/deep/model.txt trainer_state.json",
    } do
      restore(0, ("--only '%s'"):format(pattern))
      assert.are.equal(want, files "back/checkpoint-1")
      sh "rm -rf back"
    end
  end)

  it("makes the directories of what it brings with their own rights", function()
    sh "chmod 700 out/checkpoint-1/states && rm -rf store out.ckpt"
    must "sync out --to store --settle 0"
    restore(0, "--only 'a.bin'")
    assert.are.equal("700\n", sh "stat -c %a back/checkpoint-1/states")
    assert.are.equal("states/a.bin", files "back/checkpoint-1")
  end)

  it("brings all, with what is beside it, where it is not given", function()
    restore(0, "")
    assert.is_truthy(files("back"):find("train.log", 1, true))
  end)

  it("does not read what is left out: it may be damaged, or gone", function()
    sh "rm store/checkpoint-1/optim.bin"
    restore(5, "")
    restore(0, "--only 'model*'")
    sh "rm -rf back; echo torn >store/checkpoint-1/model.bin"
    local _, err = restore(5, "--only 'model*'")
    has(err, "model.bin")
    assert.are.equal("", files "back")
  end)

  it("is code 4 where nothing fits, before anything is written, in a dry run too", function()
    for _, more in ipairs { "", " -n", " checkpoint-1", " checkpoint-1 -n" } do
      local _, err = restore(4, "--only 'weights*' --only 'x'" .. more)
      has(err, 'checkpoint-1 has no file that fits "weights*" or the other patterns')
      assert.are.equal("", files "back")
    end
    local _, err = ends(4, "restore store/checkpoint-1 --dir back --only none -n")
    has(err, 'has no file that fits "none" (ckpt-lua show --json lists its files)')
  end)

  it("passes over the groups in which nothing fits, and makes nothing of them", function()
    sh "mkdir -p many/a/checkpoint-1 many/b/checkpoint-1 many/c/checkpoint-1"
    for _, group in ipairs { "a", "b", "c" } do
      support.write(dir .. ("/many/%s/checkpoint-1/model.bin"):format(group), "x")
      support.write(dir .. ("/many/%s/checkpoint-1/trainer_state.json"):format(group), "{}")
    end
    sh "echo x >many/b/checkpoint-1/last.pt"
    must "sync many --to stores --settle 0"
    local text = ends(0, "restore stores --dir back --only '*.pt'")
    assert.are.equal("back/b/checkpoint-1\n", text)
    assert.are.equal("b\n", sh "ls back")
    ends(4, "restore stores --dir none --only '*.h5'")
    assert.are.equal("", files "none")
  end)

  it("refuses patterns that mean nothing", function()
    for pattern, why in pairs { ["''"] = "empty", ["/a"] = "/a", ["'[a'"] = "[a" } do
      local _, err = ends(2, "restore store --dir back --only " .. pattern)
      has(err, why)
      assert.is_nil(err:find("watched", 1, true)) -- nothing is watched here
    end
  end)

  it("refuses what another tool wrote, of which there is no list", function()
    sh "mkdir -p theirs/ckpt && echo x >theirs/ckpt/model.bin"
    local _, err = ends(2, "restore theirs/ckpt --dir back --only 'model*'")
    has(err, "comes whole or not at all")
  end)

  it("brings a link as it is, and one of a group of files", function()
    sh "ln -s model.bin out/checkpoint-1/last.bin && touch -d '1 hour ago' out/checkpoint-1"
    sh "rm -rf store out.ckpt; for e in index data; do echo $e >out/net-7.$e; done"
    must "sync out --to store --settle 0 --unit 'checkpoint-{step}/' --unit 'net-{step}.*' --trust"
    restore(0, "checkpoint-1 --only 'last.bin'")
    assert.are.equal("model.bin\n", sh "readlink back/checkpoint-1/last.bin")
    restore(0, "net-7 --only '*.data'")
    assert.are.equal("checkpoint-1/last.bin net-7.data", files "back")
  end)
end)
