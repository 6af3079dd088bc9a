--- A checkpoint that was copied out of a store, its table of contents beside it, is
--- a checkpoint like any other.
local place = require "place"
local sh, must, has, save = place.sh, place.must, place.has, place.save

place.with_directory(function()
  save("out", 1)
  must("sync out --to store --settle 0")
end)

describe("a copy out of a store", function()
  it("is saved to another target, by sync and by run", function()
    sh("mkdir here there; cp -r store/checkpoint-1 here; cp -a store/checkpoint-1 there")
    has(must("sync here --to elsewhere --settle 0"), "1 committed")
    has(must("run --dir there --to third --settle 0 -- true"), "1 committed")
    for _, target in ipairs { "elsewhere", "third" } do
      must("verify " .. target)
      must(("restore %s --dir back-%s"):format(target, target))
      place.must_sh(("diff -r out/checkpoint-1 back-%s/checkpoint-1"):format(target))
    end
  end)

  it("is known as one, by the line of its commit, `show` and `why`", function()
    local table_of = sh("cat store/checkpoint-1/.ckpt-manifest.json")
    local what = ("a copy of what attempt %s saved with root %s"):format(
      table_of:match('"attempt":"(%x+)"'), table_of:match('"root":"(%x+)"'))
    sh("mkdir here; cp -r store/checkpoint-1 here")
    has(must("sync here --to elsewhere --settle 0"), what)
    has(must("show elsewhere checkpoint-1"), what)
    has(must("why here/checkpoint-1"), what)
    place.must_sh("! grep 'a copy of' store/.ckpt/log/*")
  end)

  it("is called one by its files alone: no changed byte, and no other's words", function()
    sh("mkdir here; cp -r store/checkpoint-1 here; " ..
      "cp -r store/checkpoint-1 here/checkpoint-2; cd here; " ..
      "printf X | dd of=checkpoint-1/model.bin conv=notrunc status=none; " ..
      "sed -i 's/\"attempt\":\"[^\"]*\"/\"attempt\":\"rm -rf\"/' checkpoint-2/.ckpt-manifest.json")
    has(must("sync here --to elsewhere --settle 0"), "2 committed")
    assert.is_nil(must("show elsewhere checkpoint-1"):find("a copy of", 1, true))
    has(must("show elsewhere checkpoint-2"), "a copy of what another run saved with root ")
  end)

  it("is no other checkpoint to the target that has it", function()
    sh("mkdir here; cp -r store/checkpoint-1 here")
    has(must("sync here --to store --settle 0 --continue-run"),
      "checkpoint-1 is a copy of what is saved here already")
    has(must("run --dir there --to store --settle 0 --continue-run -- sh -c '" ..
      "rm -rf there/checkpoint-1; cp -r store/checkpoint-1 there'"), "0 committed")
    assert.are.equal("checkpoint-1", place.listed("store"))
    has(must("why here/checkpoint-1 --to store"), "here/checkpoint-1: committed")
  end)

  it("is another one to it with another byte", function()
    sh("mkdir here; cp -r store/checkpoint-1 here; " ..
      "printf X | dd of=here/checkpoint-1/model.bin conv=notrunc status=none")
    has(must("sync here --to store --settle 0 --continue-run"), "1 committed")
    must("restore store --dir back")
    place.must_sh("cmp here/checkpoint-1/model.bin back/checkpoint-1/model.bin")
  end)

  it("is saved again where the target has lost its bytes", function()
    sh("mkdir here; cp -r store/checkpoint-1 here; rm store/checkpoint-1/.ckpt-manifest.json")
    has(must("sync here --to store --settle 0 --continue-run"), "1 committed")
    must("restore store --dir back")
    place.must_sh("cmp here/checkpoint-1/model.bin back/checkpoint-1/model.bin")
  end)

  it("is saved whatever its table of contents says", function()
    sh("mkdir here; cp -r store/checkpoint-1 here; " ..
      "printf '{\"torn' >here/checkpoint-1/.ckpt-manifest.json")
    has(must("sync here --to elsewhere --settle 0"), "1 committed")
    sh("rm here/checkpoint-1/.ckpt-manifest.json; mkdir here/checkpoint-1/.ckpt-manifest.json")
    must("sync here --to elsewhere --settle 0")
    must("verify elsewhere")
  end)

  it("does not keep a name that is written in place from being saved again", function()
    sh("mkdir -p one/last two; echo 1 >one/last/model.bin; touch one/last/DONE")
    must("sync one --to first --settle 0 --unit last/ --marker DONE")
    sh("cp -r first/last two/")
    local words = "sync two --to second --settle 0 --unit last/ --marker DONE"
    has(must(words), "1 committed")
    sh("rm two/last/DONE; echo 2 >two/last/model.bin; touch two/last/DONE")
    has(must(words), "1 committed")
    must("restore second --dir back")
    assert.are.equal("2\n", (sh("cat back/last/model.bin")))
  end)
end)

describe("metadata that was set when the checkpoint was saved already", function()
  before_each(function() sh("echo '{\"epoch\":3}' >store/checkpoint-1/.metadata.json") end)

  it("is restored, too", function()
    must("restore store --dir back")
    assert.are.equal('{"epoch":3}\n', (sh("cat back/checkpoint-1/.metadata.json")))
    must("verify store")
    must("restore store/checkpoint-1 --dir again")
    assert.are.equal('{"epoch":3}\n', (sh("cat again/checkpoint-1/.metadata.json")))
  end)

  it("comes with a start, and does not make another checkpoint of it", function()
    has(must("run --dir fresh --to store --settle 0 --continue-run -- " ..
      "cat fresh/checkpoint-1/.metadata.json"), '"epoch":3')
    local text = must("run --dir fresh --to store --settle 0 --continue-run -- true")
    has(text, "0 committed")
    assert.are.equal("checkpoint-1", place.listed("store"))
  end)

  it("goes with it", function()
    save("out", 2)
    must("sync out --to store --settle 0")
    must("rm store checkpoint-1 --grace-delete 0")
    assert.is_false(place.there("store/checkpoint-1/.metadata.json"))
    assert.are.equal("", (sh("ls store/.ckpt/staging")))
  end)
end)

describe("a name as long as a file system takes", function()
  it("has room for its generations", function()
    local name = ("n"):rep(252) .. ".pt"
    sh("mkdir long")
    for i = 1, 2 do
      place.must_sh(([[python3 -c "
import zipfile, os, sys
with zipfile.ZipFile('long/.tmp', 'w') as z:
    z.writestr('a/data.pkl', b'\x80\x02}q\x00.')
    z.writestr('a/version', '3')
    z.writestr('a/r', '%d')
os.rename('long/.tmp', 'long/%s')"]]):format(i, name))
      has(must("sync long --to second --settle 0"), "1 committed")
    end
    must("verify second")
    must("restore second --dir back")
    place.must_sh("cmp long/" .. name .. " back/" .. name)
    local dirs = place.listed("second")
    assert.are.equal(name, dirs:match("^%S+"))
    assert.are.equal(255, #dirs:match("%S+$"))
    must("restore second " .. dirs:match("%S+$") .. " --dir again")
  end)
end)
