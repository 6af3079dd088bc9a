--- Guards the targets that play for minutes: one that played nothing, or less than was asked for,
--- ends with a status that is not 0, and says why.

local support = require "support"

describe("a target that played nothing", function()
  local dir

  --- A directory of links to all programs of this machine but those in `without`.
  local function path_without(without)
    local bin = dir .. "/bin"
    local out, code = support.sh("mkdir '" .. bin .. "'; for d in /usr/local/bin /usr/bin /bin " ..
      "/usr/sbin /sbin; do find -H $d -maxdepth 1 ! -type d -exec ln -sf -t '" .. bin
      .. "' {} +; done")
    assert.are.equal(0, code, out)
    for _, name in ipairs(without) do os.remove(bin .. "/" .. name) end
    return bin
  end

  --- Runs what a target runs. Returns what it printed, its last line and its exit code.
  local function play(environment, command)
    local out, code = support.sh(("unset MAKEFLAGS MAKELEVEL; env %s CKPT_LUA='%s' CKPT_BUILD='%s' "
      .. "timeout 60 %s"):format(environment, support.runner, support.build, command))
    return out, out:gsub("\n*$", ""):match("([^\n]*)$"), code
  end

  --- It ends with 1, and `reason` was said.
  local function is_red(environment, command, reason)
    local out, _, code = play(environment, command)
    assert.are_not.equal(0, code, out)
    assert.truthy(out:find(reason, 1, true), out)
  end

  --- So far as the tally tells: nothing passed or failed, one file was skipped.
  local function is_skipped(environment, command, reason)
    local out, last, code = play(environment, command)
    assert.are.equal("0 passed, 0 failed, 1 skipped", last, out)
    assert.are.equal(1, code)
    assert.truthy(out:find("# SKIP " .. reason, 1, true), out)
  end

  support.with_directory(function(made) dir = made end)

  it("is not green: each target goes through what counts", function()
    local counts = { "spec/run_tests ", "spec/fuzz/run ", "spec/fuzz/tree.sh ", "examples/demo.sh",
      "spec/contract/list.lua", "spec/contract/mutants.lua" }
    local plain = { all = true, setup = true, check = true, ["test-long"] = true,
      install = true, uninstall = true, clean = true, -- these measure, and judge nothing:
      ["bench-put"] = true, ["bench-log"] = true, ["bench-policy"] = true,
      ["bench-replay"] = true, ["bench-ranks"] = true }
    local seen = 0
    local help = support.sh("unset MAKEFLAGS MAKELEVEL; make -s SETUP=no help")
    for target in ("\n" .. help):gmatch("\n([%w-]+):") do
      if not plain[target] then
        local out = support.sh("unset MAKEFLAGS MAKELEVEL; make -n SETUP=no T=x " .. target
          .. " | grep -E 'spec/(run|fuzz/(run|tree)|contract)|examples/demo'")
        local counted = false
        for _, what in ipairs(counts) do counted = counted or out:find(what, 1, true) ~= nil end
        assert.is_true(counted, target .. " is run by nothing that counts")
        -- A status that is made good.
        assert.falsy(out:find("|| [", 1, true) or out:find("|| :", 1, true), out)
        seen = seen + 1
      end
    end
    assert.is_true(seen > 20)
  end)

  it("is skipped, and not green, without the servers that it needs", function()
    if support.sanitized then return pending("the plain build runs this one") end
    for _, script in ipairs { "net/net.sh", "store/grace.sh", "zombie/s3.sh", "ranks/s3.sh" } do
      is_skipped("XDG_CACHE_HOME=" .. dir, "spec/run_tests --shown spec/" .. script,
        "versitygw.sh: there is no")
    end
    is_skipped("TARGET=s3 XDG_CACHE_HOME=" .. dir, "spec/run_tests --shown spec/crash/crash.sh",
      "versitygw.sh: there is no")
  end)

  it("is skipped, and not green, without a program that it needs", function()
    if support.sanitized then return pending("the plain build runs this one") end
    local path = "PATH='" .. path_without { "strace", "linux.uml", "valgrind" } .. "'"
    is_skipped(path, "spec/run_tests --shown spec/crash/kill.sh", "there is no strace")
    is_skipped(path, "spec/run_tests --shown spec/zombie/zombie.sh", "there is no strace")
    is_red(path, "spec/run_tests --shown spec/crash/crash.sh", "strace is needed")
    if support.sh("id -u"):match("^0\n") then
      is_skipped(path .. " SETUP=no", "spec/run_tests --shown spec/power/power.sh",
        "it needs User-Mode Linux")
      is_skipped(path .. " SETUP=no", "spec/run_tests --shown spec/nfs/nfs.sh",
        "it needs User-Mode Linux and NFS")
    end
    -- All that it is made of is there, and make finds nothing to do.
    is_red(path, "make -s SETUP=no VALGRIND=buf valgrind", "valgrind: skipped")
  end)

  it("is red where it was asked to play nothing, or more than there is", function()
    is_red("KILLS=0 CHECKPOINTS=0 RANKS=1", "spec/run_tests --shown spec/ranks/ranks.py",
      "nothing was played")
    is_red("", "luajit spec/contract/mutants.lua --count 0", "0 items with a mutant")
    is_red("", "luajit spec/contract/mutants.lua --part none --item 1", "")
    is_red("", "make -s SETUP=no VALGRIND=no_such_test valgrind", "not each of these is a test")
    is_red("", "spec/run_tests --shown", "0 passed, 0 failed, 0 skipped")
  end)

  it("is red where the fuzzer knows no target of that name, and says which it knows", function()
    support.write(dir .. "/fuzz", "#!/bin/sh\necho 'FUZZ_TARGET names one of: json uri'\n")
    support.sh("chmod +x " .. dir .. "/fuzz")
    is_red("", ("spec/fuzz/run %s/fuzz %s 1 logs"):format(dir, dir),
      'fuzz: no target "logs"; there are: json uri')
    is_red("", "spec/fuzz/run /bin/true " .. dir .. " 1", "true names no target")
  end)

  it("is red where the fuzzer has run no input", function()
    is_red("", "spec/fuzz/run /bin/true " .. dir .. " 1 manifest", "NOTHING WAS RUN")
    local page = dir .. "/page.md"
    support.write(page, "| `make fuzz-tree` | trees | 7 seeds in all |\n")
    is_red("", "spec/fuzz/tree.sh /bin/true 0 " .. page, "NOTHING WAS RUN")
    is_red("", "spec/fuzz/tree.sh /bin/true 3 " .. page, "or was not played; again: SEED=8 COUNT=3")
    assert.truthy(support.read(page):find(" 7 seeds in all", 1, true))
  end)
end)
