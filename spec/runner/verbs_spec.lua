-- sync, show, latest, plan, rm, pin, unpin: what they print, what they change, and how they end.

local cjson = require "cjson"
local place = require "place"
local support = require "support"
local sh, has, ckpt, ends = place.sh, place.has, place.apart, place.ends
local objects = place.objects
local CKPT = support.runner

local dir

local function save(...) place.save("out", ...) end

local function sync(code, args)
  return ends(code, "sync out --to store --settle 0 " .. (args or ""))
end

-- Three commits in ./store.
local function fill()
  save(1, 2, 3)
  sync(0)
end

-- Every name, size, time and byte below the test's directory.
local function snapshot()
  return sh("find . -path ./err.txt -prune -o -printf '%p %s %T@ %m\\n' | sort; " ..
    "find . -type f ! -name err.txt -print0 | sort -z | xargs -0 sha256sum")
end

-- Runs a command that must change nothing here, and end with this code.
local function harmless(code, args)
  ckpt("version") -- err.txt is there
  local before = snapshot()
  local text, err = ends(code, args)
  assert.are.equal(before, snapshot())
  return text, err
end

local function names(args) return place.listed("store", args) end

place.with_directory(function(made) dir = made end)

describe("sync", function()
  it("commits all that is complete, oldest first, and ends", function()
    save(1, 2, 3)
    local text, err = sync(0)
    assert.are.equal("", text)
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", names())
    has(err, "3 committed, newest checkpoint-3")
    assert.are.equal("", sh("diff -r out/checkpoint-2 store/checkpoint-2 | grep -v manifest"))
  end)

  it("knows the order of a copy, and of what was given to somebody else since", function()
    save(1, 2, 3)
    sh("mv out done; mkdir out; for n in 3 1 2; do cp -a done/checkpoint-$n out; sleep 0.02; " ..
      "done; chmod g-w out/checkpoint-2/*")
    sync(0)
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", names())
    assert.are.equal("checkpoint-3\n", (ckpt("latest store")))
  end)

  it("does nothing the second time", function()
    fill()
    local text, err = sync(0, "--json")
    assert.are.equal("", text)
    has(err, "0 committed, newest checkpoint-3")
  end)

  it("says each one with --json", function()
    save(1, 2)
    local list = objects((sync(0, "--json")))
    assert.are.equal(2, #list)
    assert.are.equal("committed", list[1].result)
    assert.are.equal("checkpoint-1", list[1].unit)
    assert.are.equal(2, list[2].step)
  end)

  it("says that there is no checkpoint, and has code 4 where there is no directory", function()
    sh("mkdir out; echo x >out/notes.txt")
    local _, err = sync(0)
    has(err, "no complete checkpoint")
    has(err, "nothing to save")
    _, err = ends(4, "sync out --to store --require-commit")
    has(err, "no complete checkpoint")
    local _, said = ends(4, "sync nowhere --to store")
    has(said, "nowhere")
    assert.are.equal("", sh("ls -d nowhere* 2>/dev/null"))
  end)

  it("names what nothing proves whole, saves the rest, and has code 3", function()
    save(1)
    sh("mkdir out/checkpoint-2; head -c 100 /dev/zero >out/checkpoint-2/model.bin")
    local _, err = sync(3)
    has(err, "checkpoint-2")
    assert.are.equal("checkpoint-1", names())
  end)

  it("never deletes, whatever the policy keeps", function()
    support.write(dir .. "/one.lua", "return { api = 1, keep = keep.last(1) }\n")
    save(1, 2, 3)
    sync(0, "-p ./one.lua -p default")
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", names())
    ends(2, "sync out --to store --max-delete 50%")
  end)

  it("has code 2 for a policy that is not there or does not load, and saves nothing", function()
    save(1)
    local _, err = sync(2, "-p ./none.lua")
    has(err, "none.lua")
    support.write(dir .. "/bad.lua", "return { api = 1, keeep = 3 }\n")
    local _, said = sync(2, "-p ./bad.lua")
    has(said, "bad.lua")
    local _, text = sync(2, "-o no_such_option=1")
    has(text, "no_such_option")
    assert.are.equal("", sh("ls store 2>/dev/null"))
  end)

  it("only says what it would do with --dry-run", function()
    save(1)
    sync(0)
    save(2)
    sh("mkdir out/checkpoint-3; head -c 100 /dev/zero >out/checkpoint-3/model.bin")
    local text = harmless(3, "sync out --to store --dry-run")
    has(text, "is there    checkpoint-1\n")
    has(text, "would save  checkpoint-2")
    has(text, "NOT PROVEN  checkpoint-3: ")
    local list = objects((harmless(3, "sync out --to store -n --json")))
    assert.are.equal("there committed unproven",
      list[1].result .. " " .. list[2].result .. " " .. list[3].result)
    harmless(3, "sync out --to elsewhere -n") -- nor is anything made where nothing was
    sh("rm -r out.ckpt")
    has((harmless(3, "sync out --to store -n")), "is there    checkpoint-1\n")
    harmless(4, "sync nowhere --to store -n")
    harmless(11, "sync out --to store -n --run other")
  end)

  it("is refused while a run watches the directory", function()
    save(1)
    sh([[mkfifo go; ]] .. CKPT .. [[ run --dir out --to store -- sh -c 'touch up; read x <go' \
      >run.txt 2>&1 &
      until [ -e up ]; do sleep 0.02; done]])
    local _, code, err = ckpt("sync out --to store --settle 0")
    sh("echo >go; wait; sleep 0.1")
    assert.are.equal(11, code, err)
  end)
end)

describe("latest", function()
  it("prints the name, and with --uri where it is", function()
    fill()
    assert.are.equal("checkpoint-3\n", (harmless(0, "latest store")))
    local uri = harmless(0, "latest --uri store"):match("^file://(%S+)\n$")
    assert.are.equal("weights 3\n", support.read(uri .. "/model.bin"))
    assert.are.equal(3, objects((ckpt("latest store --json")))[1].step)
  end)

  it("is the one that was committed last, of all groups", function()
    sh("mkdir -p out/a out/b")
    for _, name in ipairs { "b/checkpoint-7", "a/checkpoint-2" } do
      sh(("mkdir -p out/%s; echo x >out/%s/model.bin; echo '{}' >out/%s/trainer_state.json")
        :format(name, name, name))
      sync(0)
      assert.are.equal(name .. "\n", (ckpt("latest store")))
    end
  end)

  it("has code 4 without a checkpoint and 10 without a store", function()
    sh("mkdir store")
    ends(4, "latest store")
    ends(10, "latest nowhere")
  end)
end)

describe("show", function()
  it("tells who wanted it, why, and where it is", function()
    fill()
    local text = harmless(0, "show store checkpoint-2")
    for _, part in ipairs { "checkpoint checkpoint-2\n", "step       2\n", "files      2, 13 B\n",
      "\npolicy     ", "\nreason     ", "\nuri        file://" } do has(text, part) end
    has((ckpt("show store")), "checkpoint checkpoint-3\n")
  end)

  it("has each file with --json", function()
    fill()
    local text = harmless(0, "show store --json")
    local all = cjson.decode(text)
    assert.are.equal("checkpoint-3", all.name)
    assert.are.equal(2, #all.files)
  end)

  it("has code 4 for a name that is not there", function()
    fill()
    for _, args in ipairs { "show store checkpoint-9", "show store checkpoint-9 --json" } do
      local text, err = ends(4, args)
      assert.are.equal("", text)
      has(err, "checkpoint-9")
    end
  end)
end)

describe("plan", function()
  local function policy(keep)
    support.write(dir .. "/keep.lua", ("return { api = 1, keep = %s }\n"):format(keep))
  end

  it("says what would go, why, and what it frees, and changes nothing", function()
    fill()
    policy("keep.last(1)")
    local text = harmless(0, "plan store -p ./keep.lua --max-delete 100%")
    assert.is_truthy(text:match("\ndrop +checkpoint%-1 +13 B +in 24 h  "), text)
    assert.is_truthy(text:match("\nkeep +checkpoint%-3 +13 B +%-  "), text)
    has(text, "1 stays, 2 would be dropped (26 B)")
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", names())
  end)

  it("is one JSON object for each checkpoint", function()
    fill()
    policy("keep.last(1)")
    local list = objects((ckpt("plan store -p ./keep.lua --json")))
    assert.are.equal(3, #list)
    assert.are.equal("drop", list[1].verdict)
    assert.are.equal("limited", list[2].verdict) -- a pass drops one of three
    assert.are.equal("keep", list[3].verdict)
    assert.are.equal(86400, list[1].deleted_in_s)
    assert.are.equal(cjson.null, list[3].deleted_in_s)
  end)

  it("keeps all as shipped", function()
    fill()
    for _, item in ipairs(objects((ckpt("plan store --json")))) do
      assert.are.equal("keep", item.verdict)
    end
  end)

  it("has code 2 for a policy that does not load", function()
    fill()
    policy("keep.lats(1)")
    ends(2, "plan store -p ./keep.lua")
    ends(2, "plan store -p ./none.lua")
    ends(2, "plan store -p defualt")
  end)
end)

describe("rm", function()
  it("hides a checkpoint, and deletes its data when the grace is over", function()
    fill()
    local text = ends(0, "rm store checkpoint-1")
    assert.are.equal("dropped checkpoint-1 (2 files, 13 B)\n", text)
    assert.are.equal("checkpoint-2 checkpoint-3", names())
    assert.are.equal("weights 1\n", support.read(dir .. "/store/checkpoint-1/model.bin"))
    local done = ckpt("rm store checkpoint-2 --grace-delete 0")
    has(done, "dropped checkpoint-2")
    has(done, "deleted checkpoint-2")
    assert.is_nil(support.read(dir .. "/store/checkpoint-2/model.bin"))
    assert.are.equal("checkpoint-3", names())
    ends(0, "verify store")
  end)

  it("refuses the newest one and says how, and takes all when told so", function()
    fill()
    local text, err = harmless(11, "rm store checkpoint-3")
    assert.are.equal("", text)
    has(err, "--all")
    ends(0, "rm store --all --grace-delete 0")
    assert.are.equal("", names())
    assert.are.equal("", sh("find store -name model.bin"))
  end)

  it("only says what it would do with --dry-run", function()
    fill()
    local text = harmless(0, "rm store checkpoint-1 --dry-run")
    assert.are.equal("would be dropped checkpoint-1 (2 files, 13 B)\n", text)
    harmless(0, "rm store --all -n --grace-delete 0")
    local list = objects((harmless(0, "rm store checkpoint-1 -n --json")))
    assert.is_true(list[1].dry_run)
    assert.are.equal("dropped", list[1].done)
  end)

  it("has code 4 for a name that is not there and 2 without a name", function()
    fill()
    local _, err = harmless(4, "rm store checkpoint-9")
    has(err, "checkpoint-9")
    harmless(2, "rm store")
  end)
end)

describe("pins", function()
  it("keep a checkpoint until they are taken back", function()
    fill()
    local id = ends(0, "pin store checkpoint-1 --for 7d")
    assert.is_truthy(id:match("^%x+\n$"), id)
    local _, why = ends(11, "rm store checkpoint-1")
    has(why, "pinned")
    local list = objects((ckpt("plan store --json")))
    assert.are.equal("checkpoint-1", list[1].name)
    ends(0, "unpin store " .. id:match("%x+"))
    ends(0, "rm store checkpoint-1")
  end)

  it("are all taken back by the checkpoint's name", function()
    fill()
    ckpt("pin store checkpoint-1")
    ckpt("pin store checkpoint-1 --json")
    assert.are.equal('{"removed":2}\n', (ckpt("unpin store checkpoint-1 --json")))
    local _, err = ends(4, "unpin store checkpoint-1")
    has(err, "checkpoint-1")
  end)

  it("are not put for what is not there, nor by a dry run", function()
    fill()
    local _, err = harmless(4, "pin store checkpoint-9")
    has(err, "checkpoint-9")
    local text = harmless(0, "pin store checkpoint-1 -n")
    assert.are.equal("would pin checkpoint-1\n", text)
    harmless(4, "pin store checkpoint-9 -n")
  end)
end)

describe("restore --dry-run", function()
  it("prints the paths and makes nothing", function()
    fill()
    local text, err = harmless(0, "restore store --dir back -n")
    assert.are.equal("back/checkpoint-3\n", text)
    has(err, "would restore checkpoint-3 (2 files, 13 B) to back")
    harmless(4, "restore store checkpoint-9 --dir back -n")
  end)

  it("foretells that something is in the way", function()
    fill()
    sh("mkdir -p back/checkpoint-3")
    local text, err = harmless(1, "restore store --dir back -n")
    ends(1, "restore store --dir back")
    assert.are.equal("", text)
    has(err, "back/checkpoint-3")
  end)
end)

describe("output that cannot be written", function()
  it("is an error of every verb", function()
    fill()
    for _, verb in ipairs { "ls store", "show store", "latest store", "plan store", "version",
      "help", "show store --json" } do
      local _, err = ends(1, verb .. " >/dev/full")
      has(err, "cannot write the output")
    end
  end)
end)

describe("every verb", function()
  -- As the runner itself lists them.
  local VERBS = {}
  setup(function()
    local list = support.sh("'" .. CKPT .. "' help")
    for name in list:gmatch("\n  (%l+) +%S") do VERBS[#VERBS + 1] = name end
    assert(#VERBS > 20)
  end)

  it("has a help that begins with its usage, and is in the list", function()
    local list = ckpt("help")
    for _, verb in ipairs(VERBS) do
      local text = ends(0, "help " .. verb)
      has(text, "usage: ckpt-lua " .. verb)
      assert.are.equal(text, (ckpt(verb .. " --help")))
      assert.is_truthy(list:match("\n  " .. verb .. " +%S"), verb)
      for line in text:gmatch("[^\n]+") do assert.is_true(#line <= 100, line) end
    end
  end)

  -- The verbs in the first column of a page's table of them.
  local function rows(page)
    local found = {}
    local text = assert(support.read(page):match("\n| verb | what |\n|[-|]+|\n(.-)\n\n"))
    for row in text:gmatch("[^\n]+") do
      for name in row:match("^|(.-[^\\])|"):gmatch("`(%l+)") do found[name] = true end
    end
    return found
  end

  it("stands in the table of the page about the commands, which has no other", function()
    local found = rows("docs/commands.md")
    for _, verb in ipairs(VERBS) do
      assert.is_truthy(found[verb], verb .. " is not in docs/commands.md")
      found[verb] = nil
    end
    assert.is_nil(next(found))
  end)

  it("stands in the README: in its table, or has a part of its own", function()
    local found, page = rows("README.md"), support.read("README.md")
    for _, verb in ipairs { "run", "watch" } do
      has(page, "ckpt-lua " .. verb .. " --dir")
      found[verb] = true
    end
    found.version, found.help = true, true
    for _, verb in ipairs(VERBS) do
      assert.is_truthy(found[verb], verb .. " is not in README.md")
    end
  end)

  it("refuses an option that it does not have with code 2", function()
    for _, verb in ipairs(VERBS) do
      local _, err = ends(2, verb .. " --frobnicate")
      has(err, "frobnicate")
    end
  end)
end)
