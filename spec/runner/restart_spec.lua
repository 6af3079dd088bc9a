--- What a second start makes of what the first one left: `ckpt-lua run` with jobs that are killed.

local place = require "place"
local support = require "support"
local sh, write = place.sh, support.write

-- Saves checkpoint-N in place as the Hugging Face Trainer does, its marker last; `torn N` stops in
-- the middle of it.
local JOB = [[
torn() { mkdir -p out/checkpoint-$1; echo args >out/checkpoint-$1/training_args.bin
  head -c 70000 /dev/zero >out/checkpoint-$1/optimizer.pt; }
save() { torn $1; echo "{\"global_step\": $1}" >out/checkpoint-$1/trainer_state.json; }
]]

describe("a restart", function()
  local dir

  place.with_directory(function(made) dir = made end)

  -- The run of a job, which has to end with this code: what was said.
  local function run(code, job, options)
    write(dir .. "/job.sh", JOB .. job)
    return place.says(code, ("run --run r --dir out --to store --settle 0.2 %s -- bash job.sh")
      :format(options or ""))
  end

  local function listed() return place.listed "store" end

  it("does not save again what it has restored", function()
    run(0, "save 1; sleep 1; save 2")
    sh("rm -rf out")
    local said = run(0, "sleep 1")
    assert.is_truthy(said:find("restored", 1, true), said)
    assert.are.equal("checkpoint-1 checkpoint-2", listed())
  end)

  it("does not save again what is there and committed", function()
    run(0, "save 1")
    run(0, "sleep 1")
    assert.are.equal("checkpoint-1", listed())
  end)

  it("moves a torn checkpoint away, and goes on from the one before", function()
    run(0, "save 1")
    run(137, "torn 2; kill -9 $$")
    local said = run(0, "echo resume=${CKPT_RESUME##*/}; ls out")
    assert.is_truthy(said:find("resume=checkpoint-1\n", 1, true), said)
    assert.is_nil(said:find("\ncheckpoint-2\n", 1, true), said)
    local moved = sh("find out.ckpt/quarantine")
    assert.is_truthy(moved:find("checkpoint-2/optimizer.pt", 1, true), moved)
    place.has(said, "1 incomplete checkpoint moved to ")
  end)

  it("does not call incomplete what it moves away since it was marked bad", function()
    run(0, "save 1; sleep 1; save 2")
    place.must "mark bad store checkpoint-2"
    local said = run(0, "sleep 0.1")
    place.has(said, "1 checkpoint moved to ")
    assert.is_nil(said:find("incomplete checkpoint", 1, true), said)
  end)

  it("removes from quarantine what the store has for a day, and says so", function()
    run(0, "save 1")
    local old, unique = "out.ckpt/quarantine/1000000000-0123abcd",
      "out.ckpt/quarantine/1000000000-0123abce"
    for _, at in ipairs { old, unique } do
      place.must_sh(("mkdir -p %s && cp -a out/checkpoint-1 %s"):format(at, at))
    end
    write(dir .. "/" .. unique .. "/checkpoint-1/training_args.bin", "ARGS\n")
    local said = run(0, ("for i in $(seq 300); do [ -e %s ] || break; sleep 0.1; done"):format(old))
    place.has(said, "quarantine: 1 copy of ")
    place.has(said, " has as checkpoint-1 (commit ")
    place.has(said, "; 1 stays")
    assert.are.equal("", (sh("ls -d " .. old .. "* 2>/dev/null")))
    assert.are.equal("ARGS\n",
      support.read(dir .. "/" .. unique .. "/checkpoint-1/training_args.bin"))
  end)

  describe("of a checkpoint of twelve files", function()
    local saved = [[mkdir out/t; for i in $(seq 10); do head -c 50000 /dev/urandom >out/t/part-$i
      done; : >out/t/args; echo '{"global_step": 1}' >out/t/trainer_state.json
      mv out/t out/checkpoint-1]]
    local part = "out/checkpoint-1/part-7"

    --- What is said at the next start, and how much of the store's files was read then.
    local function again()
      os.remove(dir .. "/reads")
      local env = "env STORE_FILES=store/checkpoint-1/ STORE_READS=reads "
        .. place.preload "spec/ranks/store_reads.c"
      write(dir .. "/job.sh", "ls out/checkpoint-1 | wc -l; echo resume=${CKPT_RESUME##*/}")
      local said = place.sh_ends(0, ("%s '%s' run --run r --dir out --to store --settle 0.2 "
        .. "-- bash job.sh"):format(env, support.runner))
      place.has(said, "12\nresume=checkpoint-1\n")
      local both = "out/checkpoint-1 store/checkpoint-1"
      place.sh_ends(0, "diff -r --exclude=.ckpt-manifest.json " .. both)
      local sum = 0
      for line in (support.read(dir .. "/reads") or ""):gmatch "%d+" do sum = sum + line end
      return said, sum
    end

    before_each(function() run(0, saved) end)

    it("fetches the one that has other bytes", function()
      -- The same size and time, and no journal that speaks for it.
      place.sh_ends(0, ("rm -rf out.ckpt; f=%s; touch -r $f time; "
        .. "printf x | dd of=$f bs=1 seek=7 conv=notrunc 2>end; touch -r time $f"):format(part))
      local said, sum = again()
      place.has(said, "checkpoint-1: 1 of 12 files fetched; the others were here")
      assert.is_true(sum >= 50000 and sum < 60000, sum)
      local moved = sh("find out.ckpt/quarantine -type f | wc -l")
      assert.are.equal("12\n", moved)
    end)

    it("fetches those that are missing or cut", function()
      place.sh_ends(0, "rm out/checkpoint-1/part-1 && truncate -s 5 " .. part)
      local said, sum = again()
      place.has(said, "checkpoint-1: 2 of 12 files fetched; the others were here")
      assert.is_true(sum >= 100000 and sum < 110000, sum)
    end)

    it("fetches all where nothing is left of it", function()
      place.sh_ends(0, "rm -r out/checkpoint-1")
      local said, sum = again()
      assert.is_nil(said:find("files fetched", 1, true), said)
      assert.is_true(sum >= 500000, sum)
    end)
  end)

  it("commits what was whole and not yet committed when it was killed", function()
    run(137, "save 1; kill -9 $PPID; sleep 1")
    local said = run(0, "echo resume=${CKPT_RESUME##*/}")
    assert.is_truthy(said:find("resume=checkpoint-1\n", 1, true), said)
    assert.are.equal("checkpoint-1", listed())
  end)

  it("restores a file that was torn while it was written again", function()
    local pt = "python3 -c 'import zipfile; z = zipfile.ZipFile(\"out/last.pt\", \"w\"); "
      .. "z.writestr(\"a\", b\"1\" * 90000)'"
    run(0, pt)
    run(137, "truncate -s 40000 out/last.pt; kill -9 $$")
    local said = run(0, "wc -c <out/last.pt; echo resume=${CKPT_RESUME##*/}")
    assert.is_truthy(said:find("resume=last.pt\n", 1, true), said)
    assert.is_nil(said:find("^40000\n"), said)
    assert.are.equal("last.pt", listed())
  end)

  it("goes on from what another machine has committed since", function()
    local says = "; echo resume=${CKPT_RESUME##*/} has $(cat out/last.pt); "
    run(0, "echo step10 >out/w.tmp; mv out/w.tmp out/last.pt")
    sh("mkdir A && mv out out.ckpt A")
    run(0, "sleep 0.1" .. says .. "echo step20 >out/w.tmp; mv out/w.tmp out/last.pt")
    sh("rm -rf out out.ckpt && mv A/* .")
    local said = run(0, "sleep 0.5" .. says)
    assert.is_truthy(said:find("resume=last.pt has step20\n", 1, true), said)
    assert.is_truthy(listed():match("^last%.pt last%.pt%.~%d+$"), listed())
  end)

  it("resumes after a way back from the last commit, here and elsewhere", function()
    local says = "; echo resume=${CKPT_RESUME##*/}"
    run(0, "save 100; sleep 1; save 200")
    run(0, "save 110", "--restore checkpoint-100")
    local here = run(0, "sleep 0.1" .. says)
    assert.is_truthy(here:find("resume=checkpoint-110\n", 1, true), here)
    sh("rm -rf out out.ckpt")
    local elsewhere = run(0, "sleep 0.1" .. says)
    assert.is_truthy(elsewhere:find("resume=checkpoint-110\n", 1, true), elsewhere)
  end)

  it("keeps a directory that was renamed into place one checkpoint", function()
    run(0, "mkdir out/.w; echo one >out/.w/model.pt; mv out/.w out/1")
    assert.are.equal("1", listed())
    run(0, "sleep 1")
    assert.are.equal("1", listed())
    sh("rm out/1/model.pt")
    local said = run(0, "echo resume=${CKPT_RESUME##*/} has $(cat out/1/model.pt)")
    assert.is_truthy(said:find("resume=1 has one\n", 1, true), said)
  end)

  it("does not take a model file beside the checkpoints for one to resume from", function()
    local pt = "printf '\\002\\000\\000\\000\\000\\000\\000\\000{}' >out/w.tmp; "
      .. "mv out/w.tmp out/model.safetensors"
    run(0, "save 1; sleep 1; " .. pt)
    local said = run(0, "echo resume=${CKPT_RESUME##*/}")
    assert.is_truthy(said:find("resume=checkpoint-1\n", 1, true), said)
  end)

  it("does not go back to an older checkpoint that was added to", function()
    run(0, "save 1; sleep 1; save 2; sleep 1; save 3; sleep 1; echo {} >out/checkpoint-1/eval.json")
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3", listed())
    sh("rm -rf out")
    local said = run(0, "echo resume=${CKPT_RESUME##*/}")
    assert.is_truthy(said:find("resume=checkpoint-3\n", 1, true), said)
  end)

  it("does not take the beginning of a first checkpoint for one", function()
    run(137, "mkdir out/checkpoint-4; echo '{}' >out/checkpoint-4/config.json; kill -9 $$")
    assert.are.equal("", listed())
    local said = run(3, "echo resume=${CKPT_RESUME##*/}")
    assert.is_truthy(said:find("resume=\n", 1, true), said)
    assert.is_truthy(said:find("NOT proven whole: checkpoint-4 (", 1, true), said)
    assert.are.equal("", listed())
  end)

  it("does not touch what is there if the restore cannot work", function()
    run(0, "save 1")
    sh("rm out/checkpoint-1/trainer_state.json; chmod -R u+w store; " ..
      "echo '{}' >store/checkpoint-1/trainer_state.json")
    local said = run(5, "echo started")
    assert.is_nil(said:find("started", 1, true), said)
    assert.is_truthy(said:find("--restore NAME", 1, true), said)
    assert.are.equal("args\n", support.read(dir .. "/out/checkpoint-1/training_args.bin"))
  end)

  it("takes a file that the store has lost from the torn copy here, and saves it anew", function()
    run(0, "save 1")
    sh("rm out/checkpoint-1/trainer_state.json; chmod -R u+w store; " ..
      "echo other >store/checkpoint-1/training_args.bin")
    local said = run(0, "echo resume=${CKPT_RESUME##*/}; cat out/checkpoint-1/training_args.bin")
    place.has(said, "checkpoint-1: 1 of 3 files fetched")
    place.has(said, "resume=checkpoint-1\nargs\n")
    place.has(said, "committed checkpoint-1 (step 1, 3 files")
  end)
end)
