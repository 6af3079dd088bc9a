-- Whose socket: a run is found through its state directory, whoever asks and whatever his
-- environment is; a run that can have none trains and saves all the same; what is alive, or
-- somebody else's, is never removed; and every wait of the asking side has an end.

local support = require "support"
local test = require "place"
local at, has, needs, sh_ends = test.at, test.has, test.needs, test.sh_ends
local sh, read, write, await = support.sh, support.read, support.write, support.await

local dir

-- Nobody's number, so that what stands at its place in /tmp is this test's.
local AS_USER = "setpriv --reuid 61234 --regid 61234 --clear-groups env -u XDG_RUNTIME_DIR"
local IN_TMP = "/tmp/ckpt-lua-61234"

local function has_user()
  return needs(at(AS_USER .. " CKPT --version")) and needs("! test -e " .. IN_TMP)
end

-- Starts a run in the background: a job that saves one checkpoint, tells its address, and goes on
-- until it is let go. `before` are commands ahead of it, `as` a command to run it below.
local function start(before, as, dirs)
  write(at("@/job.sh"), at([[
    echo "${CKPT_SOCKET-none}" >@/address
    mkdir $CKPT_DIR/.new; echo w >$CKPT_DIR/.new/model.bin; mv $CKPT_DIR/.new $CKPT_DIR/checkpoint-1
    echo $PPID >@/runner.new; mv @/runner.new @/runner
    until [ -e @/go ]; do sleep 0.05; done]]))
  write(at("@/start.sh"), at((before or "") .. "\n" .. (as or "") .. " CKPT run " ..
    (dirs or "--dir @/out --to @/store") .. [[ --settle 0 --grace 5 -- sh @/job.sh >@/run.txt 2>&1
    echo $? >@/rc.new; mv @/rc.new @/rc]]))
  os.execute(at("sh @/start.sh </dev/null >/dev/null 2>&1 &"))
  await("the job", function() return read(at("@/runner")) or read(at("@/rc")) end)
end

local function runner() return read(at("@/runner")):match("%d+") end
local function address() return read(at("@/address")):match("[^\n]+") end
local function said() return read(at("@/run.txt")) or "" end

local function finish()
  write(at("@/go"), "")
  return tonumber((await("the end", function() return read(at("@/rc")) end)))
end

local function must_have_saved()
  assert.are.equal(0, finish(), said())
  local text = sh_ends(0, at("CKPT ls @/store"))
  has(text, "checkpoint-1")
end

before_each(function()
  dir = test.begin(sh("mktemp -d -p /var/tmp"):match("%S+"))
  sh(at("chmod 755 @/; mkdir @/out"))
end)

after_each(function()
  if read(at("@/runner")) then
    sh("kill -CONT " .. runner())
    finish()
  end
  sh("rm -rf '" .. dir .. "' " .. IN_TMP)
end)

describe("a run is found through its state directory", function()
  it("whatever XDG_RUNTIME_DIR says on both sides", function()
    sh(at("mkdir -m 700 @/one @/two"))
    start(at("export XDG_RUNTIME_DIR=@/one"))
    local theirs = { "XDG_RUNTIME_DIR=@/two", "-u XDG_RUNTIME_DIR", "XDG_RUNTIME_DIR=/nowhere" }
    for _, env in ipairs(theirs) do
      sh_ends(0, at("env -u CKPT_SOCKET " .. env .. " CKPT notify --dir @/out loss=1"))
      local text = sh_ends(0, at("env " .. env .. " CKPT status @/out"))
      has(text, "newest")
    end
    assert.are.equal("", (sh(at("ls -A @/two"))), "who asks makes nothing")
    must_have_saved()
  end)

  it("by root when it is another user's, and by nobody else", function()
    if not has_user() then return end
    sh(at("chown -R 61234 @/"))
    start("", AS_USER)
    local text = sh_ends(0, at("CKPT status @/out"))
    has(text, "directory")
    sh_ends(0, at("CKPT notify --dir @/out loss=1"))
    text = sh_ends(1, at("setpriv --reuid 61235 --regid 61235 --clear-groups CKPT status @/out"))
    has(text, "another user")
    must_have_saved()
  end)

  it("and names where it was, if that is another machine or another boot", function()
    if not needs("unshare -m -u true") then return end
    local host = sh("uname -n"):match("%S+")
    local boot = read("/proc/sys/kernel/random/boot_id"):match("%S+")
    write(at("@/boot"), "11111111-2222-4333-8444-555555555555\n")
    local function elsewhere(command)
      return sh(at("unshare -m -u sh -c 'mount --bind @/boot /proc/sys/kernel/random/boot_id && " ..
        "hostname elsewhere && " .. command .. " 2>&1'"))
    end
    start()
    for _, asked in ipairs { "env -u CKPT_SOCKET CKPT notify --dir @/out loss=1",
      "CKPT status @/out" } do
      local text, code = elsewhere(asked)
      assert.are.equal(1, code, text)
      has(text, "host " .. host)
      has(text, boot)
      has(text, "elsewhere")
      assert.is_nil(text:find("has no socket", 1, true), text)
    end
    must_have_saved()
    local text, code = elsewhere("CKPT notify --dir @/out loss=1")
    assert.are.equal(4, code, text)
    has(text, "host " .. host)
    text, code = elsewhere("CKPT status @/out")
    assert.are.equal(0, code, text)
    has(text, "the last one ended with")
    sh(at("rm @/out.ckpt/exit.json"))
    text, code = elsewhere("CKPT status @/out")
    assert.are.equal(4, code, text)
    has(text, "host " .. host)
  end)

  it("and is starting while it has that and does not listen, unless it has said its end", function()
    start()
    must_have_saved()
    write(at("@/hold.py"), [[
import fcntl, sys, time
f = open(sys.argv[1], "r+"); fcntl.lockf(f, fcntl.LOCK_EX)
open(sys.argv[2], "w").write("up")
time.sleep(20)]])
    os.execute(at("python3 @/hold.py @/out.ckpt/lock @/held & echo $! >@/hold.pid"))
    await("the lock", function() return read(at("@/held")) end)
    local text = sh_ends(0, at("CKPT status @/out"))
    has(text, "the last one ended with")
    sh(at("rm @/out.ckpt/exit.json"))
    text = sh_ends(0, at("CKPT status @/out"))
    has(text, "starting")
    text = sh_ends(0, at("CKPT status --json @/out"))
    assert.are.equal('{"starting":true,"waits":""}\n', text) -- and not yet alive
    sh("kill " .. read(at("@/hold.pid")))
    await("its end", function() return select(2, sh(at("CKPT status @/out"))) == 4 end)
  end)

  it("and not through a copy of it", function()
    start()
    sh(at("cp -a @/out @/copy; cp -a @/out.ckpt @/copy.ckpt"))
    local text = sh_ends(4, at("env -u CKPT_SOCKET CKPT notify --dir @/copy loss=1"))
    has(text, "no run is alive")
    must_have_saved()
  end)
end)

describe("a run trains and saves all the same", function()
  local LONG = ("a-name-that-leaves-no-room-"):rep(4)

  -- What stands in the way is left as it is.
  local function is_left(look)
    assert.are.equal(0, (select(2, sh(look))), (sh("ls -ld " .. IN_TMP)))
  end

  it("with another user's directory in the way, and can be told results", function()
    if not has_user() then return end
    sh(at("chown -R 61234 @/; mkdir -m 777 " .. IN_TMP))
    start("", AS_USER)
    has(address(), dir .. "/out.ckpt/socket.")
    sh_ends(0, at(AS_USER .. " CKPT notify --dir @/out loss=1"))
    must_have_saved()
    assert.are.equal("", (sh("ls -A " .. IN_TMP)))
    assert.are.equal("", (sh(at("ls -A @/out.ckpt | grep socket"))))
  end)

  it("with a file or a link in the way", function()
    if not has_user() then return end
    for _, made in ipairs { "touch " .. IN_TMP, at("ln -s @/elsewhere " .. IN_TMP) } do
      sh(at("mkdir -p @/elsewhere; rm -rf @/store @/out/* @/out.ckpt @/go @/rc @/runner; " ..
        made .. " && chown -hR 61234 @/ " .. IN_TMP))
      start("", AS_USER)
      has(address(), dir .. "/out.ckpt/socket.")
      must_have_saved()
      is_left("test -f " .. IN_TMP .. " -o -h " .. IN_TMP)
      assert.are.equal("", (sh(at("ls -A @/elsewhere"))))
      sh("rm -f " .. IN_TMP)
    end
  end)

  it("with no place at all for a socket, and says so", function()
    if not has_user() then return end
    sh(at("mkdir -p @/" .. LONG .. "/out; chown -R 61234 @/; mkdir -m 777 " .. IN_TMP))
    start("", AS_USER, "--dir @/" .. LONG .. "/out --to @/store")
    assert.are.equal("none", address())
    has(said(), "has no socket")
    has(said(), "XDG_RUNTIME_DIR")
    has(said(), IN_TMP)
    local text = sh_ends(1, at("CKPT status @/" .. LONG .. "/out"))
    has(text, "has no socket")
    must_have_saved()
  end)

  it("where /tmp is read-only", function()
    if not needs("unshare -m sh -c 'mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp'") then
      return
    end
    local before = "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp || exit 77"
    write(at("@/ro.sh"), before .. '\nexec "$@"')
    start("unset XDG_RUNTIME_DIR", at("unshare -m sh @/ro.sh"))
    has(address(), dir .. "/out.ckpt/socket.")
    must_have_saved()
    sh(at("rm -rf @/store @/go @/rc @/runner; mkdir -p @/" .. LONG .. "/out"))
    start("unset XDG_RUNTIME_DIR", at("unshare -m sh @/ro.sh"),
      "--dir @/" .. LONG .. "/out --to @/store")
    assert.are.equal("none", address())
    has(said(), "has no socket")
    has(said(), "XDG_RUNTIME_DIR")
    must_have_saved()
  end)

  it("when something foreign stands where its socket was, and leaves it there", function()
    start()
    must_have_saved()
    local place = read(at("@/out.ckpt/identity")):match('"socket":"([^"]*)"')
    write(place, "somebody's")
    sh(at("rm -rf @/store @/go @/rc @/runner @/out/checkpoint-1"))
    start("", "", "--dir @/out --to @/store --continue-run --take-over")
    assert.are.equal("none", address())
    has(said(), place)
    must_have_saved()
    assert.are.equal("somebody's", read(place))
    os.remove(place)
  end)

  it("and leaves what came to its place while it ran", function()
    start()
    local place = address()
    os.remove(place)
    write(place, "somebody's")
    must_have_saved()
    assert.are.equal("somebody's", read(place))
    os.remove(place)
  end)

  it("and takes away what a killed run left there long ago, and nobody listens to", function()
    if not has_user() then return end
    sh(at("chown -R 61234 @/"))
    start("", at(AS_USER))
    local left = address()
    assert.are.equal(IN_TMP, left:match("(.*)/"))
    support.kill(runner())
    sh(at("rm -r @/out.ckpt @/runner @/rc* && touch -h -d '2 hours ago' " .. left))
    start("", at(AS_USER), "--dir @/out --to @/other --take-over")
    assert.are_not.equal(left, address())
    assert.are.equal("", (sh("ls " .. left .. " 2>&-")))
    assert.are.equal(address() .. "\n", (sh("ls -d " .. IN_TMP .. "/*")))
    finish()
  end)

  it("and takes no socket that is listened to", function()
    start()
    must_have_saved()
    local place = read(at("@/out.ckpt/identity")):match('"socket":"([^"]*)"')
    write(at("@/listen.py"), [[
import socket, sys, os, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(5)
open(sys.argv[2], "w").write("up")
s.settimeout(20)
while True:
    c, _ = s.accept()
    if c.recv(10) == b"mine": c.sendall(b"yours"); break]])
    os.execute(at("python3 @/listen.py " .. place .. " @/listens &"))
    await("the listener", function() return read(at("@/listens")) end)
    sh(at("rm -rf @/store @/go @/rc @/runner @/out/checkpoint-1"))
    start("", "", "--dir @/out --to @/store --continue-run --take-over")
    assert.are.equal("none", address())
    must_have_saved()
    local text = sh("python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX);" ..
      "s.connect(sys.argv[1]); s.sendall(b\"mine\"); print(s.recv(9).decode())' " .. place)
    assert.are.equal("yours\n", text)
    os.remove(place)
  end)
end)

describe("notify comes back in bounded time", function()
  it("seventy times from a run that is stopped", function()
    start()
    sh("kill -STOP " .. runner())
    write(at("@/many.sh"), at([[
      for i in $(seq 70); do
        ( CKPT_ANSWER_WAIT=0.5 timeout 30 CKPT notify --dir @/out loss=$i; echo $? >>@/codes ) &
      done
      wait]]))
    local text = sh(at("sh @/many.sh"))
    sh("kill -CONT " .. runner())
    has(text, "does not answer")
    local codes = read(at("@/codes"))
    assert.are.equal(70, select(2, codes:gsub("\n", "\n")))
    assert.are.equal(("1\n"):rep(70), codes, "124: it hung")
    text = sh(at("CKPT notify --dir @/out loss=1; echo $?"))
    has(text, "0")
    must_have_saved()
  end)

  it("when connecting itself has no room, and says that nobody answers", function()
    write(at("@/full.py"), [[
import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(0)
waiting = []
for i in range(5):
    c = socket.socket(socket.AF_UNIX); c.setblocking(False)
    try: c.connect(sys.argv[1])
    except BlockingIOError: pass
    waiting.append(c)
open(sys.argv[2], "w").write("up")
time.sleep(8)]])
    os.execute(at("python3 @/full.py @/full @/listens &"))
    await("the listener", function() return read(at("@/listens")) end)
    local asked = at("CKPT_SOCKET=@/full CKPT_ANSWER_WAIT=1 timeout 6 CKPT notify loss=1")
    local text = sh_ends(1, asked)
    has(text, "does not answer")
  end)

  it("while hundreds of connections stand idle", function()
    start()
    write(at("@/idle.py"), [[
import socket, sys, time
held = []
for i in range(400):
    c = socket.socket(socket.AF_UNIX); c.settimeout(5); c.connect(sys.argv[1]); held.append(c)
open(sys.argv[2], "w").write("up")
while True: time.sleep(1)]])
    os.execute(at("timeout 60 python3 @/idle.py " .. address() .. " @/idles & echo $! >@/idle.pid"))
    await("the idle ones", function() return read(at("@/idles")) end)
    for _ = 1, 5 do
      sh_ends(0, at("timeout 9 CKPT notify --dir @/out loss=1"))
    end
    sh("kill " .. read(at("@/idle.pid")))
    must_have_saved()
  end)
end)
