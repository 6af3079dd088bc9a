-- sync, show, latest, plan, rm, pin, unpin: what they print, what they change, and how they end.

package.path = "./spec/?.lua;" .. package.path
local cjson = require "cjson"
local support = require "support"
local CKPT = support.runner

local dir

-- Standard output and standard error apart, and the exit code.
local function ckpt(args)
  local command = ("cd '%s' && '%s' %s 2>err.txt; printf '\\n%%s' $?"):format(dir, CKPT, args)
  local pipe = io.popen(command)
  local text, code = pipe:read("*a"):match("^(.*)\n(%d+)$")
  pipe:close()
  return text, tonumber(code), support.read(dir .. "/err.txt")
end

local function sh(command) return support.sh(("cd '%s' && { %s\n}"):format(dir, command)) end

local function has(text, part)
  assert.is_truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

-- One decoded object for each line.
local function objects(text)
  local list = {}
  for line in text:gmatch("[^\n]+") do list[#list + 1] = cjson.decode(line) end
  return list
end

-- Complete checkpoints as a framework leaves them, older than any quiet time.
local function save(...)
  for _, n in ipairs { ... } do
    sh(("mkdir -p out/checkpoint-%d; echo weights %d >out/checkpoint-%d/model.bin; " ..
      "echo '{}' >out/checkpoint-%d/trainer_state.json; sleep 0.02"):format(n, n, n, n))
  end
end

local function sync(args) return ckpt("sync out --to store --quiet 0 " .. (args or "")) end

-- Three commits in ./store.
local function fill()
  save(1, 2, 3)
  local _, code, err = sync()
  assert.are.equal(0, code, err)
end

-- Every name, size, time and byte below the test's directory.
local function snapshot()
  return sh("find . -path ./err.txt -prune -o -printf '%p %s %T@ %m\\n' | sort; " ..
    "find . -type f ! -name err.txt -print0 | sort -z | xargs -0 sha256sum")
end

-- Runs a command that must change nothing here.
local function harmless(args)
  ckpt("version") -- err.txt is there
  local before = snapshot()
  local text, code, err = ckpt(args)
  assert.are.equal(before, snapshot())
  return text, code, err
end

local function names(args)
  local found = {}
  for _, item in ipairs(objects((ckpt("ls --json store " .. (args or ""))))) do
    found[#found + 1] = item.dir
  end
  return table.concat(found, " ")
end

before_each(function() dir = support.directory() end)
after_each(function() os.execute("chmod -R u+w '" .. dir .. "'; rm -rf '" .. dir .. "'") end)

describe("sync", function()
  it("commits all that is complete, oldest first, and ends", function()
    save(1, 2, 3)
    local text, code, err = sync()
    assert.are.equal(0, code, err)
    assert.are.equal("", text)
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", names())
    has(err, "3 committed, newest checkpoint-3")
    assert.are.equal("", sh("diff -r out/checkpoint-2 store/checkpoint-2 | grep -v manifest"))
  end)

  it("knows the order of a copy, and of what was given to somebody else since", function()
    save(1, 2, 3)
    sh("mv out done; mkdir out; for n in 3 1 2; do cp -a done/checkpoint-$n out; sleep 0.02; " ..
      "done; chmod g-w out/checkpoint-2/*")
    local _, code, err = sync()
    assert.are.equal(0, code, err)
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", names())
    assert.are.equal("checkpoint-3\n", (ckpt("latest store")))
  end)

  it("does nothing the second time", function()
    fill()
    local text, code, err = sync("--json")
    assert.are.equal(0, code, err)
    assert.are.equal("", text)
    has(err, "0 committed, newest checkpoint-3")
  end)

  it("says each one with --json", function()
    save(1, 2)
    local list = objects((sync("--json")))
    assert.are.equal(2, #list)
    assert.are.equal("committed", list[1].result)
    assert.are.equal("checkpoint-1", list[1].unit)
    assert.are.equal(2, list[2].step)
  end)

  it("has code 4 where there is no checkpoint, or no directory, and makes none", function()
    sh("mkdir out; echo x >out/notes.txt")
    local _, code, err = sync()
    assert.are.equal(4, code, err)
    has(err, "no complete checkpoint")
    local _, none, said = ckpt("sync nowhere --to store")
    assert.are.equal(4, none)
    has(said, "nowhere")
    assert.are.equal("", sh("ls -d nowhere* 2>/dev/null"))
  end)

  it("names what nothing proves whole, saves the rest, and has code 3", function()
    save(1)
    sh("mkdir out/checkpoint-2; head -c 100 /dev/zero >out/checkpoint-2/model.bin")
    local _, code, err = sync()
    assert.are.equal(3, code, err)
    has(err, "checkpoint-2")
    assert.are.equal("checkpoint-1", names())
  end)

  it("never deletes, whatever the policy keeps", function()
    support.write(dir .. "/one.lua", "return { api = 1, keep = keep.last(1) }\n")
    save(1, 2, 3)
    local _, code, err = sync("-p ./one.lua -p default")
    assert.are.equal(0, code, err)
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", names())
    assert.are.equal(2, (select(2, ckpt("sync out --to store --max-delete 50%"))))
  end)

  it("has code 2 for a policy that is not there or does not load, and saves nothing", function()
    save(1)
    local _, code, err = sync("-p ./none.lua")
    assert.are.equal(2, code, err)
    has(err, "none.lua")
    support.write(dir .. "/bad.lua", "return { api = 1, keeep = 3 }\n")
    local _, bad, said = sync("-p ./bad.lua")
    assert.are.equal(2, bad, said)
    has(said, "bad.lua")
    local _, setting, text = sync("-o no_such_option=1")
    assert.are.equal(2, setting, text)
    has(text, "no_such_option")
    assert.are.equal("", sh("ls store 2>/dev/null"))
  end)

  it("only says what it would do with --dry-run", function()
    save(1)
    sync()
    save(2)
    sh("mkdir out/checkpoint-3; head -c 100 /dev/zero >out/checkpoint-3/model.bin")
    local text, code, err = harmless("sync out --to store --dry-run")
    assert.are.equal(3, code, err)
    has(text, "is there    checkpoint-1\n")
    has(text, "would save  checkpoint-2")
    has(text, "NOT PROVEN  checkpoint-3: ")
    local list = objects((harmless("sync out --to store -n --json")))
    assert.are.equal("there committed unproven",
      list[1].result .. " " .. list[2].result .. " " .. list[3].result)
    harmless("sync out --to elsewhere -n") -- nor is anything made where nothing was
    sh("rm -r out.ckpt")
    has((harmless("sync out --to store -n")), "is there    checkpoint-1\n")
    assert.are.equal(4, (select(2, harmless("sync nowhere --to store -n"))))
    assert.are.equal(11, (select(2, harmless("sync out --to store -n --run other"))))
  end)

  it("is refused while a run watches the directory", function()
    save(1)
    sh([[mkfifo go; ]] .. CKPT .. [[ run --dir out --to store -- sh -c 'touch up; read x <go' \
      >run.txt 2>&1 &
      until [ -e up ]; do sleep 0.02; done]])
    local _, code, err = sync()
    sh("echo >go; wait; sleep 0.1")
    assert.are.equal(11, code, err)
  end)
end)

describe("latest", function()
  it("prints the name, and with --uri where it is", function()
    fill()
    assert.are.equal("checkpoint-3\n", (harmless("latest store")))
    local uri = harmless("latest --uri store"):match("^file://(%S+)\n$")
    assert.are.equal("weights 3\n", support.read(uri .. "/model.bin"))
    assert.are.equal(3, objects((ckpt("latest store --json")))[1].step)
  end)

  it("is the one that was committed last, of all groups", function()
    sh("mkdir -p out/a out/b")
    for _, name in ipairs { "b/checkpoint-7", "a/checkpoint-2" } do
      sh(("mkdir -p out/%s; echo x >out/%s/model.bin; echo '{}' >out/%s/trainer_state.json")
        :format(name, name, name))
      assert.are.equal(0, (select(2, sync())))
      assert.are.equal(name .. "\n", (ckpt("latest store")))
    end
  end)

  it("has code 4 without a checkpoint and 10 without a store", function()
    sh("mkdir store")
    assert.are.equal(4, (select(2, ckpt("latest store"))))
    assert.are.equal(10, (select(2, ckpt("latest nowhere"))))
  end)
end)

describe("show", function()
  it("tells who wanted it, why, and where it is", function()
    fill()
    local text, code = harmless("show store checkpoint-2")
    assert.are.equal(0, code)
    for _, part in ipairs { "checkpoint checkpoint-2\n", "step       2\n", "files      2, 13 B\n",
      "\npolicy     ", "\nreason     ", "\nuri        file://" } do has(text, part) end
    has((ckpt("show store")), "checkpoint checkpoint-3\n")
  end)

  it("has each file with --json", function()
    fill()
    local text, code = harmless("show store --json")
    assert.are.equal(0, code)
    local all = cjson.decode(text)
    assert.are.equal("checkpoint-3", all.name)
    assert.are.equal(2, #all.files)
  end)

  it("has code 4 for a name that is not there", function()
    fill()
    for _, args in ipairs { "show store checkpoint-9", "show store checkpoint-9 --json" } do
      local text, code, err = ckpt(args)
      assert.are.equal(4, code, err)
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
    local text, code, err = harmless("plan store -p ./keep.lua --max-delete 100%")
    assert.are.equal(0, code, err)
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
    assert.are.equal(2, (select(2, ckpt("plan store -p ./keep.lua"))))
    assert.are.equal(2, (select(2, ckpt("plan store -p ./none.lua"))))
    assert.are.equal(2, (select(2, ckpt("plan store -p defualt"))))
  end)
end)

describe("rm", function()
  it("hides a checkpoint, and deletes its data when the grace is over", function()
    fill()
    local text, code, err = ckpt("rm store checkpoint-1")
    assert.are.equal(0, code, err)
    assert.are.equal("dropped checkpoint-1 (2 files, 13 B)\n", text)
    assert.are.equal("checkpoint-2 checkpoint-3", names())
    assert.are.equal("weights 1\n", support.read(dir .. "/store/checkpoint-1/model.bin"))
    local done = ckpt("rm store checkpoint-2 --grace-delete 0")
    has(done, "dropped checkpoint-2")
    has(done, "deleted checkpoint-2")
    assert.is_nil(support.read(dir .. "/store/checkpoint-2/model.bin"))
    assert.are.equal("checkpoint-3", names())
    assert.are.equal(0, (select(2, ckpt("verify store"))))
  end)

  it("refuses the newest one and says how, and takes all when told so", function()
    fill()
    local text, code, err = harmless("rm store checkpoint-3")
    assert.are.equal(11, code, err)
    assert.are.equal("", text)
    has(err, "--all")
    assert.are.equal(0, (select(2, ckpt("rm store --all --grace-delete 0"))))
    assert.are.equal("", names())
    assert.are.equal("", sh("find store -name model.bin"))
  end)

  it("only says what it would do with --dry-run", function()
    fill()
    local text, code = harmless("rm store checkpoint-1 --dry-run")
    assert.are.equal(0, code)
    assert.are.equal("would be dropped checkpoint-1 (2 files, 13 B)\n", text)
    harmless("rm store --all -n --grace-delete 0")
    local list = objects((harmless("rm store checkpoint-1 -n --json")))
    assert.is_true(list[1].dry_run)
    assert.are.equal("dropped", list[1].done)
  end)

  it("has code 4 for a name that is not there and 2 without a name", function()
    fill()
    local _, code, err = harmless("rm store checkpoint-9")
    assert.are.equal(4, code, err)
    has(err, "checkpoint-9")
    assert.are.equal(2, (select(2, harmless("rm store"))))
  end)
end)

describe("pins", function()
  it("keep a checkpoint until they are taken back", function()
    fill()
    local id, code, err = ckpt("pin store checkpoint-1 --for 7d")
    assert.are.equal(0, code, err)
    assert.is_truthy(id:match("^%x+\n$"), id)
    local _, refused, why = ckpt("rm store checkpoint-1")
    assert.are.equal(11, refused, why)
    has(why, "pinned")
    local list = objects((ckpt("plan store --json")))
    assert.are.equal("checkpoint-1", list[1].name)
    assert.are.equal(0, (select(2, ckpt("unpin store " .. id:match("%x+")))))
    assert.are.equal(0, (select(2, ckpt("rm store checkpoint-1"))))
  end)

  it("are all taken back by the checkpoint's name", function()
    fill()
    ckpt("pin store checkpoint-1")
    ckpt("pin store checkpoint-1 --json")
    assert.are.equal('{"removed":2}\n', (ckpt("unpin store checkpoint-1 --json")))
    local _, code, err = ckpt("unpin store checkpoint-1")
    assert.are.equal(4, code, err)
    has(err, "checkpoint-1")
  end)

  it("are not put for what is not there, nor by a dry run", function()
    fill()
    local _, code, err = harmless("pin store checkpoint-9")
    assert.are.equal(4, code, err)
    has(err, "checkpoint-9")
    local text = harmless("pin store checkpoint-1 -n")
    assert.are.equal("would pin checkpoint-1\n", text)
    assert.are.equal(4, (select(2, harmless("pin store checkpoint-9 -n"))))
  end)
end)

describe("restore --dry-run", function()
  it("prints the paths and makes nothing", function()
    fill()
    local text, code, err = harmless("restore store --dir back -n")
    assert.are.equal(0, code, err)
    assert.are.equal("back/checkpoint-3\n", text)
    has(err, "would restore checkpoint-3 (2 files, 13 B) to back")
    assert.are.equal(4, (select(2, harmless("restore store checkpoint-9 --dir back -n"))))
  end)

  it("foretells that something is in the way", function()
    fill()
    sh("mkdir -p back/checkpoint-3")
    local text, code, err = harmless("restore store --dir back -n")
    local _, real = ckpt("restore store --dir back")
    assert.are.equal(real, code, err)
    assert.are.equal("", text)
    has(err, "back/checkpoint-3")
  end)
end)

describe("output that cannot be written", function()
  it("is an error of every verb", function()
    fill()
    for _, verb in ipairs { "ls store", "show store", "latest store", "plan store", "version",
      "help", "show store --json" } do
      local _, code, err = ckpt(verb .. " >/dev/full")
      assert.are.equal(1, code, verb)
      has(err, "cannot write the output")
    end
  end)
end)

describe("every verb", function()
  local VERBS = { "run", "watch", "sync", "restore", "ls", "show", "latest", "verify", "why",
    "plan", "rm", "gc", "pin", "unpin", "mark", "bisect",
    "notify", "status", "exec", "version", "help" }

  it("has a help that begins with its usage, and is in the list", function()
    local list = ckpt("help")
    for _, verb in ipairs(VERBS) do
      local text, code = ckpt("help " .. verb)
      assert.are.equal(0, code)
      has(text, "usage: ckpt-lua " .. verb)
      assert.are.equal(text, (ckpt(verb .. " --help")))
      assert.is_truthy(list:match("\n  " .. verb .. " +%S"), verb)
      for line in text:gmatch("[^\n]+") do assert.is_true(#line <= 100, line) end
    end
  end)

  it("refuses an option that it does not have with code 2", function()
    for _, verb in ipairs(VERBS) do
      local _, code, err = ckpt(verb .. " --frobnicate")
      assert.are.equal(2, code, verb .. ": " .. err)
      has(err, "frobnicate")
    end
  end)
end)
