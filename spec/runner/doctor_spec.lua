-- `doctor`: what it says of directories, and that it leaves nothing behind.

local place = require "place"
local support = require "support"
local has, sh = place.has, place.must_sh

local dir

place.with_directory(function(made) dir = made end)

local function words(text)
  local found = {}
  for word, topic in text:gmatch "%f[^\n%z](%S+) +(%a+) +%S" do found[topic] = word end
  return found
end

local function all(path) return (sh(("find '%s' | LC_ALL=C sort"):format(path))) end

describe("doctor", function()
  it("finds a directory good, and leaves nothing there", function()
    sh "mkdir target"
    local text = place.must "doctor target"
    has(text, "saving there would work: 0 faults,")
    local found = words("\n" .. text)
    -- How much room is left is the machine's affair: nine tenths full is rightly a warning.
    assert.is_true(found.space == "ok" or found.space == "WARNING", text)
    for _, topic in ipairs { "place", "write", "list", "race", "large", "delete", "links", "rename",
      "locks", "left", "log" } do
      assert.are.equal("ok", found[topic], topic .. "\n" .. text)
    end
    assert.are.equal("target\n", (all "target"):gsub(dir .. "/", ""))
  end)

  it("makes no directory that was not there", function()
    has(place.must "doctor new/and/deep", "nothing is there yet")
    assert.are.equal("", sh "ls -A | grep -v '^err.txt$'; true")
  end)

  it("tells of a log, and changes nothing of it", function()
    sh "mkdir -p out/checkpoint-1 && echo w >out/checkpoint-1/model.bin"
    place.must "sync out --to target --settle 0 --trust"
    local before = all "target"
    has(place.must "doctor target", "1 checkpoint in")
    assert.are.equal(before, all "target")
    sh "mv target/.ckpt/log/00000000000000000003.json kept"
    local lost, found = place.ckpt "doctor target"
    assert.are_not.equal(0, found)
    has(lost, "the log is damaged: its head names entry 3")
    has(lost, "docs/repair.md")
    sh "mv kept target/.ckpt/log/00000000000000000003.json"
    sh "echo rubbish >target/.ckpt/log/00000000000000000000.json"
    local text, code = place.ckpt "doctor target"
    assert.are_not.equal(0, code)
    has(text, "FAULT    log")
  end)

  it("warns of memory, and finds what is in this process good", function()
    if place.sh "test -w /dev/shm" == "" then
      local text = place.must(("doctor /dev/shm/ckpt-doctor-%s"):format(dir:match "[^/.]+$"))
      has(text, "WARNING  disk")
      has(text, "gone when this machine restarts")
    end
    has(place.must "doctor mem://doctor", "0 faults, 0 warnings")
  end)

  it("says that nothing can be written, and what to do", function()
    sh "mkdir target"
    local text, code = place.sh(
      ("unshare -rm sh -c 'mount --bind target target && mount -o remount,bind,ro target && " ..
        "%s doctor target'"):format(support.runner))
    if text:find("unshare", 1, true) or text:find("mount:", 1, true) then return end
    assert.are.equal(7, code, text)
    has(text, "FAULT    write")
    has(text, "to do: ")
    has(text, "saving there would FAIL: 1 fault")
  end)

  it("refuses what is no target", function()
    local text = place.says(7, "doctor 's4://x'")
    has(text, "no store speaks s4://")
  end)

  it("is a call of the library, too", function()
    support.write(dir .. "/try.lua", [[
local ckpt = require "ckpt"
local found = assert(ckpt.doctor "target")
local topics = {}
for _, each in ipairs(found) do topics[each.topic] = each.word end
assert(topics.race == "fine" and topics.left == "fine")
local none, why, name, list = ckpt.doctor "/proc/no/place"
assert(not none and why and name and list[#list].word)
print "held"
]])
    has(place.must "exec try.lua", "held")
  end)
end)
