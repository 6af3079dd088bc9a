-- A store that somebody else can write to, and a directory in which links stand: a restore and a
-- start write nothing outside of the directory that was named.

local support = require "support"
local place = require "place"
local sh, sh_ends, must, has = place.sh, place.sh_ends, place.must, place.has
local ckpt, says = place.ckpt, place.says

local dir

local function write(path, text)
  sh(("mkdir -p \"$(dirname '%s')\""):format(path))
  support.write(dir .. "/" .. path, text)
end

--- All names below the directory with what the files hold.
local function listing(path)
  return (sh(([[cd '%s' && find . -printf '%%p %%y %%l\n' | sort
    find . -type f -exec sha256sum {} + | sort]]):format(path)))
end

--- The store `evil`: what the shipped tool makes of a checkpoint-1 with a link `logs` that leads to
--- home/.ssh, and of a file `latest` beside it; then the record of that is exchanged for the one
--- that another store has of the file `path`, with `text`: valid digests, and no race.
local function forge(path, text)
  write("A/checkpoint-1/DONE", "x")
  sh("mkdir -p home/.ssh && ln -s \"$PWD/home/.ssh\" A/checkpoint-1/logs")
  write("A/latest", "checkpoint-1")
  write("a.lua", "return {api=1, with={'latest'}}")
  must("sync A --to evil --marker DONE --settle 0 -p ./a.lua -q")
  write("B/zz-1/DONE", "x")
  write("B/" .. path, text)
  write("b.lua", ("return {api=1, unit={'zz-{step}/'}, with={'%s'}}"):format(path))
  must("sync B --to other --marker DONE --settle 0 -p ./b.lua -q")
  sh_ends(0, [[
    set -e
    with() { grep -o '"with":{[^}]*}' "$1"/.ckpt/log/*.json | grep -v '"files":0' | tail -n 1; }
    entry() { grep -l '"with":{' "$1"/.ckpt/log/*.json | tail -n 1; }
    record=$(with other | sed 's/^[^"]*//')
    term() { with "$1" | grep -o '"term":[0-9]*' | grep -o '[0-9]*'; }
    attempt() { ls "$1/.ckpt/with" | tail -n 1; }
    [ "$(attempt evil)" = "$(attempt other)" ] && [ "$(term evil)" = "$(term other)" ]
    rm -rf evil/.ckpt/with; cp -a other/.ckpt/with evil/.ckpt/with
    sed -i "s#\"with\":{[^}]*}#$record#" "$(entry evil)"
  ]])
  -- Who may write to a store can make all digests anew.
  sh_ends(0, "'" .. support.root .. "/spec/older/unsealed.sh' evil")
end

place.with_directory(function(made) dir = made end)

describe("a record of a store that puts a file", function()
  local outside

  --- verify calls it damage, and neither a restore nor a start writes anything of it.
  local function held(why)
    outside = listing("home")
    local text = says(5, "verify evil")
    has(text, why)
    text = says(5, "restore evil --dir new")
    has(text, why)
    -- The checkpoint itself is whole.
    text = says(0, "run --dir out --to evil --continue-run -- true")
    has(text, "NOT put back")
    assert.are.equal(outside, listing("home"))
    local _, found = sh("find new out -name planted | grep -q .")
    assert.are_not.equal(0, found)
    -- Without it the checkpoint is as good as it was.
    must("restore evil --dir alone --alone")
    assert.are.equal(outside, listing("home"))
  end

  it("below a link of its own checkpoint", function()
    forge("checkpoint-1/logs/planted", "the attacker's key")
    held("lies in it")
  end)

  it("into its own checkpoint", function()
    forge("checkpoint-1/planted", "x")
    held("lies in it")
  end)
end)

describe("a record of a store that puts a file into another checkpoint", function()
  it("is damage to who verifies it, too", function()
    forge("checkpoint-2/planted", "x")
    write("A/checkpoint-2/DONE", "x")
    must("sync A --to evil --marker DONE --settle 0 -p ./a.lua -q")
    for _, args in ipairs { "verify evil", "verify evil checkpoint-1",
      "restore evil checkpoint-1 --dir new" } do
      local text = says(5, args)
      has(text, "lies in checkpoint-2")
    end
    says(0, "verify evil checkpoint-2")
  end)
end)

describe("what a policy wants saved beside a checkpoint", function()
  it("is not read through a link: nothing from outside is taken in", function()
    write("secret/key", "the secret")
    write("secret/sub/key", "the secret")
    write("out/checkpoint-1/DONE", "x")
    write("out/notes", "of the run")
    sh("ln -s ../secret out/runs")
    write("p.lua", "return {api=1, with={'runs/key', 'runs/sub/key', 'runs/sub/**', 'notes'}}")
    local text = must("sync out --to store --marker DONE --settle 0 -p ./p.lua")
    has(text, "runs/key is not saved")
    has(text, "runs/sub is not saved")
    local _, found = sh("grep -rq 'the secret' store")
    assert.are_not.equal(0, found)
    must("restore store --dir new")
    assert.are.equal("of the run", support.read(dir .. "/new/notes"))
  end)
end)

describe("a file saved beside a checkpoint", function()
  before_each(function()
    write("out/checkpoint-1/DONE", "x")
    write("out/runs/sub/events", "of the run")
    write("p.lua", "return {api=1, with={'runs/**'}}")
    must("sync out --to store --marker DONE --settle 0 -p ./p.lua -q")
    sh("mkdir -p victim/sub new/runs && ln -s ../../victim/sub new/runs/sub")
  end)

  it("is not restored through a link that stands in the directory", function()
    local text = says(1, "restore store --dir new")
    has(text, "runs/sub/events")
    has(text, "symbolic link")
    assert.are.equal("", (sh("find victim -type f")))
    assert.are.equal("new/runs\nnew/runs/sub\n", (sh("find new -mindepth 1 | sort")))
    must("restore store --dir new --alone")
    must("restore store --dir other")
    assert.are.equal("of the run", support.read(dir .. "/other/runs/sub/events"))
  end)

  it("is not put back through one at a start, and the job starts", function()
    local text = says(0, "run --dir new --to store --continue-run -- true")
    has(text, "runs/sub/events")
    has(text, "NOT put back")
    assert.are.equal("", (sh("find victim -type f")))
    assert.are.equal("x", support.read(dir .. "/new/checkpoint-1/DONE"))
  end)
end)

describe("a store in the file system", function()
  before_each(function()
    write("src/checkpoint-1/model", "weights")
    write("src/checkpoint-1/DONE", "x")
  end)

  it("writes nothing through a link that stands where its own directory belongs", function()
    for _, name in ipairs { ".ckpt/tmp", ".ckpt" } do
      sh(("rm -rf store victim; mkdir -p store/.ckpt victim; rm -rf store/%s; " ..
        "ln -s \"$PWD/victim\" store/%s"):format(name, name))
      sh("touch -d 2001-01-01 victim")
      local text, code = ckpt("sync src --to store --marker DONE --settle 0 -q")
      assert.are_not.equal(0, code, text)
      has(text, "symbolic link")
      assert.are.equal("", (sh("find victim -mindepth 1; find victim -newermt 2002-01-01")))
    end
  end)

  it("writes nothing through any other link below its root, whoever works on it", function()
    write("p.lua", "return {api=1, with={'notes'}}")
    write("src/notes", "x")
    local names = { "tmp", "staging", "log", "with", "parts", "pins", "clearing", "cleared",
      "lease", "head", "../checkpoint-2" }
    local save = "sync src --to store --marker DONE --settle 0 -p ./p.lua -q"
    for _, name in ipairs(names) do
      sh("rm -rf store victim src/checkpoint-2; mkdir victim; echo theirs >victim/file")
      must(save)
      local to = (name == "lease" or name == "head") and "victim/file" or "victim"
      sh(("mkdir -p src/checkpoint-2 store/.ckpt; cp src/checkpoint-1/* src/checkpoint-2; " ..
        "rm -rf store/.ckpt/%s; ln -s \"$PWD/%s\" store/.ckpt/%s"):format(name, to, name))
      sh("touch -d 2001-01-01 victim victim/file")
      local said = ""
      for _, args in ipairs { save, "rm store checkpoint-1", "pin store checkpoint-1",
        "gc store --grace-delete 0s", "restore store --dir new" } do
        local text, code = ckpt(args)
        said = said .. ("%s: %d %s\n"):format(args, code, text)
        assert.is_true(code < 126, said)
      end
      assert.are.equal("victim/file\n", (sh("find victim -mindepth 1")), name .. "\n" .. said)
      assert.are.equal("theirs\n", support.read(dir .. "/victim/file"))
      assert.are.equal("", (sh("find victim -newermt 2002-01-01")), name .. "\n" .. said)
      sh("rm -rf new")
    end
  end)

  it("may itself be reached through links", function()
    sh("mkdir -p data/home/store; ln -s data/home home; ln -s home/store named")
    for _, where in ipairs { "home/new", "named" } do
      must(("sync src --to %s --marker DONE --settle 0 -q"):format(where))
      must("verify " .. where)
      sh("rm -rf out")
      must(("restore %s --dir out"):format(where))
      assert.are.equal("weights", support.read(dir .. "/out/checkpoint-1/model"))
    end
    sh_ends(0, "[ -L named ] && [ -d data/home/new/checkpoint-1 ]")
  end)
end)

describe("a manifest that is too large to be read", function()
  it("is a damaged checkpoint: the one before it is taken", function()
    sh("mkdir -p A/checkpoint-1 A/checkpoint-2 && touch A/checkpoint-1/DONE A/checkpoint-2/DONE")
    must("sync A --to store --marker DONE --settle 0 --run r -q")
    sh("truncate -s 1G store/checkpoint-2/.ckpt-manifest.json")
    local text = says(5, "verify store")
    has(text, "ok   checkpoint-1")
    has(text, "BAD  checkpoint-2")
    says(5, "restore store --dir B")
    says(0, "run --dir C --to store --run r -- test -d C/checkpoint-1")
  end)
end)
