-- restore, ls, verify, version, help: what they print and how they end.

local place = require "place"
local support = require "support"
local sh, has, ckpt, ends = place.sh, place.has, place.apart, place.ends

local dir

-- Two commits in ./store.
local function fill()
  support.write(dir .. "/job.sh", [[
    for n in 1 2; do
      mkdir out/.new
      echo "weights $n" >out/.new/model.bin
      head -c 3000 /dev/zero >out/.new/optimizer
      mv out/.new out/checkpoint-$n; sleep 0.1
    done]])
  ends(0, "run --dir out --to store -- sh job.sh")
end

local function damage(path)
  sh(("chmod u+w %s; printf X | dd of=%s bs=1 seek=1000 conv=notrunc 2>&1"):format(path, path))
end

place.with_directory(function(made) dir = made end)

describe("ls", function()
  it("prints a table, oldest first", function()
    fill()
    local text = ends(0, "ls store")
    local lines = support.lines(text)
    assert.are.equal(3, #lines)
    assert.is_truthy(lines[1]:match("^NAME +STEP +FILES +SIZE +AGE +COMMITTED$"), lines[1])
    local row = "^checkpoint%-1 +1 +2 +2.9 KiB +%d+ s +%d+%-%d%d%-%d%dT[%d:]+Z$"
    assert.is_truthy(lines[2]:match(row), lines[2])
    assert.is_truthy(lines[3]:match("^checkpoint%-2 "), lines[3])
  end)

  it("prints one JSON object for each with exact numbers", function()
    fill()
    local text = ends(0, "ls --json store")
    local first, second = text:match("^({[^\n]*})\n({[^\n]*})\n$")
    has(first, '"name":"checkpoint-1"')
    has(first, '"step":1,"files":2,"bytes":3010,')
    has(second, '"name":"checkpoint-2"')
  end)

  it("has code 10 without a store and 4 without a log", function()
    local text, err = ends(10, "ls nowhere")
    assert.are.equal("", text)
    has(err, "nowhere")
    sh("mkdir empty")
    ends(4, "ls empty")
  end)
end)

describe("restore", function()
  it("puts the newest one there and prints its path", function()
    fill()
    local text, err = ends(0, "restore store --dir back")
    assert.are.equal("back/checkpoint-2\n", text)
    has(err, "restored checkpoint-2 (2 files, 2.9 KiB) to back")
    assert.are.equal("", sh("diff -r out/checkpoint-2 back/checkpoint-2"))
    assert.are.equal("checkpoint-2\n", sh("ls -A back"))
  end)

  it("takes a name, and a checkpoint's own address", function()
    fill()
    assert.are.equal("b1/checkpoint-1\n", (ckpt("restore store checkpoint-1 --dir b1")))
    assert.are.equal("b2/checkpoint-1\n", (ckpt("restore store/checkpoint-1 --dir=b2")))
    assert.are.equal("", sh("diff -r b1 b2; diff -r b1/checkpoint-1 out/checkpoint-1"))
    has((ckpt("restore store --json --dir b3")), '{"path":"b3/checkpoint-2",')
  end)

  it("replaces nothing", function()
    fill()
    sh("mkdir -p back/checkpoint-2; echo mine >back/checkpoint-2/file")
    local _, code, err = ckpt("restore store --dir back")
    assert.are_not.equal(0, code)
    has(err, "checkpoint-2")
    assert.are.equal("mine\n", sh("cat back/checkpoint-2/*"))
  end)

  it("has code 4 for a name that is not there and 10 without a store", function()
    fill()
    local text, err = ends(4, "restore store checkpoint-9 --dir back")
    assert.are.equal("", text)
    has(err, "checkpoint-9")
    ends(10, "restore nowhere --dir back")
  end)

  it("has code 5 for damaged data, and leaves nothing under its name", function()
    fill()
    damage("store/checkpoint-2/optimizer")
    local _, err = ends(5, "restore store --dir back")
    has(err, "optimizer")
    assert.are.equal("", sh("ls back 2>/dev/null"))
  end)
end)

describe("verify", function()
  it("says ok for each one", function()
    fill()
    local text = ends(0, "verify store")
    assert.are.equal("ok   checkpoint-1 (2 files, 2.9 KiB)\n" ..
                     "ok   checkpoint-2 (2 files, 2.9 KiB)\n", text)
  end)

  it("finds one changed byte and has code 5", function()
    fill()
    damage("store/checkpoint-1/optimizer")
    local text = ends(5, "verify store")
    has(text, "BAD  checkpoint-1: ")
    has(text, "optimizer")
    has(text, "ok   checkpoint-2")
    ends(0, "verify store checkpoint-2")
    local json = ends(5, "verify store checkpoint-1 --json")
    has(json, '{"ok":false,"status":"CORRUPT",')
  end)

  it("works on a checkpoint that was copied elsewhere", function()
    fill()
    sh("cp -a store/checkpoint-1 elsewhere")
    local text = ends(0, "verify elsewhere")
    has(text, "ok   checkpoint-1")
  end)
end)

describe("the command line", function()
  it("has a help for everything", function()
    for _, verb in ipairs { "run", "watch", "restore", "ls", "verify", "version", "help" } do
      local text = ends(0, "help " .. verb)
      has(text, "usage: ckpt-lua " .. verb)
      assert.are.equal(text, (ckpt(verb .. " --help")))
      assert.are.equal(text, (ckpt(verb .. " -h")))
    end
    local text = ends(0, "--help")
    has(text, "usage: ckpt-lua VERB")
    assert.are.equal(text, (ckpt("help")))
    assert.are.equal(text, (ckpt("-h")))
  end)

  it("has code 2 and one line on standard error for mistakes", function()
    for _, args in ipairs { "wacth", "--frob", "ls", "ls a b", "restore x", "run --dir a",
                            "ls --jsno x", "help nothing" } do
      local text, err = ends(2, args)
      assert.are.equal("", text)
      assert.is_truthy(err:match("^ckpt%-lua: [^\n]+\n$"), err)
    end
    has(select(3, ckpt("wacth")), "did you mean watch?")
    ends(2, "")
  end)

  it("knows its version", function()
    local text = ends(0, "--version")
    assert.is_truthy(text:match("^ckpt%-lua %d+%.%d+%.%d+\n$"), text)
    assert.are.equal(text, (ckpt("version")))
    assert.is_truthy((ckpt("version --json")):match('^{"name":"ckpt%-lua","version":"[%d.]+"}\n$'))
  end)

  it("does not call a list whole that could not be written", function()
    fill()
    for _, args in ipairs { "ls store", "ls --json store", "verify store", "version", "help" } do
      local _, err = ends(1, args .. " >/dev/full")
      has(err, "cannot write the output")
    end
  end)

  it("works with its standard descriptors closed", function()
    ends(0, "run --dir out --to store -- true <&- >&- 2>&-")
    assert.are.equal("", sh("grep -rl ckpt-lua: out out.ckpt store"))
  end)
end)
