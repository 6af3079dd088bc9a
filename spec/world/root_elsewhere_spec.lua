-- Root restores and unpacks in a directory that belongs to somebody else, who moves things about
-- meanwhile: nothing that root makes lands where that user may not write. swapper.c is that user.

local support = require "support"
local place = require "place"
local sh, must, ckpt, says = place.sh, place.must_sh, place.ckpt, place.says
local CKPT = support.runner

-- Each call at the beginning, where directories are made and opened; then these many are left out.
local EACH, STEP, MOST = 24, 89, 3000
local NOT_STARTED = 125
local dir, swapped

-- A test that needs root, and a program for being another user.
local function test(what, body)
  it(what, function()
    if place.needs "test $(id -u) = 0 && setpriv --reuid 1234 --clear-groups true" then body() end
  end)
end

local function nothing_elsewhere(text)
  assert.are.equal("", (sh("find victim -mindepth 1 | head -n 3")), text)
end

local function victim() return (sh("find victim | sort")) end

--- Runs the command with a swap before one of its calls, then anew before another one, until it
--- ends before the swap. `where`: the directory and the beginning of the name that is swapped, and
--- `after`, a file: only calls from the time on when it stands are counted; `step`: of these, one;
--- `program`: instead of the runner; `env`: what it gets besides.
--- `prepare` makes what there is before, each time. How often there was a swap.
local function attack(where, prepare, args)
  local program = where.program or CKPT
  local k, swaps, before = 1, 0, nil
  while k < MOST do
    must(([[
      rm -rf home/* home/.[!.]* victim said && mkdir -p home/out victim
      %s
      chmod 755 . home home/out victim; chown -h 1234 home home/*
    ]]):format(prepare))
    before = before or victim()
    local text, code = sh(([[
      export SWAP_UID=1234 SWAP_IN="$PWD/%s" SWAP_NAME='%s' SWAP_AT=%d
      export SWAP_TO="$PWD/victim" SWAP_SAY="$PWD/said"
      export SWAP_OF='%s' CKPT_LUADIR='%s/lua' %s
      %s timeout 300 '%s' %s
    ]]):format(where[1], where[2], k,
      program:match("[^/]+$"), support.root,
      where.after and ("SWAP_AFTER='%s/%s'"):format(dir, where.after) or where.env or "",
      swapped, program, args))
    local story = ("call %d: %s ended with %s\n%s"):format(k, args, code, text)
    assert.are.equal(before, victim(), story)
    assert.is_true(code < 100 or code == NOT_STARTED, story)
    if not support.read(dir .. "/said") then break end
    swaps = swaps + 1
    k = k + (where.step or k < EACH and 1 or STEP)
  end
  assert.is_true(k < MOST)
  return swaps
end

--- A directory on another file system; nil where there is none.
local function other_device()
  local _, code = support.sh(("[ -w /dev/shm ] && ! [ \"$(stat -c %%d /dev/shm)\" = " ..
    "\"$(stat -c %%d '%s')\" ]"):format(dir))
  return code == 0 and "/dev/shm/" .. dir:match("[^/]+$") or nil
end

before_each(function()
  dir = place.begin()
  must([[mkdir -p src/checkpoint-1/sub home
    echo planted >src/checkpoint-1/zz; echo deep >src/checkpoint-1/sub/a
    ln -s zz src/checkpoint-1/link; ln -s checkpoint-1 src/newest; echo x >src/checkpoint-1/DONE
  ]])
end)
after_each(function()
  os.execute(("rm -rf '%s' '/dev/shm/%s'"):format(dir, dir:match("[^/]+$")))
end)

local function build() swapped = place.preload "spec/world/swapper.c" end

local function save(to)
  must(("'%s' sync src --to %s --marker DONE --settle 0 -q"):format(CKPT, to or "store"))
end

describe("root, in the directory of another user,", function()
  test("restores into what it made itself, whatever takes its name", function()
    build()
    save()
    local args = "restore store --dir home/out"
    assert.is_true(attack({ "home/out", ".ckpt-restore" }, "", args) > 20)
    assert.is_true(attack({ "home", "out" }, "", args) > 20)
  end)

  test("uses no staging that stands there: a directory of theirs, or a link", function()
    build()
    save()
    local args = "restore store --dir home/out"
    attack({ "home/out/.ckpt-restore", "" }, "install -d -o 1234 home/out/.ckpt-restore", args)
    for _, plant in ipairs { "mkdir %s", "ln -s \"$PWD/victim\" %s", "echo x >%s" } do
      must("rm -rf home/out victim; mkdir home/out victim; chmod 755 . home; chown 1234 home/out")
      must(("setpriv --reuid 1234 --clear-groups sh -c '%s'")
        :format(plant:format("home/out/.ckpt-restore")))
      local text = says(0, args)
      nothing_elsewhere(text)
      assert.are.equal("planted\n", support.read(dir .. "/home/out/checkpoint-1/zz"))
      must("[ \"$(stat -c %u home/out/.ckpt-restore)\" = 1234 ]") -- and it is left alone
    end
  end)

  test("unpacks into what it made itself", function()
    build()
    must(("'%s' pack src a.tar"):format(CKPT))
    local args = "unpack a.tar --dir home/deep/o"
    assert.is_true(attack({ "home/deep", ".o." }, "install -d -o 1234 home/deep", args) > 20)
    assert.is_true(attack({ "home", "deep" }, "mkdir home/deep", args) > 20)
  end)

  test("is not sent elsewhere by a link of that user: it is told, and what to do", function()
    ckpt("sync src --to store --marker DONE --settle 0 -q")
    ckpt("pack src a.tar")
    sh([[mkdir -p victim; ln -s ../victim home/out; chown -h 1234 home/out]])
    for _, args in ipairs { "restore store --dir home/out", "restore store --dir home/out/deeper",
      "run --dir home/out --to store --continue-run -- true", "unpack a.tar --dir home/out/o" } do
      local text, code = ckpt(args)
      assert.are_not.equal(0, code, text)
      assert.is_truthy(text:find("user 1234", 1, true), text)
      nothing_elsewhere(text)
    end
    sh("rm home/out; ln -s ../victim home/out") -- a link of its own leads where it leads
    says(0, "restore store --dir home/out")
    assert.are.equal("planted\n", support.read(dir .. "/victim/checkpoint-1/zz"))
  end)

  test("follows links of who is outside of its user namespace, where it is that user", function()
    local text, code = sh(("setpriv --reuid 1234 --regid 1234 --clear-groups " ..
      "unshare -r test -x '%s'"):format(CKPT))
    if code ~= 0 then return pending("no user namespaces: " .. text) end
    save()
    must("mkdir home/out; chown 1234 home/out; ln -s home link; chmod -R a+rX .")
    text = must(("setpriv --reuid 1234 --regid 1234 --clear-groups unshare -r '%s' " ..
      "restore store --dir link/out"):format(CKPT))
    assert.are.equal("planted\n", support.read(dir .. "/home/out/checkpoint-1/zz"), text)
  end)

  test("keeps nothing in a store or a state that a link of that user leads to", function()
    must([[mkdir victim home/out; ln -s ../victim home/to; ln -s ../victim home/out.ckpt
      chown -h 1234 home home/*]])
    for _, args in ipairs { "sync src --to home/to --marker DONE --settle 0",
      "sync src --to home/to/deeper --marker DONE --settle 0", "gc home/to",
      "rm home/to checkpoint-1", "verify home/to/deeper",
      "run --dir home/out --to store -- true" } do
      local text, code = ckpt(args)
      assert.are_not.equal(0, code, args .. "\n" .. text)
      assert.is_truthy(text:find("user 1234", 1, true), args .. "\n" .. text)
      nothing_elsewhere(args .. "\n" .. text)
    end
    must("rm home/to; ln -s ../victim home/to") -- a link of its own leads where it leads
    save("home/to")
    must("[ -f victim/checkpoint-1/zz ]")
  end)

  test("saves into the store that it found, whatever takes its name", function()
    build()
    local args = "sync src --to home/out/store --marker DONE --settle 0"
    local made = "mkdir -p home/out/store"
    assert.is_true(attack({ "home/out", "store" }, made, args) > 20)
    assert.is_true(attack({ "home", "out" }, made, args) > 20)
    made = "install -d -o 1234 home/out/store/.ckpt home/out/store/.ckpt/tmp"
    assert.is_true(attack({ "home/out/store/.ckpt", "tmp" }, made, args) > 20)
  end)

  test("keeps its state in the directory that it found", function()
    build()
    save()
    -- There is no other task to be waited for.
    local args = "run --dir home/out --to store --continue-run --tasks 1 -- true"
    local first = "TORCHELASTIC_RUN_ID=spec RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2"
    for _, env in ipairs { "", first } do -- the first of several tells them that it is ready
      assert.is_true(attack({ "home", "out.ckpt", env = env }, "", args) > 20)
    end
  end)

  -- The trainer makes a temporary one, waits till it is known as that, and ends: then it goes.
  test("removes in the directory that it found, whatever takes its name", function()
    build()
    support.write(dir .. "/temp.lua", "return { api = 1, markers = { temp = 'TEMP' } }")
    support.write(dir .. "/train.sh", [[
      set -e
      mkdir -p home/out/sub/checkpoint-1
      for name in a TEMP DONE; do echo x >home/out/sub/checkpoint-1/$name; done
      until grep -q temporary "$1"/why.jsonl; do sleep 0.01; done
      touch home/end
    ]])
    local args = "run --dir home/out --to store --policy temp.lua --marker DONE --settle 0" ..
      " --state %s -- sh train.sh %s"
    local made = "rm -rf store %s; mkdir -p victim/checkpoint-1 victim/sub/checkpoint-1" ..
      "; touch victim/checkpoint-1/a victim/sub/checkpoint-1/a"
    local function removes(where, state)
      where.after, where.step = "home/end", 3
      assert.is_true(attack(where, made:format(state), args:format(state, state)) > 10)
    end
    removes({ "home/out", "sub" }, "home/state")
    removes({ "home", "out" }, "home/state")
    local other = other_device() -- to which there is no rename: it is removed where it stands
    if other then removes({ "home/out", "sub" }, other) end
  end)

  test("brings and copies trees into the directory that it found, whatever takes a name", function()
    build()
    support.write(dir .. "/tree.lua", [[
      local store, how = require("ckpt").store, arg[1]
      local merge, uri = arg[2] == "merge", "file://" .. arg[3]
      local job = how == "upload" and store.upload({ dir = "src", uri = uri })
        or how == "copy" and store.copy({ from = "src", to = "home/out/tree", merge = merge })
        or store.download({ uri = uri, dir = "home/out/tree", merge = merge })
      local ok, text = job:wait()
      if not ok then error(text, 0) end
    ]])
    local program = support.build .. "/libexec/ckpt-script"
    local function trees(where, made, how)
      where.program = program
      made = "echo x >victim/mine; mkdir victim/sub; echo x >victim/sub/mine; " .. made
      assert.is_true(attack(where, made, ("tree.lua %s '%s/store'"):format(how, dir)) > 5)
    end
    must("mv src/checkpoint-1/* src/; rm -r src/checkpoint-1 src/newest")
    must(("CKPT_LUADIR='%s/lua' '%s' tree.lua upload new '%s/store'")
      :format(support.root, program, dir))
    local there = "install -d -o 1234 home/out/tree home/out/tree/sub; chown -R 1234 home/out"
    trees({ "home/out", ".tree.ckpt-" }, "", "download new")
    trees({ "home/out/tree", "sub", step = 4 }, there, "download merge")
    trees({ "home/out", ".tree.ckpt-" }, "", "copy new")
    trees({ "home/out/tree", "sub", step = 4 }, there, "copy merge")
    trees({ "home", "out" }, "", "copy new")
  end)
end)
