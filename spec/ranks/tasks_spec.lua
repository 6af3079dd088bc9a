--- Several tasks of one launcher whose directory is one: the first watches it, the others stand by.
local support = require "support"
local sh, await = support.sh, support.await

describe("tasks that share a directory", function()
  local dir

  support.with_directory(function(made) dir = made end)

  --- The command of task `rank` of `world` on this host, as torchrun would start it.
  local function task(rank, world, more, script, id)
    local env = "env -u SLURM_STEP_ID TORCHELASTIC_RUN_ID=%s RANK=%d WORLD_SIZE=%d"
    env = env .. " LOCAL_RANK=%d LOCAL_WORLD_SIZE=%d"
    env = env:format(id or "spec", rank, world, rank, world)
    local run = "%s %s run -q --run spec --dir %s/out --to %s/store %s -- sh -c '%s'"
    return run:format(env, support.runner, dir, dir, more or "", script)
  end

  local function start(rank, ...)
    local name = dir .. "/task-" .. rank
    os.execute(("{ %s; echo $? >%s.code; } >%s.log 2>&1 & echo $! >%s.pid"):format(task(rank, ...),
      name, name, name))
    return name
  end

  local function code(name)
    return await("the end of " .. name, function()
      return tonumber(support.read(name .. ".code") or "")
    end)
  end

  it("wait for the first, get what it resumes from, and end with their own command", function()
    -- A checkpoint to resume from.
    local save = "mkdir $CKPT_DIR/t; echo x >$CKPT_DIR/t/w; mv $CKPT_DIR/t $CKPT_DIR/checkpoint-7"
    local text, status = sh(task(0, 1, "", save))
    assert.same({ 0, "" }, { status, (text:gsub("ckpt%-lua: 1 committed.*", "")) })
    os.execute("rm -rf " .. dir .. "/out")
    local say = "echo $CKPT_RESUME >" .. dir .. "/said.%d; exit %d"
    local one, two = start(1, 3, "", say:format(1, 5)), start(2, 3, "", say:format(2, 0))
    sh "sleep 0.5"
    assert.is_nil(support.read(dir .. "/said.1"))
    local first = start(0, 3, "", say:format(0, 0))
    assert.same({ 0, 5, 0 }, { code(first), code(one), code(two) })
    for rank = 0, 2 do
      local said = support.read(dir .. "/said." .. rank)
      assert.equal("out/checkpoint-7\n", said:match "out/.*")
    end
    assert.equal(1, tonumber((sh("ls " .. dir .. "/out | wc -l"))))
  end)

  it("pass signals on", function()
    local script = "trap \"exit 9\" TERM; echo $PPID >" .. dir .. "/up.1; "
    script = script .. "while :; do sleep 0.05; done"
    local one = start(1, 2, "", script)
    local wait = "while [ ! -s " .. dir .. "/up.1 ]; do sleep 0.05; done"
    local first = start(0, 2, "", wait)
    await("the other", function() return support.read(dir .. "/up.1") end)
    sh("kill " .. support.read(dir .. "/up.1"))
    assert.equal(9, code(one))
    assert.equal(0, code(first)) -- it watches until all have ended
  end)

  it("do not wait for ever, and name whom they waited for", function()
    -- A relative --dir is told as the place that it is here.
    local command = task(1, 2, "--rank-wait 1s", "true"):gsub("%-%-dir %S+/out", "--dir out")
    local text, status = sh("cd " .. dir .. " && " .. command)
    assert.equal(13, status)
    assert.matches("task 1 of 2: the first one did not make /.*/out ready within 1 s", text)
    assert.matches("torchrun:spec", text)
  end)

  it("are refused where nothing names their launch", function()
    local text, status = sh(task(1, 2, "", "true", "none"))
    assert.equal(2, status)
    assert.matches("task 1 of 2 %(torchrun%)", text)
    assert.matches("%-%-launch%-id", text)
    assert.matches("%-%-rdzv%-id", text)
    text, status = sh(task(1, 2, "--ranks off --restore never", "true", "none"))
    assert.same({ "", 0 }, { text:match "error.*" or "", status })
  end)

  it("leave nothing in a state directory that is not theirs", function()
    os.execute(("mkdir %s/foreign; echo theirs >%s/foreign/file"):format(dir, dir))
    local text, status = sh(task(0, 2, "--state " .. dir .. "/foreign", "true"))
    assert.equal(2, status)
    assert.matches("holds file and no journal of ours", text)
    assert.equal("file\n", (sh("ls -A " .. dir .. "/foreign")))
  end)

  it("say which variable cannot be right", function()
    local text, status = sh("RANK=x " .. task(0, 2, "", "true"):gsub("RANK=0", "RANK=x"))
    assert.equal(2, status)
    assert.matches("RANK=x: not a number", text)
  end)

  it("are named by status while they are missing", function()
    local save = "mkdir $CKPT_DIR/t; echo x >$CKPT_DIR/t/w; mv $CKPT_DIR/t $CKPT_DIR/checkpoint-7; "
    local more = "--rank 0 --world 3 --launch-id L --rank-wait 90s"
    local first = start(0, 3, more, save .. "while [ ! -e " .. dir .. "/go ]; do sleep 0.05; done")
    local text = await("a rank that is missing", function()
      local said = sh(support.runner .. " status " .. dir .. "/out")
      return said:find "waiting for ranks %d" and said
    end)
    assert.matches("checkpoint%-7.*waiting for ranks 1, 2 %(1 of 3 are there%), %d+ of 90 s", text)
    -- The other two come, each with a directory of its own.
    for rank = 1, 2 do
      local name = dir .. "/task-" .. rank
      local words = "--rank %d --world 3 --launch-id L --restore never"
      local command = task(rank, 3, words:format(rank), save):gsub("/out ", "/out-" .. rank .. " ")
      os.execute(("{ %s; echo $? >%s.code; } >%s.log 2>&1 &"):format(command, name, name))
    end
    sh("touch " .. dir .. "/go")
    assert.same({ 0, 0, 0 }, { code(first), code(dir .. "/task-1"), code(dir .. "/task-2") })
    assert.matches("checkpoint%-7", (sh(support.runner .. " ls " .. dir .. "/store")))
  end)

  it("go on where the first has ended well before they have seen it ready", function()
    local words = "--rank %d --world 2 --launch-id short --restore never"
    local function own(rank)
      local name = ("%s/own-%d"):format(dir, rank)
      local command = task(rank, 2, words:format(rank), "true"):gsub("run %-q", "run -v")
        :gsub("/out ", ("/out-%d "):format(rank))
      os.execute(("{ %s; echo $? >%s.code; } >%s.log 2>&1 &"):format(command, name, name))
      return name
    end
    local one = own(1)
    await("its first look", function()
      return (support.read(one .. ".log") or ""):find "looking for rank 0"
    end)
    sh("sleep 2") -- its looks are rarer by now than rank 0 is long
    local zero = own(0)
    assert.same({ 0, 0 }, { code(zero), code(one) }, support.read(one .. ".log"))
  end)

  it("do not wait for a first one that could not begin, or has ended", function()
    local began = os.time()
    local by = start(1, 3, "", "true")
    local first = start(0, 3, "--restore required", "true")
    assert.equal(4, code(first))
    -- Ranks with directories of their own: one whose first fails, one that comes too late.
    local words = "--rank %d --world 2 --launch-id %s --restore %s"
    local function own(rank, launch, restore)
      local name = ("%s/own-%s-%d"):format(dir, launch, rank)
      local command = task(rank, 2, words:format(rank, launch, restore), "true")
        :gsub("/out ", ("/out-%s-%d "):format(launch, rank))
        :gsub("/store ", "/store-" .. launch .. " ")
      os.execute(("{ %s; echo $? >%s.code; } >%s.log 2>&1 &"):format(command, name, name))
      return name
    end
    local zero = own(0, "ended", "never")
    local failed = own(1, "failed", "never")
    assert.equal(4, code(own(0, "failed", "required")))
    assert.equal(0, code(zero))
    local late = own(1, "ended", "never")
    assert.same({ 4, 6, 6 }, { code(by), code(failed), code(late) })
    local function says(name, what) assert.matches(what, support.read(name .. ".log")) end
    says(by, "the first one could not make .*/out ready, and ended with 4")
    says(failed, "rank 0 of launch \"failed\" has ended: nothing to restore")
    says(late, "rank 0 of launch \"ended\" has ended already")
    assert.is_true(os.time() - began < 60)
  end)
end)
