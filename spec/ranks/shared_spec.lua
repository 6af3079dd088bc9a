--- Tasks of one launch that write into one directory: what is committed has the files of all.
local support = require "support"
local sh, await = support.sh, support.await

describe("tasks that write into one directory", function()
  local dir

  support.with_directory(function(made) dir = made end)

  -- Each writes its shard of checkpoint-STEP; the first one the marker, too.
  local functions = [[
    save() { mkdir -p $CKPT_DIR/checkpoint-$1; echo $RANK >$CKPT_DIR/checkpoint-$1/shard-$RANK
      [ $RANK != 0 ] || echo ok >$CKPT_DIR/checkpoint-$1/DONE; }
  ]]

  --- Starts task `rank` of `world`, as torchrun would, in `where` if given; its script may use
  --- save STEP.
  local function start(rank, world, more, script, where)
    local name = dir .. "/task-" .. rank
    local f = assert(io.open(name .. ".sh", "w"))
    f:write(functions, script)
    f:close()
    local env = "env -u SLURM_STEP_ID TORCHELASTIC_RUN_ID=spec RANK=%d WORLD_SIZE=%d"
    env = (env .. " LOCAL_RANK=%d LOCAL_WORLD_SIZE=%d"):format(rank, world, rank, world)
    local run = "%s %s run --run spec %s --to %s/store --marker DONE %s -- sh %s.sh"
    local own = more:find("--dir ", 1, true) and "" or "--dir " .. dir .. "/out"
    run = run:format(env, support.runner, own, dir, more, name)
    os.execute(("{ exec 2>&1; cd %s; %s & echo $! >%s.pid; wait $!; echo $? >%s.code; } >%s.log &")
      :format(where or ".", run, name, name, name))
    return name
  end

  local function kill(name) sh("kill " .. support.read(name .. ".pid")) end

  local function start_all(world, more, script)
    local names = {}
    for rank = 0, world - 1 do names[rank] = start(rank, world, more, script) end
    return names
  end

  local function code(name)
    return await("the end of " .. name, function()
      return tonumber(support.read(name .. ".code") or "")
    end, 90)
  end

  local function codes(names)
    local all = {}
    for rank = 0, #names do all[#all + 1] = code(names[rank]) end
    return table.concat(all, " ")
  end

  --- "1:3 2:2": how many shards the commits have.
  local function committed()
    local found = {}
    for line in sh("ls -d " .. dir .. "/store/checkpoint-*"):gmatch("[^\n]+") do
      local step = line:match("checkpoint%-(%d+.*)")
      if step then
        found[#found + 1] = step .. ":" .. tonumber((sh("ls " .. line .. " | grep -c shard")))
      end
    end
    return table.concat(found, " ")
  end

  local function says(name, what) assert.matches(what, support.read(name .. ".log")) end

  it("are waited for when the first has ended: a late shard is in it", function()
    local names = start_all(3, "", "[ $RANK != 2 ] || sleep 3; save 1")
    assert.equal("0 0 0", codes(names))
    assert.equal("1:3", committed())
    says(names[0], "the job ended with code 0; waiting for %d other tasks? of this launch")
  end)

  it("are waited for where closes are not seen: a shard that is written slowly is whole", function()
    local slow = "save 1; [ $RANK != 2 ] || { exec 3>>$CKPT_DIR/checkpoint-1/shard-2;"
    local names = start_all(3, "--poll", slow .. " sleep 4; echo end >&3; }")
    assert.equal("0 0 0", codes(names))
    assert.equal("1:3", committed())
    assert.equal("2\nend\n", support.read(dir .. "/store/checkpoint-1/shard-2"))
  end)

  it("meet beside their directory, wherever the state is", function()
    local names = start_all(2, "--state " .. dir .. "/state", "[ $RANK != 1 ] || sleep 2; save 1")
    assert.equal("0 0", codes(names))
    assert.equal("1:2", committed())
    assert.equal("1\nquestion\n", (sh("ls " .. dir .. "/out.ckpt/launch/*")))
  end)

  it("begin, and are asked, where each has a state directory of its own", function()
    local script = "[ $RANK != 1 ] || sleep 2; save 1; echo $CKPT_SOCKET >$CKPT_DIR/../socket.$RANK"
    local names = {}
    for rank = 0, 1 do
      names[rank] = start(rank, 2, "--state " .. dir .. "/own-" .. rank, script)
    end
    assert.equal("0 0", codes(names))
    assert.equal("1:2", committed())
    assert.equal(support.read(dir .. "/socket.0"), support.read(dir .. "/socket.1"))
    assert.matches("^/", support.read(dir .. "/socket.1"))
  end)

  it("that see nothing of each other save nothing torn, and say what they have to share", function()
    sh(": >" .. dir .. "/out.ckpt") -- so nothing can stand beside the directory
    local names = {}
    for rank = 0, 1 do
      names[rank] = start(rank, 2, "--owns-dir --rank-wait 4s --state " .. dir .. "/own-" .. rank,
        "sleep 6; save 1")
    end
    assert.equal("3 13", codes(names))
    assert.equal("", committed())
    says(names[0], "NOT proven whole: checkpoint%-1 %(number 1 of the 2 tasks in this directory")
    says(names[1], "all tasks have to see the same %-%-state, and this one has .*/own%-1")
  end)

  it("do not begin in another directory than the first, and are told which that is", function()
    sh("mkdir " .. dir .. "/other; mkdir " .. dir .. "/out; ln -s out " .. dir .. "/link")
    local state = " --rank-wait 3s --settle 1 --state " .. dir .. "/state"
    local names = { [0] = start(0, 3, state, "sleep 3; save 1") }
    names[1] = start(1, 3, state .. " --dir " .. dir .. "/other", "touch " .. dir .. "/begun")
    names[2] = start(2, 3, state .. " --dir " .. dir .. "/link", "save 1") -- another name is none
    assert.equal(2, code(names[1]))
    says(names[1], "the first one watches .*/out, and %-%-dir .*/other is another directory")
    says(names[1], "%-%-ranks task")
    assert.is_nil(support.read(dir .. "/begun"))
    assert.equal(0, code(names[2]))
    code(names[0])
  end)

  -- As in a container that has the directory, and not what is beside it.
  it("do not begin where they see nothing of what the first one asks", function()
    local own = dir .. "/bound"
    sh(("mkdir %s %s/out"):format(own, dir))
    if not os.execute(("mount --bind %s/out %s 2>/dev/null"):format(dir, own)) then
      return pending "no directory can be bound to another place here"
    end
    finally(function() sh("umount " .. own) end)
    local state = " --rank-wait 3s --settle 1 --state " .. dir .. "/state"
    local names = { [0] = start(0, 2, state, "sleep 3; save 1") }
    names[1] = start(1, 2, state .. " --dir " .. own, "touch " .. dir .. "/begun")
    assert.equal(2, code(names[1]))
    says(names[1], "the first one asks all tasks in .*/out%.ckpt/launch, and this one sees nothing")
    assert.is_nil(support.read(dir .. "/begun"))
    code(names[0])
  end)

  it("that are refused are not waited for", function()
    sh("mkdir " .. dir .. "/other")
    local state = " --rank-wait 80s --settle 1 --state " .. dir .. "/state"
    local names = { [0] = start(0, 2, state, "save 1") }
    names[1] = start(1, 2, state .. " --dir " .. dir .. "/other", "save 1")
    assert.equal("3 2", codes(names))
    says(names[0], "NOT proven whole: checkpoint%-1")
  end)

  it("do not begin where a relative --dir is not there, and are told where that is", function()
    sh("mkdir " .. dir .. "/out " .. dir .. "/wd")
    local state = " --rank-wait 3s --settle 1 --state " .. dir .. "/state"
    local names = { [0] = start(0, 2, state, "sleep 3; save 1") }
    names[1] = start(1, 2, state .. " --dir out", "touch " .. dir .. "/begun", dir .. "/wd")
    assert.equal(2, code(names[1]))
    says(names[1], "the first one watches .*/out, and %-%-dir .*/wd/out is not there")
    says(names[1], "%-%-ranks task")
    assert.is_nil(support.read(dir .. "/begun"))
    code(names[0])
  end)

  it("that do not meet are asked whether their directory is one", function()
    sh("mkdir " .. dir .. "/other")
    local names = { [0] = start(0, 2, "--rank-wait 3s --settle 1", "save 1") }
    names[1] = start(1, 2, "--rank-wait 3s --dir " .. dir .. "/other", "save 1")
    assert.equal("0 13", codes(names))
    says(names[0], "Start each of them below us, with the same directory")
    says(names[1], "is it alive, and was it given the same %-%-dir?")
  end)

  it("do not begin on what an earlier use of their launch left, whatever the state is", function()
    local names = { [0] = start(0, 2, "--state " .. dir .. "/own-0", "save 1") }
    names[1] = start(1, 2, "--state " .. dir .. "/own-1", "save 1")
    assert.equal("0 0", codes(names))
    os.remove(names[1] .. ".code")
    local own = "--rank-wait 2s --state " .. dir .. "/own-1"
    names[1] = start(1, 2, own, "touch " .. dir .. "/begun")
    assert.equal(13, code(names[1]))
    assert.is_nil(support.read(dir .. "/begun"))
  end)

  it("have the grace to save after TERM, each as late as it likes", function()
    local script = "trap 'sleep $RANK; save 100; exit 0' TERM; save 1; : >$CKPT_DIR/../up.$RANK;"
    local names = start_all(3, "--settle 3", script .. " while :; do sleep 0.1; done")
    await("the first checkpoint", function() return committed() == "1:3" end, 30)
    for rank = 0, 2 do
      assert.is_truthy(support.read(dir .. "/up." .. rank))
      kill(names[rank])
    end
    assert.equal("0 0 0", codes(names))
    assert.equal("1:3 100:3", committed())
  end)

  it("have not saved what lacks a file that the one before had", function()
    local script = "save 1; sleep 2.5; [ $RANK = 2 ] || save 2"
    local names = start_all(3, "--settle 0.5", script)
    assert.equal("3 0 0", codes(names))
    assert.equal("1:3", committed())
    says(names[0], "NOT proven whole: checkpoint%-2 .*unlike the one before it, it lacks shard%-2")
  end)

  it("that was killed in the middle of a shard leave one that nothing proves whole", function()
    local cut = "[ $RANK != 2 ] || { exec 3>>$CKPT_DIR/checkpoint-2/shard-2; kill -9 $$; };"
    local script = "save 1; sleep 4; save 2;" .. cut .. " sleep 4"
    local names = start_all(3, "--settle 0.5", script)
    assert.equal("3 0 137", codes(names))
    assert.equal("1:3", committed())
  end)

  it("of which one has never come are unknown: nothing is proven, and it is named", function()
    local script = "trap 'exit 0' TERM; save 1; while :; do sleep 0.1; done"
    local first, second = start(0, 3, "--grace 6", script), start(1, 3, "", script)
    await("the unit to be asked about", function()
      return sh(support.runner .. " status " .. dir .. "/out")
        :find "number 2 of the 3 tasks in this directory has not reported yet"
    end, 60)
    kill(first)
    kill(second)
    assert.same({ 3, 0 }, { code(first), code(second) })
    assert.equal("", committed())
    says(first, "number 2 of the 3 tasks in this directory is not known to have ended")
  end)

  it("that never run below the program are given up, and the first one saves alone", function()
    local first = start(0, 3, "--rank-wait 8s --settle 1", "save 1; sleep 14; save 2; sleep 4")
    local began = os.time()
    await("its first checkpoint", function() return committed() == "1:1" end, 30)
    assert.is_true(os.time() - began >= 6, "it was not waited for the others")
    assert.equal(0, code(first))
    assert.equal("1:1 2:1", committed())
    says(first, "2 of the 3 tasks in this directory have reported nothing for 8 s: they are taken")
  end)

  it("that never run below the program are waited for at the end, and it is saved", function()
    local first = start(0, 3, "--rank-wait 8s", "save 1")
    assert.equal(0, code(first))
    assert.equal("1:1", committed())
  end)

  it("that come late are waited for from then on", function()
    local script = "[ $RANK = 0 ] || sleep 4; save 5; sleep 4"
    local first = start(0, 2, "--rank-wait 3s --settle 1", "save 1; sleep 9; save 5; sleep 1")
    await("the first checkpoint", function() return committed() == "1:1" end, 30)
    local second = start(1, 2, "", script)
    assert.same({ 0, 0 }, { code(first), code(second) })
    assert.matches("5:2$", committed())
  end)

  it("are as many as the user says", function()
    local first, second = start(0, 3, "--tasks 2", "save 1"), start(1, 3, "--tasks 2", "save 1")
    assert.same({ 0, 0 }, { code(first), code(second) })
    assert.equal("1:2", committed())
    local text, status = sh("RANK=2 WORLD_SIZE=3 LOCAL_RANK=2 LOCAL_WORLD_SIZE=3 " ..
      "TORCHELASTIC_RUN_ID=x " .. support.runner .. " run --dir-is shared --tasks 2 --dir " ..
      dir .. "/out --to " .. dir .. "/store -- true")
    assert.equal(2, status)
    assert.matches("%-%-tasks 2: this is number 2 of them, from 0", text)
  end)

  it("end what their command left running before they have ended", function()
    local left = "[ $RANK = 0 ] || { (exec 3>$CKPT_DIR/checkpoint-1/more; sleep 60) & sleep 1; }"
    local names = start_all(2, "--grace 1", "save 1; " .. left)
    assert.equal("0 0", codes(names))
    assert.equal("1:2", committed())
  end)

  it("wait no longer than the grace when the first fails: its launcher may wait for it", function()
    local script = "save 1; [ $RANK != 0 ] || exit 7; sleep 60"
    local names = start_all(2, "--grace 3", script)
    assert.equal(7, code(names[0]))
    assert.is_nil(support.read(names[1] .. ".code"))
    await("the other to be told", function()
      return support.read(names[1] .. ".log"):find "the first one, .* has ended: nothing that is"
    end)
    kill(names[1])
    assert.equal(143, code(names[1]))
  end)

  --- Three of them, of which the first is killed when all have begun, and its job goes on.
  local function kill_the_first(script)
    local names = start_all(3, "", ": >$CKPT_DIR/../up.$RANK; [ $RANK != 0 ] || sleep 60; "
      .. "until [ -e $CKPT_DIR/../dead ]; do sleep 0.1; done; " .. script)
    for rank = 0, 2 do
      await("all", function() return support.read(dir .. "/up." .. rank) end, 30)
    end
    sh("kill -9 " .. support.read(names[0] .. ".pid"))
    assert.equal(137, code(names[0]))
    sh("touch " .. dir .. "/dead")
    return names
  end

  it("say that nothing is saved when the one that watches is dead, and end with 6", function()
    local names = kill_the_first "sleep 38; [ $RANK = 1 ] || exit 7"
    assert.same({ 6, 7 }, { code(names[1]), code(names[2]) })
    for rank = 1, 2 do
      says(names[rank], "the first one, which watches the directory, has said nothing for 3%d s")
    end
    says(names[1], "the command ended with 0, and the first task had said nothing any more")
  end)

  it("say so at once where they end before they could miss it", function()
    local names = kill_the_first "save 1"
    for rank = 1, 2 do
      assert.equal(6, code(names[rank]))
      says(names[rank], "the first one, which watches the directory, is dead: nothing is saved")
      says(names[rank], "the command ended with 0, and the first task had said nothing any more")
    end
    assert.equal("", committed())
  end)
end)
