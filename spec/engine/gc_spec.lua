-- gc: what it removes and what it leaves alone, by the real program on a directory.

package.path = "./spec/?.lua;" .. package.path
local cjson = require "cjson"
local support = require "support"
local place = require "place"
local sh, has, there, save = place.sh, place.has, place.there, place.save
local CKPT = support.runner

local dir

-- Standard output, exit code, standard error.
local function ckpt(args)
  local command = ("cd '%s' && '%s' %s 2>err.txt; printf '\\n%%s' $?"):format(dir, CKPT, args)
  local pipe = io.popen(command)
  local text, code = pipe:read("*a"):match("^(.*)\n(%d+)$")
  pipe:close()
  return text, tonumber(code), support.read(dir .. "/err.txt")
end

local function objects(text)
  local list = {}
  for line in text:gmatch("[^\n]+") do list[#list + 1] = cjson.decode(line) end
  return list
end

local function sync(args)
  local _, code, err = ckpt("sync out --to store --quiet 0 " .. (args or ""))
  assert.are.equal(0, code, err)
end

-- A store's clock is that of its files: all of the log and the lease were made so long ago.
local function age(store, hours)
  sh(("find %s -path '*/.ckpt/*' -exec touch -h -d '%d hours ago' {} +"):format(store, hours))
end

-- The next entry of the log, by a writer that is gone: the newest term's attempt at `unit`.
local function leave_attempt(store, unit)
  local n = tonumber((sh(("ls %s/.ckpt/log | wc -l"):format(store))))
  local term
  for i = 0, n - 1 do
    local entry = cjson.decode(support.read(("%s/%s/.ckpt/log/%020d.json"):format(dir, store, i)))
    if entry.type == "term" then term = i end
  end
  support.write(("%s/%s/.ckpt/log/%020d.json"):format(dir, store, n),
    ('{"type":"attempt","term":%d,"unit":"%s","dir":"%s","format":0,"reader":0,"n":%d,' ..
    '"nonce":"%032d","time_ns":1}'):format(term, unit, unit, n, n))
  sh(("mkdir -p %s/.ckpt/staging/%d; echo torn >%s/.ckpt/staging/%d/model.bin")
    :format(store, n, store, n))
  return n
end

before_each(function()
  dir = place.begin()
  sh("mkdir out")
end)
after_each(function() os.execute("chmod -R u+w '" .. dir .. "'; rm -rf '" .. dir .. "'") end)

describe("gc", function()
  it("has nothing to do where a run ended well", function()
    save("out", 1, 2)
    sync()
    local text, code, err = ckpt("gc store --grace-delete 0")
    assert.are.equal(0, code, err)
    has(text, "done: 0 things")
    assert.are.equal(2, #objects((ckpt("ls store --json"))))
  end)

  it("ends with 4 where no run has written, and 10 where there is no store", function()
    sh("mkdir empty")
    assert.are.equal(4, (select(2, ckpt("gc empty"))))
    assert.are.equal(10, (select(2, ckpt("gc nowhere"))))
  end)

  it("gives up what a dead writer left, when the grace is over", function()
    save("out", 1)
    sync()
    local n = leave_attempt("store", "checkpoint-9")
    age("store", 2)
    has((ckpt("gc store")), "done: 0 things")
    assert.is_true(there(("store/.ckpt/staging/%d/model.bin"):format(n)))
    local list = objects((ckpt("gc store --grace-delete 1h --json")))
    assert.are.equal("attempt", list[1].what)
    assert.are.equal("checkpoint-9", list[1].name)
    assert.are.equal(1, list[2].removed)
    assert.is_false(there(("store/.ckpt/staging/%d/model.bin"):format(n)))
    assert.are.equal(1, #objects((ckpt("ls store --json"))))
    -- The next run is not held up by it, and goes on.
    save("out", 2)
    sync()
    assert.are.equal(2, #objects((ckpt("ls store --json"))))
  end)

  it("deletes what was dropped once the grace is over, and never the newest", function()
    save("out", 1, 2)
    sync()
    ckpt("rm store checkpoint-1")
    has((ckpt("gc store")), "done: 0 things")
    assert.is_true(there("store/checkpoint-1/model.bin"))
    age("store", 25)
    sh("for f in store/.ckpt/log/*; do sed -i 's/\"time_ns\":[0-9]*/\"time_ns\":1/' $f; " ..
      "touch -d '25 hours ago' $f; done")
    local text, code = ckpt("gc store")
    assert.are.equal(0, code)
    has(text, "removed checkpoint checkpoint-1")
    assert.is_false(there("store/checkpoint-1/model.bin"))
    assert.is_true(there("store/checkpoint-2/model.bin"))
  end)

  it("says in a dry run what it would do, and makes no system call that writes", function()
    save("out", 1, 2)
    sync()
    local n = leave_attempt("store", "checkpoint-9")
    ckpt("rm store checkpoint-1")
    age("store", 30)
    if sh("command -v strace") == "" then return pending("strace is not there") end
    local before = sh("find store -printf '%p %s %T@\\n' | sort")
    local calls = "rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir," ..
      "fsync,openat,open,creat"
    local options = "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0:log_path=stderr "
    local strace = options .. "strace -f -qq -e trace=%s -o trace "
    local text = sh((strace .. "'%s' gc store -n --grace-delete 1h"):format(calls, CKPT))
    has(text, "would remove attempt checkpoint-9")
    has(text, "would be done: ")
    assert.are.equal(before, sh("find store -printf '%p %s %T@\\n' | sort"))
    local writes = sh("grep -E 'rename|link|mkdir|rmdir|fsync|creat|O_WRONLY|O_RDWR|O_CREAT' " ..
      "trace | grep -vE '/dev/null|readlink' || true")
    assert.are.equal("", writes)
    assert.is_true(there(("store/.ckpt/staging/%d/model.bin"):format(n)))
  end)

  it("goes past a log that it cannot read, and says so", function()
    save("out/a", 1)
    save("out/b", 1)
    sync()
    local n = leave_attempt("store/b", "checkpoint-9")
    age("store", 2)
    sh("echo '{' >store/a/.ckpt/log/00000000000000000001.json; mkdir -p store/a/checkpoint-7; " ..
      "echo x >store/a/checkpoint-7/x")
    local text, code, err = ckpt("gc store --grace-delete 1h")
    assert.are.equal(1, code)
    has(err, "00000000000000000001.json")
    has(text, "removed attempt b/checkpoint-9")
    assert.is_false(there(("store/b/.ckpt/staging/%d/model.bin"):format(n)))
    assert.is_true(there("store/a/checkpoint-1/model.bin") and there("store/a/checkpoint-7/x"))
  end)

  it("collects every run below a place", function()
    save("out", 1)
    for _, name in ipairs { "one", "two" } do
      local _, code = ckpt(("sync out --to exp/%s --quiet 0 --state st.%s"):format(name, name))
      assert.are.equal(0, code)
      leave_attempt("exp/" .. name, "checkpoint-9")
    end
    sh("mkdir -p exp/one/.ckpt/tmp; echo x >exp/one/.ckpt/tmp/killed; echo x >exp/notes")
    age("exp", 48)
    local text, code, err = ckpt("gc exp --grace-delete 1h")
    assert.are.equal(0, code, err)
    has(text, "removed attempt one/checkpoint-9")
    has(text, "removed attempt two/checkpoint-9")
    has(text, "removed temporary one/.ckpt/tmp/killed")
    assert.is_true(there("exp/notes"))
  end)

  it("removes what killed processes left in the store's own directory, after a day", function()
    save("out", 1)
    sync()
    sh("cd store/.ckpt; echo x >tmp/old; echo x >lease-probe.old; " ..
      "touch -d '25 hours ago' tmp/old lease-probe.old; echo x >tmp/new")
    has((ckpt("gc store")), "done: 2 things")
    assert.is_true(there("store/.ckpt/tmp/new"))
    assert.is_false(there("store/.ckpt/tmp/old") or there("store/.ckpt/lease-probe.old"))
  end)

  it("is told by a pin that nobody can read", function()
    save("out", 1, 2)
    sync()
    ckpt("rm store checkpoint-1")
    sh("mkdir -p store/.ckpt/pins; echo '?' >store/.ckpt/pins/odd")
    local _, code, err = ckpt("gc store --grace-delete 0")
    assert.are.equal(1, code)
    has(err, "pins/odd")
    assert.is_true(there("store/checkpoint-1/model.bin"))
  end)
end)

describe("gc --remove-run", function()
  it("wants a word more before it removes everything", function()
    save("out", 1)
    sync()
    local _, code, err = ckpt("gc store --remove-run")
    assert.are.equal(2, code)
    has(err, "--yes")
    has((ckpt("gc store --remove-run --dry-run")), "would remove run")
    assert.is_true(there("store/checkpoint-1/model.bin"))
  end)

  it("leaves the log, in which a later run goes on with new names", function()
    save("out", 1, 2)
    sync()
    local text, code, err = ckpt("gc store --remove-run --yes")
    assert.are.equal(0, code, err)
    has(text, "removed run ")
    assert.is_false(there("store/checkpoint-1/model.bin") or there("store/checkpoint-2/model.bin"))
    assert.are.equal("", (sh("find store -type f ! -path '*/.ckpt/log/*' ! -name head " ..
      "! -path '*/.ckpt/cleared/*'")))
    assert.are.equal(0, #objects((ckpt("ls store --json"))))
    local _, again = ckpt("gc store --remove-run --yes")
    assert.are.equal(0, again)
    -- Of another directory, so of another run id.
    sh("cp -a out other")
    local _, synced, why = ckpt("sync other --to store --quiet 0")
    assert.are.equal(0, synced, why)
    local list = objects((ckpt("ls store --json")))
    assert.are.equal(2, #list)
    assert.are.equal("checkpoint-1", list[1].name)
    assert.are_not.equal("checkpoint-1", list[1].dir)
    ckpt("restore store checkpoint-2 --dir back")
    assert.are.equal("weights 2\n", support.read(dir .. "/back/checkpoint-2/model.bin"))
  end)

  it("leaves nothing behind that a later run takes for its own", function()
    save("out", 1, 2)
    sync()
    ckpt("rm store checkpoint-1")
    local _, code, err = ckpt("gc store --remove-run --yes")
    assert.are.equal(0, code, err)
    -- What was written into since looks as if it were committed. It was, by the run that is gone.
    sh("mkdir other; cp -a out/checkpoint-2 other")
    assert.are.equal(0, (select(2, ckpt("sync other --to store --quiet 0"))))
    sh("cp -a out/checkpoint-1 other; echo 1 >other/checkpoint-1/score.json")
    local _, synced, why = ckpt("sync other --to store --quiet 0")
    assert.are.equal(0, synced, why)
    assert.are.equal(2, #objects((ckpt("ls store --json"))))
    ckpt("restore store checkpoint-1 --dir back")
    assert.are.equal("weights 1\n", support.read(dir .. "/back/checkpoint-1/model.bin"))
  end)

  it("leaves nothing behind by which the same directory counts as saved", function()
    save("out", 1, 2)
    sync()
    assert.are.equal(0, (select(2, ckpt("gc store --remove-run --yes"))))
    -- Another run's files have these names meanwhile.
    save("other", 1, 2)
    sh("echo others >other/checkpoint-2/model.bin")
    assert.are.equal(0, (select(2, ckpt("sync other --to store --quiet 0"))))
    sync("--continue-run")
    ckpt("restore store checkpoint-2 --dir back")
    assert.are.equal("weights 2\n", support.read(dir .. "/back/checkpoint-2/model.bin"))
  end)

  it("refuses what is pinned, and a run that is alive", function()
    save("out", 1)
    sync()
    local id = ckpt("pin store checkpoint-1"):match("%x+")
    local _, code, err = ckpt("gc store --remove-run --yes")
    assert.are.equal(11, code)
    has(err, "pinned")
    ckpt("unpin store " .. id)
    sh(("'%s' watch --dir out --to store >watch.log 2>&1 & echo $! >pid"):format(CKPT))
    save("out", 2)
    support.await("the lease", function()
      return not support.read(dir .. "/store/.ckpt/lease"):find("released", 1, true)
    end)
    _, code, err = ckpt("gc store --remove-run --yes")
    sh("kill $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.05; done")
    assert.are.equal(11, code)
    has(err, "alive")
    assert.is_true(there("store/checkpoint-1/model.bin"))
  end)

  it("takes a run without a lease for one that is alive until its log is quiet", function()
    save("out", 1)
    sync()
    sh("rm store/.ckpt/lease")
    local _, code, err = ckpt("gc store --remove-run --yes")
    assert.are.equal(11, code)
    has(err, "may be alive")
    has(err, "try again in")
    assert.is_true(there("store/checkpoint-1/model.bin"))
    age("store", 1)
    _, code, err = ckpt("gc store --remove-run --yes")
    assert.are.equal(0, code, err)
    assert.is_false(there("store/checkpoint-1/model.bin"))
  end)
end)
