--- A save stands whole in the staging before its name is taken: what a full disk or a kill does to
--- it on the way costs no name and no checkpoint. By the real program, on a small file system.

local support = require "support"
local place = require "place"
local sh, ckpt, must, listed = place.sh, place.ckpt, place.must_sh, place.listed
local CKPT = support.runner

local dir, mounted

local function save(n, mib)
  must(("mkdir -p out/checkpoint-%d && head -c %dM /dev/urandom >out/checkpoint-%d/model.bin && " ..
    "echo '{}' >out/checkpoint-%d/trainer_state.json"):format(n, mib, n, n))
end

local function sync(args)
  return ckpt(("sync out --to %s --settle 0 %s"):format(mounted and "small/st" or "st", args or ""))
end

local function must_sync(args)
  local text, code = sync(args)
  assert.are.equal(0, code, text)
  return text
end

--- What lies in the staging, one name a line.
local function staged(store)
  return sh(("find %s/.ckpt/staging -mindepth 1 -maxdepth 1 -printf '%%f\\n' 2>/dev/null | sort")
    :format(store))
end

local function entries(store, type)
  return tonumber((sh(("grep -l '\"type\":\"%s\"' %s/.ckpt/log/* | wc -l"):format(type, store))))
end

--- Mounts a file system of that size, in which no mount of another test shows.
local function mount(size)
  if (sh "id -u"):match("%d+") ~= "0" then return "it mounts a file system: only root may" end
  sh "mkdir small"
  local text, code = sh(("mount -t tmpfs -o size=%s none small"):format(size))
  if code ~= 0 then return "no file system can be mounted here: " .. text end
  mounted = true
end

before_each(function()
  dir = place.begin()
  mounted = false
  sh "mkdir out"
end)
after_each(function()
  if mounted then sh "umount -l small" end
  os.execute("rm -rf '" .. dir .. "'")
end)

describe("a disk that fills up in the middle of a save", function()
  it("costs no name", function()
    local why = mount "12m"
    if why then return pending(why) end
    save(1, 4)
    must_sync()
    save(2, 9)
    local text, code = sync()
    assert.are.equal(7, code, text)
    assert.are.equal("checkpoint-1", listed "small/st")
    assert.are.equal("", staged "small/st") -- and the room is there again
    assert.are.equal(1, entries("small/st", "attempt"))
    must "mount -o remount,size=100m small"
    must_sync()
    assert.are.equal("checkpoint-1 checkpoint-2", listed "small/st")
    assert.are.equal("", staged "small/st")
    assert.are.equal(2, entries("small/st", "attempt"))
    must "cmp out/checkpoint-2/model.bin small/st/checkpoint-2/model.bin"
    assert.are.equal(0, (select(2, ckpt "verify small/st")))
  end)
end)

-- The disk gets stuck in the middle of the second file, so that the kill meets just that.
local STUCK_AT = 64 * 2 ^ 20

--- Kills a sync of checkpoint-1 when its first file stands in the staging and its second does not.
local function killed_in_the_middle()
  must "mkdir -p out/checkpoint-1; head -c 10M /dev/urandom >out/checkpoint-1/a.bin"
  must "truncate -s 160M out/checkpoint-1/b.bin"
  must "echo '{}' >out/checkpoint-1/trainer_state.json"
  local script = ("STUCK_AT=%d %s '%s' sync out --to st --settle 0 >said 2>&1 & echo $!")
    :format(STUCK_AT, place.preload "spec/world/stuck_write.c", CKPT)
  local pid = must(script):match("%d+")
  support.await("the first file", function()
    local bytes = sh("cat st/.ckpt/staging/*/a.bin 2>/dev/null | wc -c"):match("%d+")
    return tonumber(bytes) == 10 * 2 ^ 20
  end)
  must("kill -9 " .. pid)
  support.await("its end", function() return select(2, sh("kill -0 " .. pid)) ~= 0 end)
end

local function inode(path) return sh("stat -c %i " .. path):match("%d+") end

describe("a save that was killed while it was staged", function()
  it("is gone on with by the next run, which sends what is missing", function()
    killed_in_the_middle()
    local first = inode "st/.ckpt/staging/*/a.bin"
    assert.is_truthy(first)
    must_sync()
    assert.are.equal(first, inode "st/checkpoint-1/a.bin")
    must "cmp out/checkpoint-1/b.bin st/checkpoint-1/b.bin"
    assert.are.equal("checkpoint-1", listed "st")
    assert.are.equal("", staged "st")
    assert.are.equal(1, entries("st", "attempt"))
  end)

  it("is compared block by block: what is not the same is sent again", function()
    killed_in_the_middle()
    local first = inode "st/.ckpt/staging/*/a.bin"
    must "printf X | dd of=$(ls st/.ckpt/staging/*/a.bin) bs=1 seek=9000000 conv=notrunc 2>&1"
    local path = must("ls st/.ckpt/staging/*/a.bin"):match("[^\n]+")
    local held = assert(io.open(dir .. "/" .. path)) -- so its number is not given again
    must_sync()
    assert.are_not.equal(first, inode "st/checkpoint-1/a.bin")
    held:close()
    must "cmp out/checkpoint-1/a.bin st/checkpoint-1/a.bin"
    assert.are.equal(0, (select(2, ckpt "verify st")))
    assert.are.equal("", staged "st")
  end)

  it("is left alone if there is a link in it", function()
    killed_in_the_middle()
    must "cp out/checkpoint-1/a.bin elsewhere"
    must "cd st/.ckpt/staging/*/ && ln -sf ../../../../elsewhere a.bin"
    local before = staged "st"
    local text = must_sync "-v"
    assert.is_truthy(text:find("is not gone on with", 1, true), text)
    assert.are.equal(before, staged "st")
    must "test -f st/checkpoint-1/a.bin && ! test -L st/checkpoint-1/a.bin"
    must "cmp elsewhere out/checkpoint-1/a.bin"
  end)

  it("is left alone if another user made it", function()
    if (sh "id -u"):match("%d+") ~= "0" then return pending "it needs a second user, so root" end
    killed_in_the_middle()
    must "chown -R 1234 st/.ckpt/staging/*"
    local before, first = staged "st", inode "st/.ckpt/staging/*/a.bin"
    local text = must_sync()
    assert.is_truthy(text:find("was made by user 1234", 1, true), text)
    assert.are.equal(before, staged "st")
    assert.are_not.equal(first, inode "st/checkpoint-1/a.bin")
    text = must(("'%s' gc st --grace-delete 0"):format(CKPT))
    assert.is_nil(text:find("litter", 1, true), text)
    assert.are.equal(before, staged "st")
    assert.is_truthy(text:find("left .ckpt/staging/" .. before:match("[^\n]+"), 1, true), text)
    assert.is_truthy(text:find("was made by user 1234", 1, true), text)
  end)

  it("is removed though nothing is in it yet", function()
    killed_in_the_middle()
    must "rm -rf out/checkpoint-1; find st/.ckpt/staging -type f -delete"
    save(2, 1)
    must_sync()
    assert.are.equal(1, #support.lines(staged "st")) -- within the grace, it stays
    ckpt "gc st"
    assert.are.equal(1, #support.lines(staged "st"))
    must "find st/.ckpt/staging -mindepth 1 -exec touch -d '3 hours ago' {} +"
    ckpt "gc st --grace-delete 1h"
    assert.are.equal("", staged "st")
  end)

  it("is removed when nobody went on with it for the grace", function()
    killed_in_the_middle()
    must "rm -rf out/checkpoint-1"
    save(2, 1)
    must_sync()
    assert.are.equal(1, #support.lines(staged "st")) -- within it, it stays
    ckpt "gc st"
    assert.are.equal(1, #support.lines(staged "st"))
    must "find st/.ckpt/staging -type f -exec touch -d '3 hours ago' {} +"
    ckpt "gc st --grace-delete 1h"
    assert.are.equal("", staged "st")
    assert.are.equal("checkpoint-2", listed "st")
  end)

  it("is removed by a later run when nobody went on with it for the grace", function()
    killed_in_the_middle()
    must "rm -rf out/checkpoint-1"
    must "find st/.ckpt/staging -type f -exec touch -d '3 hours ago' {} +"
    save(2, 1)
    must(("'%s' run --dir out --to st --settle 0 --continue-run --grace-delete 1h -- true")
      :format(CKPT))
    assert.are.equal("", staged "st")
  end)

  it("belongs to its own process while its term is the newest", function()
    killed_in_the_middle()
    local before = staged "st"
    must "find st/.ckpt/staging -type f -exec touch -d '90 hours ago' {} +"
    ckpt "gc st --grace-delete 0"
    assert.are.equal(before, staged "st")
  end)
end)
