--- A locale that writes 1,5 for 1.5, and a path with a space: neither changes a number that we read
--- or write, nor a test.

local support = require "support"

local LOCALE = "de_DE.UTF-8"

describe("where a decimal point is a comma", function()
  local dir, locale, missing

  setup(function()
    dir = support.directory() .. "/a b"
    support.sh("mkdir '" .. dir .. "'")
    local out, code = support.sh(("localedef -i de_DE -f UTF-8 '%s/%s'"):format(dir, LOCALE))
    locale = ("LOCPATH='%s' LC_ALL=%s"):format(dir, LOCALE)
    if support.sanitized then
      -- The C library's newlocale() keeps the list that it made of LOCPATH.
      support.write(dir .. "/lsan.supp", "leak:__argz_add_sep\n")
      locale = ("%s LSAN_OPTIONS='print_suppressions=0:suppressions=\"%s/lsan.supp\"'")
        :format(locale, dir)
    end
    -- Only if it really is one: an unknown locale is the C locale.
    local said = support.sh(locale .. " bash -c 'printf %.1f 1,5'")
    if code ~= 0 or said ~= "1,5" then missing = "no " .. LOCALE .. " can be made here: " .. out end
  end)
  teardown(function() os.execute("rm -rf '" .. dir:match("^(.*)/") .. "'") end)

  --- Runs a command there; it must succeed. Returns what it printed.
  local function sh(command)
    if missing then return pending(missing) end
    local out, code = support.sh(("cd '%s' && export %s && { %s\n}"):format(dir, locale, command))
    assert.are.equal(0, code, out)
    return out
  end

  local function has(text, part)
    assert.truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
  end

  -- The metrics come from a name and from the job; times have a point.
  local POLICY = [[
    return { api = 1,
      complete = done.marker("DONE"),
      metrics = { from.name { key = "loss", after = "loss=" }, from.notify() },
      sync = when.at_most_every "0.1s",
      keep = any { keep.best("loss", 1, "min"), keep.last(1) } }
  ]]

  it("a run reads and writes its numbers with a point", function()
    if missing then return pending(missing) end
    support.write(dir .. "/p.lua", POLICY)
    support.write(dir .. "/job.sh", [[
      unit='checkpoint-1-loss=0.126'
      mkdir -p "$unit" && touch "$unit/DONE"
      "$CKPT" notify accuracy=0.75 "checkpoint=$unit" --wait
    ]])
    sh(("export CKPT='%s'; mkdir -p out && cd out && \"$CKPT\" run --dir . --to ../store "
      .. "--state ../state --unit 'checkpoint-{step}-loss={*}/' --settle 0.25 --grace 2.5s "
      .. "-p ../p.lua -- bash ../job.sh"):format(support.runner))
    local list = sh(("'%s' ls --json store"):format(support.runner))
    has(list, '"loss":0.126')
    has(list, '"accuracy":0.75')
    local ended = support.read(dir .. "/state/exit.json")
    assert.truthy(ended:match('"seconds":%s*%d+%.%d+'), ended)
  end)

  it("a program that has set its locale reads a metric as it stands there", function()
    if missing then return pending(missing) end
    -- A library with sanitizers in it needs them linked into the program too.
    if support.sanitized then return pending("the plain build runs this one") end
    support.write(dir .. "/p.lua", POLICY)
    support.write(dir .. "/host.lua", [[
      local ffi = require "ffi"
      ffi.cdef "char *setlocale(int, const char *);"
      assert(ffi.C.setlocale(6, "") ~= nil) -- LC_ALL
      local ckpt = require "ckpt"
      assert(ckpt.json.encode { 0.5 } == "[0.5]" and ckpt.json.decode("[0.125]")[1] == 0.125)
      assert(ckpt.fs.mkdirs("host/checkpoint-2-loss=0.25"))
      assert(ckpt.fs.write("host/checkpoint-2-loss=0.25/DONE", ""))
      local engine = assert(ckpt.open())
      local run = assert(engine:run { dir = "host", to = "hosts", quiet = 0.1,
        policies = { "./p.lua" }, units = { "checkpoint-{step}-loss={*}/" } })
      assert(run:start())
      assert(run:notify { kind = "exit", clean = true })
      for _ = 1, 100 do
        assert(engine:dispatch(100))
        if run:status().pending == 0 then break end
      end
      assert(run:status().committed == 1, "nothing was committed")
      engine:close()
    ]])
    sh(("R='%s' B='%s'; LUA_PATH=\"$R/lua/?.lua;$R/lua/?/init.lua;;\" LUA_CPATH=\"$B/lua/?.so;;\" "
      .. "CKPT_LIBEXEC=$B/libexec luajit host.lua"):format(support.root, support.build))
    has(sh(("'%s' ls --json hosts"):format(support.runner)), '"loss":0.25')
  end)

  it("a script that sets its locale later reads what programs report", function()
    if missing then return pending(missing) end
    support.write(dir .. "/later.lua", [[
      local ckpt = require "ckpt"
      local seen
      local function half()
        local job = assert(ckpt.job.command({ os.getenv "CKPT", "notify", "loss=0.5" }, {
          report = function(report)
            seen = report.values.loss
            report:answer()
          end }))
        assert(job:wait())
        assert(seen == 0.5, tostring(seen))
      end
      assert(os.setlocale "C")
      half()
      assert(os.setlocale "")
      half()
    ]])
    sh(("CKPT='%s' '%s' exec later.lua"):format(support.runner, support.runner))
  end)

  it("the tests count as elsewhere", function()
    if missing then return pending(missing) end
    -- The project itself in a path with a space, but for what was built.
    sh(("mkdir tree && ln -s '%s'/[!b]* tree/"):format(support.root))
    local said = sh(("cd tree && CKPT_BUILD='%s' CKPT_LUA='%s' spec/run_tests "):format(
      support.build, support.runner) .. "spec/lua/base/json_spec.lua spec/layers_spec.lua")
    assert.truthy(said:match("\n%d+ passed, 0 failed, 0 skipped\n*$"), said)
    local recipe = sh("unset MAKEFLAGS MAKELEVEL SANITIZE BUILD; cd tree && "
      .. "make -n SETUP=no test-kill demo")
    has(recipe, ("CKPT_LUA='%s/tree/ckpt-lua' CKPT_BUILD='%s/tree/build'"):format(dir, dir))
    has(recipe, ("CKPT_LUA='%s/tree/ckpt-lua' examples/demo.sh"):format(dir))
  end)
end)
