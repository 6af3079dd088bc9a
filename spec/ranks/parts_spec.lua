--- Ranks that get back what each had: `run --restore-parts own`.
local json = require "cjson"
local place = require "place"
local support = require "support"
local await = support.await

local SHARD, SHARED = 300000, 5000

-- Each rank writes its shard, and then a file that all of them have, which is a framework's marker.
-- First it says what it began from.
local JOB = [[
await() { until [ -e "$1" ]; do sleep 0.05; done; }
state() { printf '{"a": "'; head -c 4991 /dev/zero | tr '\\000' x; printf '"}'; }
save() { mkdir $CKPT_DIR/checkpoint-$1 && cd $CKPT_DIR/checkpoint-$1 &&
  head -c 300000 /dev/urandom >shard-$RANK.bin && state >trainer_state.json &&
  cd - >/dev/null && await store/checkpoint-$1/.ckpt-manifest.json; }
meet() { touch up-$LAUNCH-$RANK; for i in $(seq 0 $((WORLD - 1))); do await up-$LAUNCH-$i; done; }
echo "from ${CKPT_RESUME##*/} with" $(cd ${CKPT_RESUME:-.} && ls shard* 2>/dev/null)
]]

describe("ranks that restore their own parts", function()
  local dir, launches, counting = nil, 0, nil

  place.with_directory(function(made) dir = made end)
  before_each(function() counting = place.preload "spec/ranks/store_reads.c" end)

  local function path(name, rank) return ("%s/%d.%s"):format(dir, rank, name) end

  --- All ranks of a launch, each in its directory (`at[rank]`: in that of another one), in the
  --- background.
  local function start(world, job, options, at, env)
    launches = launches + 1
    local target = options:find "%-%-to " and "" or "--to store"
    support.write(dir .. "/job.sh", JOB .. job)
    for rank = 0, world - 1 do
      for _, name in ipairs { "code", "reads", "held" } do os.remove(path(name, rank)) end
      local words = ("--dir out-%d %s --run r --launch-id l%d --rank %d --world %d")
        :format(at and at[rank] or rank, target, launches, rank, world)
      local with = ("RANK=%d WORLD=%d LAUNCH=%d STORE_FILES=store/checkpoint- " ..
        "STORE_READS=%d.reads STORE_HELD=%d.held %s"):format(rank, world, launches, rank, rank,
        env or "")
      os.execute(("cd '%s' && { env %s %s '%s' run %s --rank-wait 20s --settle 0.5 --take-over " ..
        "%s -- sh job.sh >%d.log 2>&1 & echo $! >%d.pid; wait $!; echo $? >%d.code; } 2>end &")
        :format(dir, with, counting, support.runner, words, options, rank, rank, rank))
    end
  end

  --- How they ended: what each has said, and what it has read of the files in the store, and all of
  --- them (`sum`): here they are on one node, and read once what several of them get. Of the
  --- manifest nothing counts: it is small, and read by all.
  local function ends(world)
    local said, reads = {}, { sum = 0 }
    for rank = 0, world - 1 do
      local code = await("the end of rank " .. rank, function()
        return tonumber(support.read(path("code", rank)) or "")
      end, 60)
      said[rank] = support.read(path("log", rank))
      assert.are.equal(0, code, said[rank])
      reads[rank] = 0
      for line in (support.read(path("reads", rank)) or ""):gmatch "%d+" do
        reads[rank] = reads[rank] + tonumber(line)
      end
      reads.sum = reads.sum + reads[rank]
    end
    return said, reads
  end

  local function run(...)
    start(...)
    return ends((...))
  end

  local OWN = "--restore-parts own"

  local function clear() place.must_sh "rm -rf out-*" end

  local function quarantined()
    return (place.sh "find out-*.ckpt -path '*/quarantine/*/checkpoint-*'")
  end

  local function files(rank, step)
    local text = place.must_sh(("ls out-%d/checkpoint-%d"):format(rank, step or 1))
    return (text:gsub("\n$", ""):gsub("\n", " "))
  end

  --- True if so many bytes are those of so many shards, and what all have, and manifests.
  local function is_about(shards, bytes)
    local least = shards * SHARD + SHARED
    return bytes >= least and bytes < least + 20000
  end

  local function each_has_its_own(world, step)
    for rank = 0, world - 1 do
      assert.are.equal(("shard-%d.bin trainer_state.json"):format(rank), files(rank, step))
    end
  end

  it("read a quarter of what four have saved, each", function()
    run(4, "save 1", OWN)
    clear()
    local said, reads = run(4, "meet", OWN)
    each_has_its_own(4)
    for rank = 0, 3 do
      place.has(said[rank], ("from checkpoint-1 with shard-%d.bin\n"):format(rank))
      assert.is_true(reads[rank] >= SHARD and reads[rank] <= SHARD + SHARED, reads[rank])
      place.must_sh(("cmp out-%d/checkpoint-1/shard-%d.bin store/checkpoint-1/shard-%d.bin")
        :format(rank, rank, rank))
    end
    assert.is_true(is_about(4, reads.sum), reads.sum)
    clear()
    said, reads = run(4, "meet", "")
    for rank = 0, 3 do
      place.has(said[rank], "with shard-0.bin shard-1.bin shard-2.bin shard-3.bin\n")
    end
    assert.is_true(is_about(4, reads.sum), reads.sum)
  end)

  it("read none of what they have, whether they wrote it or it was restored", function()
    run(2, "save 1", OWN)
    for _ = 1, 2 do
      local said, reads = run(2, "meet", OWN)
      for rank = 0, 1 do
        place.has(said[rank], ("from checkpoint-1 with shard-%d.bin\n"):format(rank))
        assert.is_true(reads[rank] < SHARED, reads[rank])
      end
      assert.are.equal("", quarantined())
      each_has_its_own(2)
    end
    clear()
    run(2, "meet", OWN)
    local _, reads = run(2, "meet", OWN)
    assert.is_true(reads[0] + reads[1] < 2 * SHARED)
    assert.are.equal("", quarantined())
  end)

  -- The same name, size and time, and another byte.
  local function falsify(file)
    place.must_sh(("touch -r %s time; printf x | dd of=%s bs=1 seek=70000 conv=notrunc 2>end; "
      .. "touch -r time %s"):format(file, file, file))
  end

  it("compare what they go on from by its bytes, whatever the journal says", function()
    run(2, "save 1", OWN)
    for _, options in ipairs { OWN, "" } do
      place.must_sh "rm -rf out-*.ckpt/quarantine" -- emptied, it reads what it has in the store
      run(2, "meet", options)
      falsify "out-1/checkpoint-1/shard-1.bin"
      local said, reads = run(2, "meet", options)
      assert.is_true(reads[0] < SHARED, reads[0])
      assert.are.equal(SHARD, reads[1])
      place.has(said[1], "shard-1.bin: block 0 ")
      place.has(said[1], ("checkpoint-1: 1 of %d files fetched"):format(options == OWN and 2 or 3))
      place.must_sh "cmp out-1/checkpoint-1/shard-1.bin store/checkpoint-1/shard-1.bin"
    end
  end)

  it("compare what they have by its bytes where no journal speaks for it", function()
    run(2, "save 1", OWN)
    place.must_sh "rm -rf out-*.ckpt"
    local _, reads = run(2, "meet", OWN)
    assert.is_true(reads[0] + reads[1] < 2 * SHARED)
    assert.are.equal("", quarantined())
    place.must_sh "rm -rf out-*.ckpt"
    falsify "out-1/checkpoint-1/shard-1.bin"
    local said
    said, reads = run(2, "meet", OWN)
    assert.is_true(reads[0] < SHARED, reads[0])
    assert.are.equal(SHARD, reads[1])
    place.has(quarantined(), "out-1.ckpt/quarantine/")
    place.has(said[1], "checkpoint-1/shard-1.bin: block 0 ")
    place.has(said[1], "1 checkpoint moved to ")
    assert.is_nil(said[1]:find("incomplete checkpoint", 1, true), said[1])
    place.must_sh "cmp out-1/checkpoint-1/shard-1.bin store/checkpoint-1/shard-1.bin"
  end)

  it("fetch the damaged file of a part alone", function()
    run(2, "save 1", OWN)
    support.write(dir .. "/out-1/checkpoint-1/shard-1.bin", "torn")
    local said, reads = run(2, "meet", OWN)
    assert.is_true(reads[0] < SHARED, reads[0])
    assert.are.equal(SHARD, reads[1])
    place.has(said[1], "out-1.ckpt/quarantine/")
    place.must_sh "cmp out-1/checkpoint-1/shard-1.bin store/checkpoint-1/shard-1.bin"
    each_has_its_own(2)
  end)

  -- Only the rank that it belongs to reads it, when rank 0 has gone on.
  it("begin from the one before where one finds its part damaged in the store", function()
    run(2, "save 1; save 2", OWN)
    clear()
    place.must_sh "printf x | dd of=store/checkpoint-2/shard-1.bin bs=1 seek=9 conv=notrunc 2>end"
    start(2, "sleep 2", OWN)
    local code = await("the end of rank 1", function() return support.read(path("code", 1)) end, 60)
    assert.are_not.equal("0\n", code)
    place.has(support.read(path("log", 1)), "checkpoint-2 CANNOT BE RESTORED")
    await("the end of rank 0", function() return support.read(path("code", 0)) end, 60)
    local said = run(2, "meet", OWN)
    for rank = 0, 1 do
      place.has(said[rank], ("from checkpoint-1 with shard-%d.bin\n"):format(rank))
    end
  end)

  it("save the next one, of which nobody expects the files of others", function()
    run(2, "save 1", OWN)
    for i, options in ipairs { OWN, "--restore never" } do
      local step = 2 * i + 1
      clear()
      run(2, ("save %d; save %d"):format(step - 1, step), options)
      local shards = place.must_sh(("ls store/checkpoint-%d | grep -c shard"):format(step))
      assert.are.equal("2\n", shards)
      place.must "verify store"
      for rank = 0, 1 do -- the marker alone: it would rest longer, and lack what the other has
        place.has(place.must(("why out-%d/checkpoint-%d"):format(rank, step - 1)),
          "complete: trainer_state.json is there")
      end
    end
    clear()
    run(2, "meet", OWN)
    each_has_its_own(2, 5)
  end)

  it("get the rest of it where all is asked for, and keep it where their own is", function()
    run(2, "save 1", OWN)
    local said, reads = run(2, "meet", "--restore-parts all")
    for rank = 0, 1 do
      assert.are.equal("shard-0.bin shard-1.bin trainer_state.json", files(rank))
      assert.are.equal(SHARD, reads[rank])
      place.has(said[rank], "checkpoint-1: 1 of 3 files fetched; the others were here")
    end
    said, reads = run(2, "meet", OWN)
    assert.is_nil(said[0]:find("files fetched", 1, true), said[0])
    assert.is_true(reads[0] + reads[1] < 2 * SHARED)
    assert.are.equal("shard-0.bin shard-1.bin trainer_state.json", files(0))
  end)

  it("get the part of the rank that they are now, in another's directory too", function()
    run(2, "save 1", OWN)
    local said, reads = run(2, "meet", OWN, { [0] = 1, [1] = 0 })
    for rank = 0, 1 do
      place.has(said[rank], ("from checkpoint-1 with shard-%d.bin\n"):format(rank))
      assert.are.equal(SHARD, reads[rank])
      place.has(said[rank], "checkpoint-1: 1 of 2 files fetched")
    end
    place.has(quarantined(), "out-0.ckpt/quarantine/")
    place.has(quarantined(), "out-1.ckpt/quarantine/")
  end)

  it("get all of it as another number of ranks, and are told why, once", function()
    run(3, "save 1", OWN)
    clear()
    local said, reads = run(2, "meet", OWN)
    for rank = 0, 1 do
      assert.are.equal("shard-0.bin shard-1.bin shard-2.bin trainer_state.json", files(rank))
      local _, times = said[rank]:gsub("was saved by 3 ranks, and these are 2", "")
      assert.are.equal(1, times, said[rank])
    end
    assert.is_true(is_about(3, reads.sum), reads.sum)
  end)

  it("get all of what was saved before it was noted which rank had what, and are told", function()
    run(2, "save 1", OWN)
    clear()
    -- As 1.0 would have left it.
    for _, name in ipairs(support.lines(place.must_sh
      "rm store/.ckpt/head; ls store/checkpoint-1/.ckpt-manifest.json store/.ckpt/log/*")) do
      local text = support.read(dir .. "/" .. name)
      for _, member in ipairs { "rank", "world", "manifest", "prev", "sum" } do
        if not (member == "world" and name:find "/log/") then
          text = text:gsub(('("%s":[^,{}]*),'):format(member), ""):gsub((',"%s":[^,{}]*')
            :format(member), "")
        end
      end
      place.must_sh("rm -f " .. name)
      support.write(dir .. "/" .. name, text)
    end
    place.must "verify store"
    local said, reads = run(2, "meet", OWN)
    for rank = 0, 1 do
      assert.are.equal("shard-0.bin shard-1.bin trainer_state.json", files(rank))
      local _, times = said[rank]:gsub("does not tell which rank had which of its files", "")
      assert.are.equal(1, times, said[rank])
    end
    assert.is_true(is_about(2, reads.sum), reads.sum)
  end)

  it("leave nothing half there where one is killed in the middle", function()
    run(3, "save 1", OWN)
    clear()
    start(3, "await 2.held; sleep 1", OWN, nil, "STORE_HOLD=store/checkpoint-1/shard-2")
    await("the read", function() return support.read(path("held", 2)) end, 30)
    place.must_sh "kill -9 $(cat 2.pid)"
    for rank = 0, 1 do
      await("the end of rank " .. rank, function() return support.read(path("code", rank)) end, 60)
    end
    assert.are.equal("", (place.sh "ls out-2"))
    local said = run(3, "meet", OWN)
    each_has_its_own(3)
    place.has(said[2], "from checkpoint-1 with shard-2.bin\n")
    assert.are.equal("", (place.sh "ls -d out-2/.ckpt-restore* out-2.ckpt/staging/* 2>/dev/null"))
  end)

  --- One rank alone, in the directory of rank 0, without words about ranks.
  local function alone(job)
    support.write(dir .. "/job.sh", JOB .. job)
    return (place.must("run --dir out-0 --to store --run r --settle 0.5 --take-over -- sh job.sh"))
  end

  it("get their parts of one that is asked for by its name, or from another target", function()
    run(2, "save 1; save 2", OWN)
    for _, what in ipairs { "checkpoint-1",
      "file://" .. dir .. "/store/checkpoint-1 --to other" } do
      clear()
      local said, reads = run(2, "meet", ("%s --restore %s"):format(OWN, what))
      each_has_its_own(2)
      for rank = 0, 1 do
        place.has(said[rank], ("from checkpoint-1 with shard-%d.bin\n"):format(rank))
        assert.is_true(reads[rank] >= SHARD and reads[rank] <= SHARD + SHARED, reads[rank])
      end
      assert.is_true(is_about(2, reads.sum), reads.sum)
    end
  end)

  it("all get what two of three had, and the others' copies without it go", function()
    run(3, [[mkdir $CKPT_DIR/checkpoint-1 && cd $CKPT_DIR/checkpoint-1 &&
      echo $RANK >shard-$RANK.bin && { [ $RANK = 1 ] || echo x >of-two.bin; } &&
      state >trainer_state.json && cd - >/dev/null &&
      await store/checkpoint-1/.ckpt-manifest.json]], OWN)
    assert.are.equal("shard-1.bin trainer_state.json", files(1))
    for _ = 1, 2 do
      run(3, "meet", OWN)
      for rank = 0, 2 do
        assert.are.equal(("of-two.bin shard-%d.bin trainer_state.json"):format(rank), files(rank))
      end
      place.must_sh "ls -d out-1.ckpt/quarantine/*/checkpoint-1 | wc -l | grep -qx 1"
      place.must_sh "! ls -d out-[02].ckpt/quarantine/*/checkpoint-1 2>/dev/null"
    end
  end)

  it("leave nothing to one rank that goes on where it has a part: it gets the whole", function()
    for _, how in ipairs { "saved", "fetched", "not known" } do
      place.must_sh "rm -rf store out-*"
      run(2, "save 1", OWN)
      if how == "fetched" then
        clear()
        run(2, "meet", OWN)
      elseif how == "not known" then
        place.must_sh "rm -rf out-*.ckpt"
      end
      assert.are.equal("shard-0.bin trainer_state.json", files(0))
      place.has(alone "", "from checkpoint-1 with shard-0.bin shard-1.bin\n")
      assert.are.equal("shard-0.bin shard-1.bin trainer_state.json", files(0))
      -- And that stays.
      place.must_sh "rm -rf out-*.ckpt/quarantine"
      place.has(alone "", "from checkpoint-1 with shard-0.bin shard-1.bin\n")
      assert.are.equal("", quarantined())
    end
  end)

  -- It is saved anew under the name of one that was marked bad; one rank's file is as it was.
  for same = 0, 1 do
    it(("begin where what rank %d has is also the part of a bad one"):format(same), function()
      run(2, "save 1; save 2", OWN)
      place.must_sh "mkdir was; cp -p out-*/checkpoint-2/shard-*.bin was"
      place.must "mark bad store checkpoint-2"
      run(2, ([[mkdir $CKPT_DIR/checkpoint-2 && cd $CKPT_DIR/checkpoint-2
        cp -p ../../was/shard-$RANK.bin . && state >trainer_state.json
        [ $RANK = %d ] || head -c 300000 /dev/urandom >shard-$RANK.bin
        cd - >/dev/null
        until [ $(ls store/checkpoint-2*/.ckpt-manifest.json | wc -l) = 2 ]; do sleep 0.05; done]])
        :format(same), OWN)
      for i = 1, 3 do
        local said, reads = run(2, "meet", OWN)
        for rank = 0, 1 do
          place.has(said[rank], ("from checkpoint-2 with shard-%d.bin\n"):format(rank))
          assert.is_true(reads[rank] < SHARED, ("%d: rank %d: %d"):format(i, rank, reads[rank]))
        end
      end
      place.must_sh(("cmp was/shard-%d.bin out-%d/checkpoint-2/shard-%d.bin")
        :format(same, same, same))
    end)
  end

  it("can be asked by hand for one file of one of them, as a launcher's task or not", function()
    run(2, "save 1", OWN)
    for _, env in ipairs { "", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2" } do
      place.must_sh "rm -rf back; mkdir back"
      local _, code, said = place.apart("restore store --dir back --only 'shard-1*'", env)
      assert.are.equal(0, code, said)
      assert.are.equal("back/checkpoint-1/shard-1.bin\n", (place.sh "find back -type f"))
      place.must_sh "cmp back/checkpoint-1/shard-1.bin store/checkpoint-1/shard-1.bin"
    end
  end)

  it("are told what own and all mean where a word is neither", function()
    local _, err = place.ends(2, "run --dir out --to store --restore-parts some -- true")
    place.has(err, "--restore-parts is 'own' or 'all', not 'some'")
  end)

  it("are one where there is one: it gets all", function()
    place.must_sh "mkdir -p out/checkpoint-1 && echo x >out/checkpoint-1/a"
    place.must "sync out --to store --settle 0 --trust"
    place.must_sh "rm -rf out"
    place.must("run --dir out --to store --continue-run " .. OWN .. " -- true")
    assert.are.equal("x\n", support.read(dir .. "/out/checkpoint-1/a"))
    local exit = json.decode(support.read(dir .. "/out.ckpt/exit.json"))
    assert.are.equal("durable", exit.standing)
  end)
end)
