-- Links that lead out of their checkpoint, as a user meets them: real files, a real store.

local place = require "place"
local support = require "support"
local ends, has, lacks, must_sh = place.ends, place.has, place.lacks, place.must_sh
local objects, sh = place.objects, place.sh
local read = support.read

local dir

local SYNC = "sync o --to st --marker DONE --settle 0"

place.with_directory(function(made) dir = made end)

-- Makes a Hugging Face cache of one model, with two revisions that share a file, as its library
-- does.
local CACHE = [[
cache=hub/models--org--name
mkdir -p $cache/blobs $cache/refs $cache/snapshots/aaa/onnx $cache/snapshots/bbb
head -c 300000 /dev/urandom >$cache/blobs/w1
head -c 200000 /dev/urandom >$cache/blobs/w2
echo '{"model_type":"x"}' >$cache/blobs/c
printf aaa >$cache/refs/main
ln -s ../../blobs/w1 $cache/snapshots/aaa/model.safetensors
ln -s ../../blobs/c $cache/snapshots/aaa/config.json
ln -s ../../../blobs/w1 $cache/snapshots/aaa/onnx/model.bin
ln -s ../../blobs/w2 $cache/snapshots/bbb/model.safetensors
ln -s ../../blobs/c $cache/snapshots/bbb/config.json
cp -rL $cache/snapshots aside
]]

-- A policy whose units are the snapshots of a cache.
local SNAPSHOTS = [[
return { api = 1, unit = { "snapshots/{*}/" }, complete = done.quiet("1s") }
]]

-- One checkpoint with a link out of it, and what `more` of the shell adds to it.
local function make(more)
  must_sh([[
    mkdir -p shared o/checkpoint-1
    head -c 100000 /dev/urandom >shared/w.bin
    ln -s ../../shared/w.bin o/checkpoint-1/model.bin
    touch o/checkpoint-1/DONE
    cp shared/w.bin truth]] .. "\n" .. (more or ""))
end

local function is_root() return sh "id -u" == "0\n" end

describe("a link that leads out of its checkpoint", function()
  it("is saved as the bytes that it leads to, and is whole elsewhere", function()
    make()
    local _, said = ends(0, SYNC)
    has(said, "2 files")
    lacks(said, "warning")
    must_sh "mv shared gone; mv o was"
    ends(0, "restore st --dir bk")
    must_sh "cmp truth bk/checkpoint-1/model.bin && test ! -L bk/checkpoint-1/model.bin"
    lacks(ends(0, "verify st"), "link")
    ends(0, "verify st/checkpoint-1")
    must_sh "cp -r st/checkpoint-1 copy"
    ends(0, "verify copy")
  end)

  it("is known again: the checkpoint is not saved twice, and not when it came back", function()
    make()
    ends(0, SYNC)
    must_sh "rm -rf o.ckpt"
    ends(0, SYNC)
    must_sh "rm -rf o o.ckpt"
    ends(0, "restore st --dir o")
    ends(0, SYNC)
    assert.are.equal(1, #objects((ends(0, "ls st --json"))))
  end)

  it("makes a whole cache of Hugging Face, each file once", function()
    support.write(dir .. "/p.lua", SNAPSHOTS)
    support.write(dir .. "/job.sh", CACHE)
    must_sh "mkdir -p hub/models--org--name"
    ends(0, "run --dir hub/models--org--name --to st -p p.lua -- sh job.sh")
    assert.are.equal("2\n", sh "find st -name model.safetensors -size +100k | wc -l")
    assert.are.equal("", sh "find st -name model.bin")
    must_sh "mv hub gone"
    ends(0, "restore st aaa --dir bk")
    ends(0, "restore st bbb --dir bk")
    must_sh "diff -r aside bk/snapshots"
    assert.are.equal("../model.safetensors\n", sh "readlink bk/snapshots/aaa/onnx/model.bin")
  end)

  it("is a change of the checkpoint when what it leads to is written", function()
    make()
    ends(0, SYNC)
    must_sh "head -c 100000 /dev/urandom >shared/w.bin; rm -rf o.ckpt"
    ends(0, SYNC)
    must_sh "mv shared gone; mv o was"
    ends(0, "restore st --dir bk")
    must_sh "cmp gone/w.bin bk/checkpoint-1/model.bin"
  end)
end)

describe("a link that has to stay one", function()
  local function odd()
    make [[
      mkfifo pipe
      cd o/checkpoint-1
      ln -s model.bin within; ln -s ../../shared dir; ln -s /nowhere/x gone; ln -s ../../pipe pipe
      ln -s /proc/self/environ environ; ln -s /dev/zero zero; ln -s self self; ln -s none none]]
  end

  it("is told of in one warning that counts and names the first", function()
    odd()
    local _, said = ends(0, SYNC, "SECRET=not-to-be-saved")
    assert.are.equal(1, select(2, said:gsub("warning", "")))
    has(said, [[checkpoint-1: 7 links lead out of it or nowhere, and are saved without what is ]]
      .. [[there: the first is "dir" to "../../shared" (a directory)]])
    assert.are.equal("", sh "grep -rl not-to-be-saved st")
    ends(0, "restore st --dir bk")
    assert.are.equal("/proc/self/environ\n", sh "readlink bk/checkpoint-1/environ")
    assert.are.equal("model.bin\n", sh "readlink bk/checkpoint-1/within")
  end)

  it("is named by show and by verify", function()
    odd()
    ends(0, SYNC)
    local text = ends(0, "show st")
    has(text, "link       dir -> ../../shared: leads out, and what is there was not saved\n")
    has(text, "link       self -> self: leads nowhere, ")
    lacks(text, "within")
    has((ends(0, "verify st")), "     link dir -> ../../shared: leads out, ")
    local shown = objects((ends(0, "show st --json")))[1]
    assert.are.equal(7, #shown.links)
    assert.are.same({ name = "dir", target = "../../shared", leads = "out" }, shown.links[1])
    local verified = objects((ends(0, "verify st --json")))[1]
    assert.is_true(verified.ok)
    assert.are.equal(7, verified.link_count)
    assert.are.same(shown.links, verified.links)
  end)

  it("is none of its business when it is a unit itself", function()
    make "ln -s checkpoint-1 o/checkpoint-2; ln -s ../shared/w.bin o/last.ckpt"
    ends(0, SYNC)
    assert.are.equal(1, #objects((ends(0, "ls st --json"))))
  end)
end)

describe("as root, a user's link", function()
  -- Alice owns the watched tree, and what it leads to is `owner`'s.
  local function watched(owner, target)
    must_sh(([[
      mkdir -p shared o/checkpoint-1 && chmod 755 . shared
      echo secret-of-others >shared/w && chmod 644 shared/w && chown %s shared/w
      ln -s %s o/checkpoint-1/model.bin && touch o/checkpoint-1/DONE
      chown -R -h 4321:4321 o]]):format(owner, target or "../../shared/w"))
    return ends(0, SYNC)
  end
  local function as_root(name, body)
    it(name, function()
      if not is_root() or select(2, sh "touch x && chown 4321 x") ~= 0 then
        return pending "only root can look at this"
      end
      body()
    end)
  end

  as_root("leads to that user's own file", function()
    watched "4321"
    assert.are.equal("secret-of-others\n", read(dir .. "/st/checkpoint-1/model.bin"))
  end)

  for _, owner in ipairs { "0", "4322" } do
    as_root("leads to no file of user " .. owner .. ", whatever all may read", function()
      local _, said = watched(owner)
      has(said, "1 link leads out of it")
      assert.are.equal("", sh "grep -rl secret-of-others st")
    end)
  end

  as_root("leads into no directory that is closed to that user", function()
    must_sh [[mkdir -p closed && chmod 700 closed
      echo secret-of-others >closed/w && chown 4321 closed/w]]
    watched("4321", "../../closed/w")
    assert.are.equal("", sh "grep -rl secret-of-others st")
  end)
end)

describe("what is not kept of a checkpoint", function()
  it("is said once for each that has such, and for no other", function()
    must_sh [[
      mkdir -p o/checkpoint-1 o/checkpoint-2
      cd o/checkpoint-1; echo a >a; ln a b; truncate -s 1M c; echo s >s; chmod 4755 s
      touch DONE; cd ../checkpoint-2
      for i in a b c s; do echo $i >$i; done; touch DONE]]
    local has_attributes = select(2, sh "setfattr -n user.x -v y o/checkpoint-1/a") == 0
    local _, said = ends(0, SYNC)
    assert.are.equal(1, select(2, said:gsub("warning", "")))
    has(said, "checkpoint-1: not all of it is kept, and a restore is without: set-id bits, "
      .. "hard links")
    has(said, "holes in files")
    if has_attributes then has(said, "extended attributes") end
    ends(0, "restore st checkpoint-1 --dir bk")
    assert.are.equal("755\n", sh "stat -c %a bk/checkpoint-1/s")
    must_sh "cmp o/checkpoint-1/c bk/checkpoint-1/c"
  end)
end)
