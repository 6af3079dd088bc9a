--- What others put under a name that was ours once stays, on a disk: a live checkpoint that its
--- user renamed, a backup, another run's tree, a file among those of a checkpoint that is deleted.
local support = require "support"
local place = require "place"
local sh, ckpt, must, there = place.sh, place.ckpt, place.must, place.there
local has, lacks, save = place.has, place.lacks, place.save

local function sync(args) return must("sync out --to store --settle 0 " .. (args or "")) end

--- checkpoint-1 deleted, checkpoint-2 kept.
local function delete_one()
  save("out", 1, 2)
  sync()
  sh("cp -a store/checkpoint-1 backup")
  must("rm store checkpoint-1 --grace-delete 0")
  assert.is_false(there("store/checkpoint-1/model.bin"))
end

local function count(pattern)
  return tonumber((sh(("find store -path '%s' | wc -l"):format(pattern))))
end

--- An attempt at `unit` under its plain name by the newest term, that is given up at once.
local function give_up(unit)
  local attempt = place.leave_entry("store", "attempt",
    ('"unit":"%s","dir":"%s","format":1,"reader":1'):format(unit, unit))
  place.leave_entry("store", "sweep", ('"attempt":%d,"format":1,"reader":1'):format(attempt))
end

place.with_directory(function() sh("mkdir out") end)

describe("foreign data on a disk", function()
  it("stays: a live checkpoint that was renamed to a name that a given-up save had", function()
    save("out", 1)
    sync()
    give_up("checkpoint-2")
    save("out", 2)
    sync()
    save("out", 3) -- what the newest commit lacks would be saved again
    sync()
    local odd = sh("ls -d store/checkpoint-2.~*"):match("checkpoint%-2%.~%d+")
    sh(("mv store/%s store/checkpoint-2"):format(odd))
    save("out", 4)
    sync()
    assert.is_true(there("store/checkpoint-2/model.bin"))
    local text = must("gc store --grace-delete 0")
    assert.is_true(there("store/checkpoint-2/model.bin"))
    has(text, "left checkpoint-2")
    -- Where it belongs: the commit whose name it lost was saved again meanwhile.
    has(text, "which is committed: its place is checkpoint-2.~")
    must("run --dir out --to store --settle 0 --continue-run -- true")
    assert.is_true(there("store/checkpoint-2/model.bin"))
    sh(("mv store/checkpoint-2 store/%s"):format(odd))
    must("verify store")
  end)

  it("stays: what is copied to the name of a deleted checkpoint", function()
    delete_one()
    sh("mkdir store/checkpoint-1; echo mine >store/checkpoint-1/thesis.bin; " ..
      "echo mine >store/checkpoint-1/model.bin")
    save("out", 3)
    sync()
    must("run --dir out --to store --settle 0 --continue-run -- true")
    local text = must("gc store --grace-delete 0")
    assert.is_true(there("store/checkpoint-1/thesis.bin"))
    assert.is_true(there("store/checkpoint-1/model.bin"))
    has(text, "left checkpoint-1")
    has(text, "done: 0 things")
  end)

  it("goes by gc --remove alone, and what is somebody's is refused", function()
    delete_one()
    sh("mkdir -p store/checkpoint-1/more; echo mine >store/checkpoint-1/thesis.bin; " ..
      "echo mine >store/checkpoint-1/more/x; mkdir store/notes; echo mine >store/notes/y")
    for key, code in pairs {
      ["checkpoint-2"] = 11, ["checkpoint-2/model.bin"] = 11, notes = 4, [".ckpt/log"] = 4,
      ["checkpoint"] = 4,
    } do
      local text, status = ckpt("gc store --remove " .. key)
      assert.are.equal(code, status, key .. ": " .. text)
    end
    must("gc store --remove checkpoint-1/thesis.bin --dry-run")
    assert.is_true(there("store/checkpoint-1/thesis.bin"))
    has(must("gc store --remove checkpoint-1/thesis.bin"), "removed key checkpoint-1/thesis.bin")
    assert.is_false(there("store/checkpoint-1/thesis.bin"))
    assert.is_true(there("store/checkpoint-1/more/x"))
    must("gc store --remove checkpoint-1")
    assert.is_false(there("store/checkpoint-1/more/x"))
    lacks(must("gc store --grace-delete 0"), "left")
    assert.is_true(there("store/notes/y"))
    -- A live one that stands under such a name is somebody's too.
    sh("mv store/checkpoint-2 store/checkpoint-1")
    assert.are.equal(11, select(2, ckpt("gc store --remove checkpoint-1")))
    sh("mv store/checkpoint-1 store/checkpoint-2")
    must("verify store")
  end)

  it("stays: a backup of the deleted checkpoint itself, manifest and all", function()
    delete_one()
    sh("cp -a backup store/checkpoint-1")
    save("out", 3)
    sync()
    must("run --dir out --to store --settle 0 --continue-run -- true")
    local text = must("gc store --grace-delete 0")
    assert.are.equal(0, select(2, sh("diff -r backup store/checkpoint-1")))
    has(text, "left checkpoint-1")
  end)

  it("stays: another run's tree", function()
    delete_one()
    save("other", 1)
    must("sync other --to elsewhere --settle 0")
    sh("cp -a elsewhere/checkpoint-1 store/checkpoint-1")
    must("run --dir out --to store --settle 0 --continue-run -- true")
    local text = must("gc store --grace-delete 0")
    assert.are.equal(0, select(2, sh("diff -r elsewhere/checkpoint-1 store/checkpoint-1")))
    has(text, "left checkpoint-1")
  end)

  it("stays: a file among those of a checkpoint that is deleted", function()
    save("out", 1, 2)
    sync()
    sh("echo mine >store/checkpoint-1/notes.txt; mkdir store/checkpoint-1/more; " ..
      "echo mine >store/checkpoint-1/more/x; echo longer than it was >store/checkpoint-1/model.bin")
    local text = must("rm store checkpoint-1 --grace-delete 0")
    assert.are.equal("model.bin\nmore\nnotes.txt\n", (sh("ls -A store/checkpoint-1")))
    has(text, "checkpoint-1: 3 objects")
    assert.is_true(there("store/checkpoint-1/more/x"))
    assert.are.equal(0, count("*/gone.*"))
    has(must("gc store --grace-delete 0"), "left checkpoint-1")
    assert.is_true(there("store/checkpoint-1/notes.txt"))
  end)

  it("stays: a link or an empty directory among those of a deleted checkpoint", function()
    save("out", 1, 2)
    sync()
    sh("ln -s /nowhere store/checkpoint-1/link; mkdir -p store/checkpoint-1/more/empty")
    must("rm store checkpoint-1 --grace-delete 0")
    assert.are.equal("link\nmore\n", (sh("ls -A store/checkpoint-1")))
    assert.are.equal("empty\n", (sh("ls -A store/checkpoint-1/more")))
    assert.are.equal(0, count("*/gone.*"))
    must("gc store --grace-delete 0")
    assert.are.equal("link\nmore\n", (sh("ls -A store/checkpoint-1")))
  end)

  it("is named where who removed it has died: a link, behind the rename", function()
    delete_one()
    local id = sh("ls store/.ckpt/cleared"):match("%x+")
    local gone = ".ckpt/staging/gone." .. id
    sh(("mkdir -p store/%s; ln -s /nowhere store/%s/link"):format(gone, gone))
    has(must("gc store --grace-delete 0"), "left " .. gone)
    has(must("gc store --grace-delete 0"), "left " .. gone)
    assert.are.equal("link\n", (sh("ls -A store/" .. gone)))
    must("gc store --remove " .. gone)
    lacks(must("gc store --grace-delete 0"), "left")
    -- Without anything in it, it is what that one left.
    sh("mkdir -p store/" .. gone)
    lacks(must("gc store --grace-delete 0"), "left")
    assert.are.equal(0, count("*/gone.*"))
  end)

  it("stays: another's tree that is swapped in before a deletion", function()
    save("out", 1, 2)
    sync()
    save("other", 1)
    must("sync other --to elsewhere --settle 0")
    sh("rm -r store/checkpoint-1; cp -a elsewhere/checkpoint-1 store/")
    lacks(must("rm store checkpoint-1 --grace-delete 0"), "gone.")
    assert.are.equal(0, select(2, sh("diff -r elsewhere/checkpoint-1 store/checkpoint-1")))
  end)

  it("is told of once by a run, and by each gc", function()
    delete_one()
    sh("mkdir store/checkpoint-1; echo mine >store/checkpoint-1/thesis.bin")
    for _ = 1, 2 do
      local text = must("gc store --grace-delete 0 --json")
      assert.is_true(there("store/checkpoint-1/thesis.bin"))
      has(text, '"what":"left"')
    end
    lacks(must("run --dir out --to store --settle 0 --continue-run -- true"), "thesis.bin")
  end)

  it("is left alone by who finishes a removal that was cut short", function()
    save("out", 1, 2)
    sync()
    sh("cp -a store/checkpoint-1 backup")
    must("rm store checkpoint-1 --grace-delete 0")
    local id = sh("ls store/.ckpt/cleared"):match("%x+")
    -- As if it had died behind the rename, and somebody had put something in its place.
    sh(("rm store/.ckpt/cleared/*; cp -a backup store/.ckpt/staging/gone.%s; " ..
      "cp -a backup store/checkpoint-1"):format(id))
    must("gc store --grace-delete 0")
    assert.are.equal(0, count("*/gone.*"))
    assert.is_true(there("store/.ckpt/cleared/" .. id))
    assert.are.equal(0, select(2, sh("diff -r backup store/checkpoint-1")))
    -- And behind that.
    sh(("cp -a backup store/.ckpt/staging/gone.%s; rm store/.ckpt/staging/gone.%s/model.bin")
      :format(id, id))
    must("run --dir out --to store --settle 0 --continue-run -- true")
    assert.are.equal(0, count("*/gone.*"))
    assert.are.equal(0, select(2, sh("diff -r backup store/checkpoint-1")))
  end)

  it("a run with --no-delete, and sync, remove nothing; a run without does", function()
    save("out", 1, 2)
    sync()
    sh("cp -a store/checkpoint-1 backup")
    must("rm store checkpoint-1 --grace-delete 0")
    sh("rm store/.ckpt/cleared/*; mv backup store/checkpoint-1") -- as if it had died before
    sync()
    assert.is_true(there("store/checkpoint-1/model.bin"))
    must("run --dir out --to store --settle 0 --continue-run --no-delete -- true")
    assert.is_true(there("store/checkpoint-1/model.bin"))
    must("run --dir out --to store --settle 0 --continue-run -- true")
    assert.is_false(there("store/checkpoint-1/model.bin"))
  end)
end)

describe("a store of format 1.0", function()
  -- A guard: it was so before removals asked for proof, and must stay so with it.
  it("has its deleted checkpoints removed by their table", function()
    sh(("cp -r '%s/spec/data/format1/store' store"):format(support.root))
    local text = must("rm store checkpoint-20 --grace-delete 0")
    assert.is_false(there("store/checkpoint-20/model.bin"), text)
    must("verify store")
  end)
end)
