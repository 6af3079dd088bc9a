-- gc: what it removes and what it leaves alone, by the real program on a directory.

local support = require "support"
local place = require "place"
local sh, has, there, save = place.sh, place.has, place.there, place.save
local ckpt, ends, objects = place.apart, place.ends, place.objects
local CKPT = support.runner

local dir

local function sync(args)
  ends(0, "sync out --to store --settle 0 " .. (args or ""))
end

-- A store's clock is that of its files: all of the log and the lease were made so long ago.
local function age(store, hours)
  sh(("find %s -path '*/.ckpt/*' -exec touch -h -d '%d hours ago' {} +"):format(store, hours))
end

-- An attempt at `unit` by a writer that is gone, with a part of its data.
local function leave_attempt(store, unit)
  local n = place.leave_entry(store, "attempt",
    ('"unit":"%s","dir":"%s","format":0,"reader":0'):format(unit, unit))
  sh(("mkdir -p %s/.ckpt/staging/%d; echo torn >%s/.ckpt/staging/%d/model.bin")
    :format(store, n, store, n))
  return n
end

place.with_directory(function(made)
  dir = made
  sh("mkdir out")
end)

describe("gc", function()
  it("has nothing to do where a run ended well", function()
    save("out", 1, 2)
    sync()
    local text = ends(0, "gc store --grace-delete 0")
    has(text, "done: 0 things")
    assert.are.equal(2, #objects((ckpt("ls store --json"))))
  end)

  it("ends with 4 where no run has written, and 10 where there is no store", function()
    sh("mkdir empty")
    ends(4, "gc empty")
    ends(10, "gc nowhere")
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
    sh("'" .. support.root .. "/spec/older/unsealed.sh' store")
    sh("for f in store/.ckpt/log/*; do sed -i 's/\"time_ns\":[0-9]*/\"time_ns\":1/' $f; " ..
      "touch -d '25 hours ago' $f; done")
    local text = ends(0, "gc store")
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
    local text, err = ends(1, "gc store --grace-delete 1h")
    has(err, "00000000000000000001.json")
    has(text, "removed attempt b/checkpoint-9")
    assert.is_false(there(("store/b/.ckpt/staging/%d/model.bin"):format(n)))
    assert.is_true(there("store/a/checkpoint-1/model.bin") and there("store/a/checkpoint-7/x"))
  end)

  it("collects every run below a place", function()
    save("out", 1)
    for _, name in ipairs { "one", "two" } do
      ends(0, ("sync out --to exp/%s --settle 0 --state st.%s"):format(name, name))
      leave_attempt("exp/" .. name, "checkpoint-9")
    end
    sh("mkdir -p exp/one/.ckpt/tmp; echo x >exp/one/.ckpt/tmp/killed; echo x >exp/notes")
    age("exp", 48)
    local text = ends(0, "gc exp --grace-delete 1h")
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
    local _, err = ends(1, "gc store --grace-delete 0")
    has(err, "pins/odd")
    assert.is_true(there("store/checkpoint-1/model.bin"))
  end)
end)

describe("gc --remove-run", function()
  it("wants a word more before it removes everything", function()
    save("out", 1)
    sync()
    local _, err = ends(2, "gc store --remove-run")
    has(err, "--yes")
    has((ckpt("gc store --remove-run --dry-run")), "would remove run")
    assert.is_true(there("store/checkpoint-1/model.bin"))
  end)

  it("leaves the log, in which a later run goes on with new names", function()
    save("out", 1, 2)
    sync()
    local text = ends(0, "gc store --remove-run --yes")
    has(text, "removed run ")
    assert.is_false(there("store/checkpoint-1/model.bin") or there("store/checkpoint-2/model.bin"))
    assert.are.equal("", (sh("find store -type f ! -path '*/.ckpt/log/*' ! -name head " ..
      "! -path '*/.ckpt/cleared/*'")))
    assert.are.equal(0, #objects((ckpt("ls store --json"))))
    ends(0, "gc store --remove-run --yes")
    -- Of another directory, so of another run id.
    sh("cp -a out other")
    ends(0, "sync other --to store --settle 0")
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
    ends(0, "gc store --remove-run --yes")
    -- What was written into since looks as if it were committed. It was, by the run that is gone.
    sh("mkdir other; cp -a out/checkpoint-2 other")
    ends(0, "sync other --to store --settle 0")
    sh("cp -a out/checkpoint-1 other; echo 1 >other/checkpoint-1/score.json")
    ends(0, "sync other --to store --settle 0")
    assert.are.equal(2, #objects((ckpt("ls store --json"))))
    ckpt("restore store checkpoint-1 --dir back")
    assert.are.equal("weights 1\n", support.read(dir .. "/back/checkpoint-1/model.bin"))
  end)

  it("leaves nothing behind by which the same directory counts as saved", function()
    save("out", 1, 2)
    sync()
    ends(0, "gc store --remove-run --yes")
    -- Another run's files have these names meanwhile.
    save("other", 1, 2)
    sh("echo others >other/checkpoint-2/model.bin; " ..
      "find other -exec touch -h -d '1 hour ago' {} +")
    ends(0, "sync other --to store --settle 0")
    sync("--continue-run")
    ckpt("restore store checkpoint-2 --dir back")
    assert.are.equal("weights 2\n", support.read(dir .. "/back/checkpoint-2/model.bin"))
  end)

  it("refuses what is pinned, and a run that is alive", function()
    save("out", 1)
    sync()
    local id = ckpt("pin store checkpoint-1"):match("%x+")
    local _, err = ends(11, "gc store --remove-run --yes")
    has(err, "pinned")
    ckpt("unpin store " .. id)
    sh(("'%s' watch --dir out --to store >watch.log 2>&1 & echo $! >pid"):format(CKPT))
    save("out", 2)
    support.await("the lease", function()
      return not support.read(dir .. "/store/.ckpt/lease"):find("released", 1, true)
    end)
    local _, code, said = ckpt("gc store --remove-run --yes")
    sh("kill $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.05; done")
    assert.are.equal(11, code)
    has(said, "alive")
    assert.is_true(there("store/checkpoint-1/model.bin"))
  end)

  it("takes a run without a lease for one that is alive until its log is quiet", function()
    save("out", 1)
    sync()
    sh("rm store/.ckpt/lease")
    local _, err = ends(11, "gc store --remove-run --yes")
    has(err, "may be alive")
    has(err, "try again in")
    assert.is_true(there("store/checkpoint-1/model.bin"))
    age("store", 1)
    ends(0, "gc store --remove-run --yes")
    assert.is_false(there("store/checkpoint-1/model.bin"))
  end)
end)
