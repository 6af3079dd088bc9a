-- Guards spec/run_tests: what failed, crashed, hung or never ran must not look green.

local support = require "support"
local sh = support.sh

describe("the tally of the tests", function()
  local dir

  support.with_directory(function(made) dir = made end)

  local function file(name, text)
    local path = dir .. "/" .. name
    support.write(path, text)
    sh("chmod +x " .. path)
    return path
  end

  local function script(name, text) return file(name, "#!/bin/bash\n" .. text) end

  -- Runs the files; returns the last line, the status and all that was printed.
  local function run(...)
    local out, status = sh("AGAIN= TEST_TIMEOUT=1 spec/run_tests " .. table.concat({ ... }, " "))
    return out:match("([^\n]*)\n$"), status, out
  end

  it("adds up programs, scripts and specs", function()
    local last, status = run(
      script("test_a", "echo 1..2; echo ok 1 - x; echo ok 2 - y"),
      script("b_spec.sh", "echo ok 1 - x; echo 1..1"),
      file("c_spec.lua", "it('holds', function() end)"))
    assert.equal("4 passed, 0 failed, 0 skipped", last)
    assert.equal(0, status)
  end)

  it("shows what a failing test printed", function()
    local last, status, out = run(script("test_a",
      "echo 1..2; echo ok 1 - x; echo 'not ok 2 - y'; echo '# because' >&2; exit 1"))
    assert.equal("1 passed, 1 failed, 0 skipped", last)
    assert.equal(1, status)
    assert.truthy(out:find("# because", 1, true))
  end)

  it("names what failed, by which test, once more at its end", function()
    local last, _, out = run(
      script("test_a", "echo 1..2; echo 'not ok 1 - holds'; echo ok 2 - y; sleep 0.3; exit 1"),
      script("b_spec.sh", "kill -SEGV $$"))
    assert.equal("1 passed, 2 failed, 0 skipped", last, out)
    assert.truthy(out:find(("failed: %s/test_a\n  not ok 1 - holds\n"
      .. "failed: %s/b_spec.sh: crashed by signal 11\n%s\n"):format(dir, dir, last), 1, true), out)
  end)

  it("names a file whose runner died", function()
    local last, status, out = run(
      script("b_spec.sh", "kill -KILL $(ps -o ppid= $PPID); kill -KILL $PPID"))
    assert.same({ "0 passed, 1 failed, 0 skipped", 1 }, { last, status }, out)
    assert.truthy(out:find("b_spec.sh: its runner died", 1, true), out)
  end)

  it("shows nothing of what a passing test printed", function()
    local _, _, out = run(script("test_a", "echo chatter; echo 1..1; echo ok 1 - x"))
    assert.falsy(out:find("chatter", 1, true))
  end)

  it("counts a failure whose program exits with 0", function()
    local last, status = run(script("test_a", "echo 1..1; echo 'not ok 1 - x'"))
    assert.equal("0 passed, 1 failed, 0 skipped", last)
    assert.equal(1, status)
  end)

  it("counts a crash once, and says its signal", function()
    local last, status, out =
      run(script("test_a", "echo 1..3; echo ok 1 - x; kill -SEGV $$"))
    assert.equal("1 passed, 1 failed, 0 skipped", last)
    assert.equal(1, status)
    assert.truthy(out:find("signal 11", 1, true))
  end)

  it("counts a file that printed no plan", function()
    assert.equal("0 passed, 1 failed, 0 skipped", (run(script("test_a", "exit 0"))))
    assert.equal("1 passed, 1 failed, 0 skipped", (run(script("test_a", "echo ok 1 - x"))))
  end)

  it("counts a file without tests", function()
    assert.equal("0 passed, 1 failed, 0 skipped", (run(script("test_a", "echo 1..0"))))
    assert.equal("0 passed, 1 failed, 0 skipped", (run(file("c_spec.lua", ""))))
  end)

  it("counts a file that ran fewer or more tests than planned", function()
    assert.equal("1 passed, 1 failed, 0 skipped",
      (run(script("test_a", "echo 1..2; echo ok 1 - x"))))
    assert.equal("2 passed, 1 failed, 0 skipped",
      (run(script("test_a", "echo 1..1; echo ok 1 - x; echo ok 2 - y"))))
  end)

  it("counts a bad exit after good tests, as of a leak checker", function()
    local last, status, out = run(script("test_a", "echo 1..1; echo ok 1 - x; exit 23"))
    assert.equal("1 passed, 1 failed, 0 skipped", last)
    assert.equal(1, status)
    assert.truthy(out:find("exit status 23", 1, true))
  end)

  it("ends a file that hangs", function()
    local last, status, out = run(script("test_a", "echo 1..2; echo ok 1 - x; sleep 60"))
    assert.equal("1 passed, 1 failed, 0 skipped", last)
    assert.equal(1, status)
    assert.truthy(out:find("timed out after 1 s", 1, true))
  end)

  it("ends what a file leaves running, however it ends itself", function()
    -- Its file goes on when the job ignores a TERM.
    local function leaves(name, rest)
      local pid = dir .. "/" .. name
      return script("test_" .. name, ("sh -c 'trap \"\" TERM; echo $$ >%s; while :; do sleep 0.05; "
        .. "done' &\nuntil [ -s %s ]; do sleep 0.05; done\n%s"):format(pid, pid, rest)), pid
    end
    local function must_be_gone(pid)
      assert.equal("", (sh("p=$(cat " .. pid .. ") && ps -o stat= -p $p | grep -v Z")), pid)
    end
    for name, rest in pairs { passes = "echo 1..1; echo ok 1 - x", hangs = "sleep 60" } do
      local path, pid = leaves(name, rest)
      sh("TEST_TIMEOUT=3 spec/run_tests " .. path)
      must_be_gone(pid)
    end
    local path, pid = leaves("cut", "sleep 60")
    sh(("TEST_TIMEOUT=60 timeout 60 spec/run_tests %s & p=$!\n"
      .. "until [ -s %s ]; do sleep 0.05; done\n"
      .. "kill $p; wait $p"):format(path, pid))
    must_be_gone(pid)
  end)

  it("counts a file that cannot be run", function()
    local last, status = run(dir .. "/test_gone")
    assert.equal("0 passed, 1 failed, 0 skipped", last)
    assert.equal(1, status)
  end)

  it("counts skipped tests apart, as cmocka, busted and TAP write them", function()
    local last, status = run(
      script("test_a", "echo 1..2; echo 'not ok 1 # SKIP x'; echo ok 2 - y"),
      file("c_spec.lua", "pending('later') it('skips', function() pending('no tool') end)"),
      script("d_spec.sh", "echo '1..0 # SKIP no strace'"))
    assert.equal("1 passed, 0 failed, 4 skipped", last)
    assert.equal(0, status)
  end)

  -- Fails until it has run N times.
  local function fails(times, how)
    local seen = dir .. "/seen"
    return script("test_late", ("echo x >>%s; echo 1..1\n"
      .. "[ $(wc -l <%s) -le %d ] || { echo ok 1 - x; exit 0; }\n%s")
      :format(seen, seen, times, how or "echo 'not ok 1 - x'; exit 1"))
  end

  it("runs what failed once more, alone, where it is told to, and names it", function()
    local path = fails(1)
    local last, status = run(path)
    assert.same({ "0 passed, 1 failed, 0 skipped", 1 }, { last, status })
    sh("rm " .. dir .. "/seen")
    local out
    out, status = sh(("AGAIN=1 spec/run_tests %s %s"):format(path,
      script("b_spec.sh", "echo ok 1; echo 1..1")))
    assert.truthy(out:find("2 passed, 0 failed, 0 skipped\n$"), out)
    assert.truthy(out:find("passed only when it ran again: " .. path, 1, true), out)
    assert.equal(0, status)
  end)

  it("runs what another process has killed once more, and what it ran in", function()
    for _, how in ipairs { "kill -KILL $$", "kill -KILL $(ps -o ppid= $PPID); kill -KILL $PPID" } do
      sh("rm -f " .. dir .. "/seen")
      local out, status = sh("AGAIN=1 spec/run_tests " .. fails(1, how))
      assert.truthy(out:find("passed only when it ran again", 1, true), out)
      assert.equal(0, status, out)
    end
  end)

  it("believes a second failure, a crash, and more files than it may run again", function()
    local function red(command)
      local out, status = sh("rm -f " .. dir .. "/seen; AGAIN=1 " .. command)
      assert.equal(1, status, out)
      assert.falsy(out:find("only when it ran again", 1, true), out)
    end
    red("spec/run_tests " .. fails(2))
    red("spec/run_tests " .. fails(1, "kill -SEGV $$"))
    red(("spec/run_tests %s %s"):format(fails(1), script("test_b", "exit 1")))
  end)

  it("is not green when nothing ran", function()
    local last, status = run()
    assert.equal("0 passed, 0 failed, 0 skipped", last)
    assert.equal(1, status)
    last, status = run(script("d_spec.sh", "echo '1..0 # SKIP no strace'"))
    assert.equal("0 passed, 0 failed, 1 skipped", last)
    assert.equal(1, status)
  end)

  it("counts the failed setup of a group of C tests", function()
    local last, status, out = run(script("test_a",
      "echo 1..4; echo 'not ok 0 - tests [  FAILED  ] GROUP SETUP'; exit 1"))
    assert.equal("0 passed, 1 failed, 0 skipped", last)
    assert.equal(1, status)
    assert.truthy(out:find("group setup failed", 1, true))
  end)

  it("takes several groups of C tests in one file", function()
    local last = run(script("test_a",
      "echo 1..1; echo ok 1 - x; echo 1..2; echo ok 1 - y; echo ok 2 - z"))
    assert.equal("3 passed, 0 failed, 0 skipped", last)
  end)

  it("does not take what a tested program prints for a test", function()
    local last = run(script("test_a", "echo 1..1; echo 'ok 7 of 9 done'; echo ok 1 - x"))
    assert.equal("1 passed, 0 failed, 0 skipped", last)
  end)

  it("counts errors outside of tests in a spec", function()
    assert.equal("0 passed, 1 failed, 0 skipped",
      (run(file("c_spec.lua", "describe('x', function() error('early') end)"))))
    assert.truthy(run(file("c_spec.lua", "syntax error")):find("^0 passed, [12] failed"))
    assert.equal("0 passed, 1 failed, 0 skipped", (run(file("c_spec.lua", "os.exit(0)"))))
  end)

  it("leaves tests the signals they need", function()
    local last, status, out = run(script("test_a",
      "echo 1..1; trap 'echo ok 1 - interrupted' INT; kill -INT $$"))
    assert.equal("1 passed, 0 failed, 0 skipped", last, out)
    assert.equal(0, status)
  end)

  it("fails a test of which any process had a sanitizer's report", function()
    local out, status = sh("SANITIZE=address spec/run_tests " .. script("test_a",
      "echo 'out of bounds' >${ASAN_OPTIONS##*log_path=}.1; echo 1..1; echo ok 1 - x"))
    assert.truthy(out:find("out of bounds", 1, true))
    assert.equal("1 passed, 1 failed, 0 skipped", out:match("([^\n]*)\n$"))
    assert.equal(1, status)
  end)

  it("takes what a sanitizer says of its own limits for no report", function()
    local out, status = sh("SANITIZE=address spec/run_tests " .. script("test_a",
      "echo '==9==Unable to get registers from thread 8.' >${ASAN_OPTIONS##*log_path=}.1; " ..
      "echo 1..1; echo ok 1 - x"))
    assert.equal("1 passed, 0 failed, 0 skipped", out:match("([^\n]*)\n$"))
    assert.equal(0, status)
  end)
end)

-- Guards .ci/run: its last line is a tally, and neither the tests nor the checks fail unnoticed.
describe("what CI runs", function()
  --- Runs .ci/run with a `make` that says this for `make test` and `make check`.
  local function ci(test, check)
    local dir = sh("mktemp -d"):gsub("\n", "")
    local make = assert(io.open(dir .. "/make", "w"))
    make:write("#!/bin/bash\ncase $1 in test) ", test, " ;; check) ", check, " ;; esac\n")
    make:close()
    local out, status = sh("chmod +x " .. dir .. "/make; PATH=" .. dir .. ":$PATH .ci/run")
    sh("rm -rf " .. dir)
    return out:match("([^\n]*)\n$"), status, out
  end

  it("ends with the tally when both are green", function()
    local last, status, out = ci("echo 3 passed, 0 failed, 1 skipped", "echo clang: fine")
    assert.equal("3 passed, 0 failed, 1 skipped", last)
    assert.equal(0, status)
    assert.truthy(out:find("clang: fine", 1, true))
  end)

  it("is red when a check is, with one more failure", function()
    local last, status = ci("echo 3 passed, 0 failed, 1 skipped", "exit 2")
    assert.equal("3 passed, 1 failed, 1 skipped", last)
    assert.are_not.equal(0, status)
  end)

  it("is red when a test is", function()
    local last, status = ci("echo 3 passed, 2 failed, 0 skipped; exit 2", ":")
    assert.equal("3 passed, 2 failed, 0 skipped", last)
    assert.are_not.equal(0, status)
  end)

  it("counts a build that never came to its tests", function()
    local last, status = ci("echo no rule; exit 2", ":")
    assert.equal("0 passed, 1 failed, 0 skipped", last)
    assert.are_not.equal(0, status)
  end)
end)
