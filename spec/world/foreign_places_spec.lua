--- Places that another tool wrote are restored as they are, and that is said.
local place = require "place"
local sh, must, ends, has, lacks = place.sh, place.must, place.ends, place.has, place.lacks
local json = require "cjson"

place.with_directory(function()
  sh([[mkdir -p 'theirs/sub/100%' theirs/empty
    echo 1 >theirs/model.bin; echo 2 >'theirs/sub/100%/a%20b'
    ln -s model.bin theirs/link; ln -s nowhere theirs/dangling]])
end)

describe("a place that another tool wrote", function()
  it("is restored as it is, and said to be another tool's", function()
    local out, err = ends(0, "restore theirs --dir back")
    assert.are.equal("back/theirs\n", out)
    has(err, "another tool wrote it")
    lacks(err, "verif")
    place.must_sh("diff -r --no-dereference theirs back/theirs")
    ends(0, "restore theirs/ --dir again")
    local row = json.decode((ends(0, "restore theirs --dir third --json")))
    assert.is_true(row.foreign)
    assert.are.equal(2, row.files)
  end)

  it("is not said to be right by verify", function()
    local out = ends(4, "verify theirs")
    lacks(out, "ok")
  end)

  it("is told of by a dry run, and replaces nothing", function()
    has(ends(0, "restore theirs --dir back --dry-run"), "back/theirs")
    assert.is_false(place.there("back/theirs/model.bin"))
    sh("mkdir -p back/theirs; echo mine >back/theirs/x")
    ends(1, "restore theirs --dir back")
    assert.are.equal("mine\n", (sh("cat back/theirs/x")))
    assert.is_false(place.there("back/theirs/model.bin"))
  end)

  it("is none where a run has its target, or nothing is", function()
    ends(10, "restore nowhere --dir back")
    place.save("out", 1)
    must("sync out --to store --settle 0")
    sh("mkdir store/half; echo x >store/half/model.bin")
    ends(4, "restore store/half --dir back")
    ends(4, "restore store no-such --dir back")
    sh("mkdir -p begun/.ckpt; cp -r store/.ckpt/log begun/.ckpt; " ..
      "rm begun/.ckpt/log/*[1-9].json; " ..
      "mkdir begun/half; echo x >begun/half/model.bin")
    ends(4, "restore begun --dir back")
    assert.is_false(place.there("back/begun/half/model.bin"))
  end)
end)
