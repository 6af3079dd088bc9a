--- Ranks over directories whose whole checkpoints another target has, or none.
local place = require "place"
local support = require "support"
local await = support.await

describe("ranks with whole checkpoints", function()
  local dir, launches

  place.with_directory(function(made) dir, launches = made, 0 end)

  --- Ranks of a launch of `world`, each with its own directory: their codes, and what they said.
  local function launch(world, options, job)
    launches = launches + 1
    support.write(dir .. "/job.sh", [[
save() {
  mkdir $CKPT_DIR/.new && echo "weights $1 of $RANK in $LAUNCH" >$CKPT_DIR/.new/model-$RANK.bin &&
  touch $CKPT_DIR/.new/DONE && mv $CKPT_DIR/.new $CKPT_DIR/checkpoint-$1
}
await() { until [ -e "$1" ]; do sleep 0.02; done; }
# None ends before both have begun.
meet() { touch $LAUNCH.$RANK; await $LAUNCH.0 && await $LAUNCH.1; }
echo "from ${CKPT_RESUME##*/}."
]] .. job)
    local codes, said = {}, {}
    for rank = 0, world - 1 do
      os.remove(("%s/%d.code"):format(dir, rank))
      os.execute(("cd '%s' && { LAUNCH=%d RANK=%d '%s' run --dir out-%d --run r " ..
        "--launch-id l%d --rank %d --world %d --rank-wait 20s -p builtin --settle 0.2 " ..
        "--take-over %s -- sh job.sh " ..
        ">%d.log 2>&1; echo $? >%d.code; } &"):format(dir, launches, rank, support.runner, rank,
        launches, rank, world, options, rank, rank))
    end
    for rank = 0, world - 1 do
      codes[rank + 1] = await("the end of rank " .. rank, function()
        return tonumber(support.read(("%s/%d.code"):format(dir, rank)) or "")
      end, 60)
      said[rank] = support.read(("%s/%d.log"):format(dir, rank))
    end
    return codes, said
  end

  local SAVE = "save 1; await store/checkpoint-1/.ckpt-manifest.json; " ..
    "save 2; await store/checkpoint-2/.ckpt-manifest.json"

  local function saved()
    local codes, said = launch(2, "--to store", SAVE)
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
  end

  local function stands()
    local text = place.must_sh "ls -d out-*/checkpoint-*"
    return (text:gsub("\n", " "))
  end

  local ALL = "out-0/checkpoint-1 out-0/checkpoint-2 out-1/checkpoint-1 out-1/checkpoint-2 "

  local function quarantined()
    return tonumber(place.must_sh
      "find out-*.ckpt -path '*/quarantine/*/checkpoint-[12]' -prune | wc -l")
  end

  --- No rank begins, and nothing is moved; `text` says where the checkpoints are from.
  local function are_refused(world, options, text)
    local codes, said = launch(world, options, "touch begun")
    for rank = 0, world - 1 do
      assert.are.equal(11, codes[rank + 1], said[rank])
      place.has(said[rank], "out-0 has 2 checkpoints")
      place.has(said[rank], text)
      place.has(said[rank], "--fresh")
    end
    assert.are.equal(ALL, stands())
    assert.is_nil(support.read(dir .. "/begun"))
  end

  it("do not begin with another target, however often: the first one is named", function()
    saved()
    for _ = 1, 2 do are_refused(2, "--to storeX", dir .. "/store,") end
    are_refused(3, "--to storeX", dir .. "/store,")
    -- The right one goes on.
    local codes, said = launch(2, "--to store", "meet")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    place.has(said[0], "from checkpoint-2.")
    place.has(said[1], "from checkpoint-2.")
  end)

  it("are refused, too, where none but the second rank has them", function()
    saved()
    place.must_sh "rm -r out-0 out-0.ckpt"
    local codes, said = launch(2, "--to storeX", "sleep 1")
    assert.are.equal(11, codes[2], said[0] .. said[1])
    place.has(said[1], "out-1 has 2 checkpoints")
    assert.are.equal("out-1/checkpoint-1 out-1/checkpoint-2 ", stands())
  end)

  it("begin anew there with --fresh, and what they had is in quarantine", function()
    saved()
    local codes, said = launch(2, "--to storeX --fresh",
      "save 3; await storeX/checkpoint-3/.ckpt-manifest.json")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    place.has(said[0], "from .")
    assert.are.equal("out-0/checkpoint-3 out-1/checkpoint-3 ", stands())
    assert.are.equal(4, quarantined())
    -- Once it is said for good, it takes nothing away.
    codes, said = launch(2, "--to storeX --fresh", "meet")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    place.has(said[0], "from checkpoint-3.")
    assert.are.equal(4, quarantined())
  end)

  it("are told, on the way back to the first target, whose checkpoints make way", function()
    saved()
    launch(2, "--to storeX --fresh", "save 3; await storeX/checkpoint-3/.ckpt-manifest.json")
    local codes, said = launch(2, "--to store", "meet")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    for rank = 0, 1 do
      place.has(said[rank], "from checkpoint-2.")
      place.has(said[rank], "1 checkpoint that is whole goes to quarantine")
      place.has(said[rank], ("saved to file://%s/storeX: with --to file://%s/storeX it goes on "
        .. "from there"):format(dir, dir))
      place.has(said[rank], "it is of no commit here, and newer than the last one (it was saved to")
      place.lacks(said[rank], "torn")
      place.has(said[rank], "1 checkpoint moved to")
    end
    -- As it says.
    codes, said = launch(2, "--to storeX", "meet")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    place.has(said[0], "from checkpoint-3.")
    place.has(said[1], "from checkpoint-3.")
  end)

  --- Three of A are older in time than two of B, which have the names and sizes of A's first ones.
  local function went_there_and_back(more)
    local codes, said = launch(2, "--to store" .. more, SAVE ..
      "; save 3; await store/checkpoint-3/.ckpt-manifest.json")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    codes, said = launch(2, "--to storeX --fresh" .. more, (SAVE:gsub("store/", "storeX/")))
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
  end

  local THREE = "out-0/checkpoint-3 out-1/checkpoint-3 "

  local function must_go_on_from_the_third(world, options)
    for _ = 1, 2 do
      local codes, said = launch(world, "--to store" .. options, world > 1 and "meet" or "")
      for rank = 0, world - 1 do
        assert.are.equal(0, codes[rank + 1], said[rank])
        place.has(said[rank], "from checkpoint-3.")
      end
    end
    assert.are.equal("store/checkpoint-1\nstore/checkpoint-2\nstore/checkpoint-3\n",
      place.must_sh "ls -d store/checkpoint-*")
  end

  it("leave those of another target behind that have the names and sizes of older ones", function()
    for _, options in ipairs { "", " --restore-parts own" } do
      went_there_and_back(options)
      must_go_on_from_the_third(2, options)
      assert.are.equal(THREE, stands())
      place.must_sh "rm -r out-* store storeX"
    end
  end)

  it("leave them behind, too, where they go on from one that is asked for by name", function()
    went_there_and_back("")
    local codes, said = launch(2, "--to store --restore checkpoint-2", "meet")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    for rank = 0, 1 do
      place.has(said[rank], "from checkpoint-2.")
      place.has(said[rank], "it is of no commit here, and newer than the last one")
    end
    assert.are.equal("out-0/checkpoint-2 out-1/checkpoint-2 ", stands())
    must_go_on_from_the_third(2, "")
  end)

  it("leave them behind where nothing but a marker tells that they are whole", function()
    local marked = " --marker DONE"
    went_there_and_back(marked)
    place.must_sh "rm -r out-*.ckpt"
    must_go_on_from_the_third(2, marked)
  end)

  it("do not begin where the target was emptied", function()
    saved()
    place.must_sh "rm -r store"
    are_refused(2, "--to store", "another log by now")
  end)

  it("do not begin over those that were there before ckpt-lua was", function()
    place.must_sh [[
      for at in out-0/checkpoint-1 out-0/checkpoint-2 out-1/checkpoint-1 out-1/checkpoint-2; do
        mkdir -p $at; echo weights >$at/model.bin; touch $at/DONE
      done]]
    for _ = 1, 2 do are_refused(2, "--to store --marker DONE", "nothing is known of where") end
  end)

  --- A launch that is killed when rank 0 has seen a checkpoint, and none is saved.
  local function killed()
    local codes, said = launch(2, "--to store", [[
      if [ $RANK = 0 ]; then
        save 1
        until grep -qs '"complete"' $CKPT_DIR.ckpt/journal.jsonl; do sleep 0.05; done
        touch seen
      fi
      await seen; kill -9 $PPID]])
    assert.are.same({ 137, 137 }, codes, said[0] .. said[1])
  end

  it("begin anew from what a launch before them left, that died before its first commit", function()
    killed()
    local codes, said = launch(2, "--to store", "meet")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    place.has(said[0], "from .")
    assert.are.equal(1, quarantined())
  end)

  it("know a target that was moved", function()
    killed()
    place.must_sh "mv store moved"
    local codes, said = launch(2, "--to moved", "meet")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    assert.are.equal(1, quarantined())
  end)

  it("save them to the new target with --restore never, where they stand", function()
    saved()
    local codes, said = launch(2, "--to storeX --restore never", "true")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    place.has(said[0], "from .")
    assert.are.equal(ALL, stands())
    place.must_sh "test -e storeX/checkpoint-2/.ckpt-manifest.json"
    codes, said = launch(2, "--to storeX", "meet")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    place.has(said[1], "from checkpoint-2.")
  end)

  --- One task in the directory of rank 0, with these options: what it said.
  local function alone(code, options, job)
    local codes, said = launch(1, options, job or "true")
    assert.are.same({ code }, codes, said[0])
    return said[0]
  end

  local function has_checkpoints(store)
    return place.must_sh(("ls -d %s/checkpoint-* 2>/dev/null || true"):format(store)) ~= ""
  end

  it("are no task's alone to take to another target: what is here is one rank's part", function()
    saved()
    for _ = 1, 2 do
      local said = alone(11, "--to storeX", "touch begun")
      place.has(said, "2 checkpoints of which one rank's part is here")
      place.has(said, dir .. "/store,")
      place.has(said, "--fresh")
      assert.are.equal(ALL, stands())
    end
    assert.is_nil(support.read(dir .. "/begun"))
    local said = alone(0, "--to storeX --restore never")
    place.has(said, "one of 2 ranks' parts")
    assert.are.equal(ALL, stands())
    said = alone(0, "--to storeX --fresh")
    place.has(said, "from .")
    assert.are.equal(2, quarantined())
    assert.is_false(has_checkpoints("storeX"))
    -- The first target has the whole.
    said = alone(0, "--to store", "cat $CKPT_DIR/checkpoint-2/model-*.bin")
    place.has(said, "weights 2 of 0 in 1\nweights 2 of 1 in 1")
  end)

  it("are a task's alone to take to another target, where each rank has the same files", function()
    local codes, said = launch(2, "--to store", "RANK=all; LAUNCH=one; " .. SAVE)
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    place.has(alone(0, "--to storeX"), "from checkpoint-2.")
    place.must_sh "test -e storeX/checkpoint-2/.ckpt-manifest.json"
    place.must_sh "rm -r out-0* && mv out-1 out-0 && mv out-1.ckpt out-0.ckpt"
    place.has(alone(0, "--to storeY"), "from checkpoint-2.")
  end)

  it("are not those of another number of ranks to take to another target", function()
    local codes, said = launch(3, "--to store", SAVE)
    assert.are.same({ 0, 0, 0 }, codes, said[0] .. said[1] .. said[2])
    codes, said = launch(2, "--to storeX --restore never", "true")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    place.has(said[0], "one of 3 ranks' parts")
    assert.is_false(has_checkpoints("storeX"))
  end)

  it("leave a part that was never committed to no task alone", function()
    killed()
    local said = alone(0, "--to store")
    place.has(said, "from .")
    place.has(said, "one of 2 ranks' parts")
    assert.are.equal(1, quarantined())
    assert.is_false(has_checkpoints("store"))
  end)

  it("leave a part before the newest to a task alone, which had the whole since", function()
    saved()
    local said = alone(0, "--to store", "save 3; await store/checkpoint-3/.ckpt-manifest.json")
    place.has(said, "from checkpoint-2.")
    place.has(alone(0, "--to storeX"), "from checkpoint-3.")
  end)

  -- Writes it in pieces, and is killed when one is there, or before all of it was seen.
  local PIECES = [[
    python3 -c 'import sys, zipfile
z = zipfile.ZipFile(sys.argv[1], "w"); z.writestr("a", b"1" * 90000); z.close()' zip-$RANK
    some() { exec 5>$CKPT_DIR/step=5.ckpt; head -c 1000 $1 >&5
      until grep -qs '"open"' $CKPT_DIR.ckpt/journal.jsonl; do sleep 0.05; done; sleep 0.5; }
    torn() { some /dev/zero; kill -9 $PPID; }
    whole() { some zip-$RANK; sleep 0.5; tail -c +1001 zip-$RANK >&5; sleep 0.5
      kill -STOP $PPID; exec 5>&-
      kill -9 $PPID; }
  ]]

  it("know whose part it is by who wrote it last", function()
    alone(137, "--to store", PIECES .. "torn")
    local codes, said = launch(2, "--to store", PIECES .. "whole")
    assert.are.same({ 137, 137 }, codes, said[0] .. said[1])
    place.has(alone(0, "--to store"), "one of 2 ranks' parts")
    place.lacks(place.must_sh "ls store", "step=5")
  end)

  it("leave alone what a task alone wrote last", function()
    local codes, said = launch(2, "--to store", PIECES .. "torn")
    assert.are.same({ 137, 137 }, codes, said[0] .. said[1])
    alone(137, "--to store", PIECES .. "whole")
    place.has(alone(0, "--to store"), "from step=5.ckpt.")
  end)

  it("leave what they got back whole to a task alone, for any target", function()
    saved()
    place.must_sh "rm -r out-*"
    local codes, said = launch(2, "--to store", "meet")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    place.has(alone(0, "--to storeX"), "from checkpoint-2.")
    place.must_sh "ls storeX/checkpoint-2/model-0.bin storeX/checkpoint-2/model-1.bin"
  end)

  it("leave no task alone the part that --restore-parts own brought", function()
    saved()
    place.must_sh "rm -r out-*"
    local codes, said = launch(2, "--to store --restore-parts own", "meet")
    assert.are.same({ 0, 0 }, codes, said[0] .. said[1])
    place.has(alone(11, "--to storeX"), "1 checkpoint of which one rank's part is here")
  end)

  it("are one task's to save to another target", function()
    local codes, said = launch(1, "--to store", SAVE)
    assert.are.same({ 0 }, codes, said[0])
    codes, said = launch(1, "--to storeX", "true")
    assert.are.same({ 0 }, codes, said[0])
    place.has(said[0], "from checkpoint-2.")
    place.must_sh "test -e storeX/checkpoint-2/.ckpt-manifest.json"
  end)
end)
