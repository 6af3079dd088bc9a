-- repair: a log that has lost entries is made anew of what is left, by the real program, on a
-- directory and in a bucket of versitygw. Everything that can be proven is listed, verifies and can
-- be restored; nothing is removed; the run goes on.

local place = require "place"
local support = require "support"
local sh, must, says, save = place.sh, place.must, place.says, place.save

local dir
local original -- a store of five saves, one of them without a plain name, and what it listed

local function entry(n) return ("store/.ckpt/log/%020d.json"):format(n) end

local function names(store)
  local list = {}
  for _, item in ipairs(place.objects(must("ls " .. store .. " --json"))) do
    list[#list + 1] = item.dir
  end
  return table.concat(list, " ")
end

local function data()
  return (sh "cd store && find . -type f -not -path './.ckpt/*' | sort | xargs md5sum")
end

-- The number of an entry of that type which is the nth one.
local function number_of(kind, nth)
  local found = {}
  for line in sh("grep -l '\"type\":\"" .. kind .. "\"' store/.ckpt/log/*"):gmatch "[^\n]+" do
    found[#found + 1] = tonumber(line:match "(%d+)%.json")
  end
  return found[nth < 0 and #found + 1 + nth or nth]
end

-- Breaks a copy of the store, repairs it, and looks at what came of it.
local function mends(break_it, expected, code)
  sh "rm -rf store && cp -a original store"
  break_it()
  local before = data()
  local dry = says(code or 0, "repair store -n")
  assert.are.equal("", (sh "ls store/.ckpt/epoch 2>/dev/null"))
  local text = says(code or 0, "repair store")
  assert.truthy(text:find("a new log was made %(epoch 1%)"), text)
  assert.truthy(dry:find "a new log would be made", dry)
  assert.are.equal(before, data())
  assert.are.equal(expected or original, names "store")
  must "verify store"
  sh "rm -rf back"
  must "restore store --dir back"
  assert.are.equal("", (sh "diff -r back/checkpoint-4 out/checkpoint-4"))
  says(0, "repair store")
  return text
end

local function goes_on(args)
  save("out", 9)
  must("sync out --to store --settle 0 " .. (args or ""))
  assert.are.equal((names "store"):match "%S+$", "checkpoint-9")
  must "verify store"
  sh "rm -r out/checkpoint-9"
end

describe("repair", function()
  setup(function()
    dir = place.begin()
    for i = 1, 4 do
      save("out", i)
      must "sync out --to store --settle 0"
    end
    sh "cp -a store original"
    original = names "original"
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3 checkpoint-4", original)
  end)
  teardown(function() os.execute("rm -rf '" .. dir .. "'") end)

  it("leaves a whole log as it is", function()
    assert.truthy(must("repair store"):find "no entry is missing")
    assert.are.equal("", (sh "diff -r store original"))
  end)

  it("mends one lost entry in the middle, whichever it is", function()
    local last = tonumber((sh "ls store/.ckpt/log | tail -1"):match "%d+")
    for n = 1, last do
      mends(function() os.remove(dir .. "/" .. entry(n)) end)
    end
    goes_on()
  end)

  it("mends a torn entry", function()
    mends(function() support.write(dir .. "/" .. entry(number_of("commit", 2)), '{"n":') end)
    goes_on()
  end)

  it("mends many lost entries", function()
    mends(function() sh(("rm %s"):format(table.concat({ entry(2), entry(3), entry(4), entry(5),
      entry(6), entry(7), entry(8) }, " "))) end)
    goes_on()
  end)

  it("mends a lost tail, of which no entry tells", function()
    mends(function()
      local last = tonumber((sh "ls store/.ckpt/log | tail -1"):match "%d+")
      for n = last - 3, last do os.remove(dir .. "/" .. entry(n)) end
    end)
    goes_on()
  end)

  it("mends a log of which nothing is left, and then the run must be named once", function()
    mends(function() sh "rm -r store/.ckpt/log" end)
    says(11, "sync out --to store --settle 0")
    goes_on "--continue-run"
  end)

  it("brings nothing back of which a removal was begun, and names what is not whole", function()
    sh "rm -rf store && cp -a original store"
    must "rm store checkpoint-2 --grace-delete 0"
    local commit = number_of("commit", 3)
    for _, kind in ipairs { "drop", "delete" } do
      os.remove(dir .. "/" .. entry(number_of(kind, -1)))
    end
    os.remove(dir .. "/" .. entry(commit))
    sh "rm store/checkpoint-3/model.bin"
    local text = says(3, "repair store")
    local said = "bad checkpoint-3: not whole when the log was repaired"
    assert.truthy(text:find(said, 1, true), text)
    assert.are.equal("checkpoint-1 checkpoint-3 checkpoint-4", names "store")
    place.must_sh "test -e store/checkpoint-3/.ckpt-manifest.json"
  end)

  it("mends a log that was mended before, and keeps its numbers", function()
    mends(function() os.remove(dir .. "/" .. entry(3)) end)
    goes_on()
    local last = (sh "ls store/.ckpt/log.1 | tail -2 | head -1"):match "%S+"
    os.remove(dir .. "/store/.ckpt/log.1/" .. last)
    assert.truthy(must("repair store"):find "epoch 2")
    must "verify store"
    assert.are.equal(original .. " checkpoint-9", names "store")
    -- The first entry of its log is lost, too: what is before it tells all the same.
    sh "rm store/.ckpt/log.2/00000000000000000000.json"
    assert.truthy(must("repair store"):find "epoch 3")
    assert.are.equal(original .. " checkpoint-9", names "store")
  end)

  it("is refused while a writer lives, and where 1.0 wrote last", function()
    sh "rm -rf store && cp -a original store"
    os.remove(dir .. "/" .. entry(3))
    sh "sed -i 's/,\"released\":true//; s/\"released\":true,//' store/.ckpt/lease"
    sh "touch store/.ckpt/lease"
    assert.truthy(says(11, "repair store"):find "a writer is alive")
    assert.are.equal("", (sh "ls store/.ckpt/epoch 2>/dev/null"))
    must "repair store --take-over"
    sh "rm -rf store && cp -a original store"
    os.remove(dir .. "/" .. entry(3))
    sh "sed -i 's/\"epochs\":true,//' store/.ckpt/log/* store/.ckpt/lease"
    assert.truthy(says(11, "repair store"):find "knows nothing of repairs")
    must "repair store --take-over"
    must "verify store"
  end)

  it("refuses writers while it is not over, and a second one mends that", function()
    sh "rm -rf store && cp -a original store"
    os.remove(dir .. "/" .. entry(number_of("commit", -1)))
    -- As one leaves it that was killed behind its first put.
    must "repair store"
    sh "rm -r store/.ckpt/log.1"
    save("out", 9)
    local text = says(11, "sync out --to store --settle 0")
    assert.truthy(text:find "a repair of this log %(epoch 1%)", text)
    assert.truthy(must("repair store"):find "epoch 2")
    must "sync out --to store --settle 0"
    must "verify store"
    sh "rm -r out/checkpoint-9"
  end)

  it("ends with 4 where there is nothing of a log", function()
    sh "mkdir -p empty"
    says(4, "repair empty")
  end)

  -- A bucket's rule, or somebody by hand: the objects of repairs are the smallest of the store.
  for _, lost in ipairs { "epoch/1", "epoch", "epoch log.2" } do
    it("reads on, and mends, where .ckpt/" .. lost .. " is lost after two repairs", function()
      sh "rm -rf store && cp -a original store"
      sh("rm " .. entry(number_of("commit", 2)))
      must "repair store"
      save("out", 5)
      must "sync out --to store --settle 0"
      sh "rm store/.ckpt/log.1/$(ls store/.ckpt/log.1 | tail -2 | head -1)"
      must "repair store"
      local whole = place.ends(0, "ls store --json")
      sh("cd store/.ckpt && rm -r " .. lost)
      if not lost:find "log" then
        assert.are.equal(whole, (place.ends(0, "ls store --json")))
      end
      assert.truthy(must("repair store"):find "epoch 3")
      assert.are.equal("1 2 3", (sh "ls store/.ckpt/epoch"):gsub("%s+", " "):match "^(.-)%s*$")
      assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3 checkpoint-4 checkpoint-5",
        names "store")
      goes_on()
      sh "rm -r out/checkpoint-5"
    end)
  end

  for nth, at in pairs { [2] = "in the middle", [-1] = "the newest" } do
    it("lists as bad what is not whole, " .. at .. ", and lets nobody take it", function()
      sh "rm -rf store && cp -a original store"
      local name = "checkpoint-" .. (nth == 2 and 2 or 4)
      sh(("truncate -s 3 store/%s/*.bin; rm %s"):format(name, entry(number_of("commit", nth))))
      local text = says(3, "repair store")
      assert.truthy(text:find("bad " .. name, 1, true), text)
      assert.falsy(text:find("left", 1, true), text)
      local newest = "checkpoint-" .. (nth == 2 and 4 or 3)
      assert.truthy(must("latest --uri store"):find(newest, 1, true))
      assert.truthy(must("repair store"):find "no entry is missing")
    end)
  end

  it("names what has lost its manifest with its entry", function()
    sh "rm -rf store && cp -a original store"
    sh("rm store/checkpoint-2/.ckpt-manifest.json " .. entry(number_of("commit", 2)))
    assert.truthy(says(3, "repair store"):find("checkpoint%-2: .* no manifest"))
  end)

  it("takes an entry whose values are none for a torn one", function()
    sh "rm -rf store && cp -a original store"
    local change = [[s/"bytes":[0-9]*/"bytes":-1/; s/,"sum":"[0-9a-f]*"//]]
    sh(("sed -i '%s' %s; rm store/.ckpt/head"):format(change, entry(number_of("commit", -1))))
    says(5, "ls store")
    assert.truthy(must("repair store"):find "0 lost, 1 torn: a new log was made")
    assert.are.equal(original, names "store")
    assert.truthy(must("repair store"):find "no entry is missing")
  end)

  it("makes no new log for saves that have no place in it", function()
    save("strange", 7)
    sh "rm -rf store"
    must "sync strange --to store --settle 0 --run other"
    sh "cp -a original/checkpoint-* store"
    assert.truthy(says(3, "repair store"):find "no entry is missing")
    assert.are.equal("", (sh "ls store/.ckpt/epoch 2>/dev/null"))
    sh "rm -r strange strange.ckpt"
  end)

  it("is what a restore asks for where the whole log is lost", function()
    for _, lost in ipairs { ".ckpt/log", ".ckpt" } do
      sh("rm -rf store back && cp -a original store && rm -r store/" .. lost)
      assert.truthy(says(5, "restore store --dir back"):find "no log that names them: .* repair")
      assert.are.equal("", (sh "ls back 2>/dev/null"))
      must "restore store/checkpoint-3 --dir back"
    end
    sh "rm -r back"
  end)

  it("is what a job asks for where the whole log is lost: it does not begin anew", function()
    for _, lost in ipairs { ".ckpt/log", ".ckpt" } do
      sh("rm -rf store anew && mkdir anew && cp -a original store && rm -r store/" .. lost)
      local text = says(5, "run --dir anew --to store -- touch anew/began")
      assert.truthy(text:find "no log that names them: .* repair .* another target")
      assert.are.equal("", (sh "ls anew"))
      must "repair store"
      must "run --dir anew --to store --continue-run -- touch anew/began"
      assert.truthy(sh("ls anew"):find "checkpoint%-%d")
    end
    sh "rm -r anew"
  end)
end)
