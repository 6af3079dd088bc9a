--- Files that name checkpoints ("latest"), and what a start makes of those that lie.

local place = require "place"
local support = require "support"
local sh, write = place.sh, support.write

-- Saves as DeepSpeed does: the first rank's files, `latest`, and the last rank's file late. A start
-- loads what `latest` names, or fails.
local JOB = [[
zip() { python3 -c 'import sys, zipfile
z = zipfile.ZipFile(sys.argv[1], "w"); z.writestr("a", b"1" * 90000); z.close()' "$1"; }
first() { mkdir -p "out/global_step$1"; cp shard "out/global_step$1/mp_rank_00_model_states.pt"
  cp shard "out/global_step$1/zero_pp_rank_0_optim_states.pt"; printf global_step$1 >out/latest; }
save() { first $1; cp shard "out/global_step$1/zero_pp_rank_1_optim_states.pt"; }
torn() { first $1; head -c 40000 shard >"out/global_step$1/zero_pp_rank_1_optim_states.pt"; }
load() { if [ -f out/latest ]; then
    [ -f "out/$(cat out/latest)/zero_pp_rank_1_optim_states.pt" ] || { echo "latest lies"; exit 1; }
    echo "loaded $(cat out/latest), resume=${CKPT_RESUME##*/}"
  else echo "loaded nothing"; fi; }
[ -f shard ] || zip shard
load
]]

describe("a start that finds a pointer", function()
  local dir

  place.with_directory(function(made) dir = made end)

  local function run(code, job, options)
    write(dir .. "/job.sh", JOB .. job)
    return place.says(code, ("run --run r --dir out --to store --settle 1s %s "
      .. "-- bash job.sh"):format(options or ""))
  end

  local function has(said, text) assert.is_truthy(said:find(text, 1, true), said) end

  it("puts it back as it was saved, if it names a checkpoint that goes to quarantine", function()
    run(137, "save 1; sleep 2.5; save 2; sleep 2.5; torn 3; kill -9 $$")
    assert.are.equal("global_step3", sh("cat out/latest"))
    local said = run(0, "true")
    has(said, "loaded global_step2, resume=global_step2\n")
    assert.are.equal("global_step2", sh("cat out/latest"))
    has(sh("ls out.ckpt/quarantine/*"), "global_step3")
    assert.are.equal("global_step3", sh("cat out.ckpt/quarantine/*/latest"))
    has(run(0, "save 3; sleep 2"), "loaded global_step2")
  end)

  it("does so again, where the start before died between", function()
    run(0, "save 1; sleep 2.5; save 2; sleep 2.5")
    sh("printf global_step3 >out/latest")
    has(run(0, "true"), "loaded global_step2, resume=global_step2\n")
  end)

  -- DeepSpeed empties it, and writes it. With an empty one it begins from nothing.
  it("puts it back, if its job was killed when it was empty", function()
    run(0, "save 1; sleep 2.5; save 2; sleep 2.5; : >out/latest")
    has(run(0, "true"), "loaded global_step2, resume=global_step2\n")
    has(run(137, ": >out/latest; kill -9 $$"), "loaded global_step2, ")
    has(run(0, "true"), "loaded global_step2, ")
    run(137, "cp -r out/global_step2 out/global_step3; sleep 2.5; : >out/latest; kill -9 $$")
    has(run(0, "true"), "loaded global_step3, ")
  end)

  it("has put it back before what it named is moved away, where it may die", function()
    run(137, "save 1; sleep 2.5; save 2; sleep 2.5; torn 3; kill -9 $$")
    local dying = "DIE_MOVING=global_step3 " .. place.preload "spec/runner/die_moving.c"
    local _, code = place.apart("run --run r --dir out --to store --settle 1s -- bash job.sh",
      dying)
    assert.are.equal(137, code)
    assert.are.equal("global_step2", sh("cat out/latest"))
    has(sh("ls out"), "global_step3")
    has(run(0, "true"), "loaded global_step2, resume=global_step2\n")
    has(sh("ls out.ckpt/quarantine/*"), "global_step3")
  end)

  it("does so where only the last rank's file is missing, which proves nothing torn", function()
    run(137, "save 1; sleep 2.5; save 2; sleep 2.5; first 3; kill -9 $$")
    has(run(3, "true"), "loaded global_step2, resume=global_step2\n") -- 3 is not proven whole
  end)

  it("leaves it, if what it names is here and whole, though it was not committed", function()
    run(137, "save 1; sleep 2.5; save 2; kill -9 $PPID; sleep 1")
    has(run(0, "true"), "loaded global_step2, resume=global_step2\n")
  end)

  it("makes it name what is whole here, though only an older one is in the store", function()
    run(137, "save 1; sleep 2.5; save 2; torn 3; kill -9 $PPID; sleep 1")
    has(run(0, "true"), "loaded global_step2, resume=global_step2\n")
  end)

  it("takes it away, where nothing is there that it could name", function()
    run(137, "torn 1; kill -9 $$")
    has(run(0, "true"), "loaded nothing")
    has(run(0, "true"), "loaded nothing")
  end)

  it("does the same for a link, and for TensorFlow's text", function()
    run(0, "save 1; sleep 2.5; save 2; ln -s global_step2 out/last; sleep 2.5")
    sh("rm out/last; ln -s global_step7 out/last")
    sh("printf 'model_checkpoint_path: \"global_step7\"\\n' >out/checkpoint")
    run(0, "true")
    assert.are.equal("global_step2\n", sh("readlink out/last"))
    assert.are.equal("model_checkpoint_path: \"global_step2\"\n", sh("cat out/checkpoint"))
  end)

  -- TensorFlow writes the path from its own directory, where the checkpoints lie further down.
  it("leaves one that names a checkpoint further down, as long as that is whole", function()
    local text = "model_checkpoint_path: \"deep/global_step1\"\n"
    run(0, "save 1; mkdir out/deep; mv out/global_step1 out/deep/; rm out/latest; sleep 1")
    write(dir .. "/out/checkpoint", text)
    has(run(0, "true"), "loaded nothing")
    assert.are.equal(text, sh("cat out/checkpoint"))
  end)

  it("takes a dot and a slash for no way down", function()
    run(137, "save 1; sleep 2.5; torn 3; printf ./global_step3 >out/latest; kill -9 $$")
    has(run(0, "true"), "loaded global_step1, resume=global_step1\n")
  end)

  -- Without it a framework finds nothing that names its checkpoints, and begins anew.
  it("gets it back with its checkpoint under any policy, unless that says `with = {}`", function()
    write(dir .. "/mine.lua", "return { api = 1, restore = keep.last(1) }\n")
    write(dir .. "/alone.lua", "return { api = 1, with = {} }\n")
    for _, policy in ipairs { "builtin", "retention", "./mine.lua", "./alone.lua" } do
      run(0, "save 1; sleep 2", "--policy " .. policy)
      sh("rm -rf out out.ckpt")
      local said = run(0, "true", "--policy " .. policy)
      has(said, policy == "./alone.lua" and "loaded nothing" or "loaded global_step1, resume=")
      sh("rm -rf out out.ckpt store")
    end
  end)

  it("leaves one that is missed as it was, where it leads to another directory", function()
    place.must_sh "mkdir else else/global_step1"
    run(0, "first 1; printf $PWD/else/global_step1 >out/latest; sleep 2.5; mkdir out/global_step2; "
      .. "cp shard out/global_step2/mp_rank_00_model_states.pt; rm out/latest; sleep 2.5")
    write(dir .. "/job.sh", "cat out/latest")
    has(place.says(0, "run --run r --dir out --to store --settle 1s -- bash job.sh"),
      "else/global_step1")
  end)

  it("leaves what names no checkpoint", function()
    run(0, "save 1; ln -s nowhere out/data; printf 1.0 >out/version; sleep 2.5",
      "-o keep_last=3")
    run(0, "true")
    assert.are.equal("nowhere\n", sh("readlink out/data"))
    assert.are.equal("1.0", sh("cat out/version"))
  end)
end)

-- Each is a file of text by its name, as LightGBM's checkpoints are.
describe("a pointer of a framework that is known", function()
  local dir

  place.with_directory(function(made) dir = made end)

  for _, name in ipairs { "latest", "last_checkpoint", "latest_checkpoint.txt",
    "latest_checkpointed_iteration.txt", "checkpoint" } do
    it("comes back with its checkpoint: " .. name, function()
      local STEP = name:find "iteration" and "2" or "iter_0000002"
      local TEXT = name == "checkpoint" and ('model_checkpoint_path: "%s"'):format(STEP) or STEP
      write(dir .. "/job.sh", ("mkdir -p out/new; head -c 9000 /dev/urandom >out/new/w; "
        .. "mv out/new out/iter_0000002; printf '%s' >out/%s; sleep 2.5"):format(TEXT, name))
      place.says(0, "run --run r --dir out --to store --settle 1s -- bash job.sh")
      place.must_sh "rm -r out"
      place.says(0, "run --run r --dir out --to store --settle 1s -- true")
      assert.are.equal(TEXT, sh("cat out/" .. name))
    end)
  end
end)

-- Lightning with save_last="link": each file is renamed into place, and the link is made anew.
local LINKS = [[
save() { echo $1 >out/w.tmp; mv out/w.tmp out/epoch=$1-step=$1.ckpt
  rm -f out/last.ckpt; ln -s epoch=$1-step=$1.ckpt out/last.ckpt; }
[ -e out/last.ckpt ] && echo "last has $(cat out/last.ckpt)"
]]

describe("a link to the newest checkpoint", function()
  local dir

  place.with_directory(function(made) dir = made end)

  local function run(job, options)
    write(dir .. "/job.sh", LINKS .. job)
    return place.says(0, ("run --run r --dir out --to store --settle 1s %s -- bash job.sh")
      :format(options or ""))
  end

  it("comes back with it, whatever it is called", function()
    run("save 1; sleep 1; save 2; ln -s last.ckpt out/beside; ln -s epoch=2-step=2.ckpt out/mine")
    sh("rm -rf out")
    assert.is_truthy(run("true"):find("last has 2\n", 1, true))
    assert.are.equal("epoch=2-step=2.ckpt\n", sh("readlink out/last.ckpt"))
    assert.are.equal("epoch=2-step=2.ckpt\n", sh("readlink out/mine"))
    sh("rm -rf back && '" .. support.runner .. "' restore store --dir back")
    assert.are.equal("2\n", sh("cat back/last.ckpt"))
  end)

  it("comes back where a policy saves nothing else beside it", function()
    write(dir .. "/p.lua", 'return { api = 1, unit = { "*step={step}.ckpt" } }')
    run("save 1; sleep 1; save 2", "-p p.lua")
    sh("rm -rf out")
    assert.is_truthy(run("true", "-p p.lua"):find("last has 2\n", 1, true))
  end)

  it("comes back though its job was killed before it led to the newest", function()
    run("save 1; sleep 2; save() { echo $1 >out/w.tmp; mv out/w.tmp out/epoch=$1-step=$1.ckpt; };"
      .. " save 2")
    assert.are.equal("epoch=1-step=1.ckpt\n", sh("readlink out/last.ckpt"))
    sh("rm -rf out")
    assert.is_truthy(run("true"):find("last has 2\n", 1, true))
    assert.are.equal("epoch=2-step=2.ckpt\n", sh("readlink out/last.ckpt"))
  end)

  -- Lightning removes the link, and makes it anew. Killed between, a job begins from nothing.
  it("comes back, and leads to the newest, where its job was killed before it was made", function()
    local UNLINKED = "save() { echo $1 >out/w.tmp; mv out/w.tmp out/epoch=$1-step=$1.ckpt; "
      .. "rm out/last.ckpt; }; save 2"
    run("save 1; sleep 2; " .. UNLINKED)
    assert.is_truthy(run("true"):find("last has 2\n", 1, true))
    assert.are.equal("epoch=2-step=2.ckpt\n", sh("readlink out/last.ckpt"))
    assert.is_truthy(run("true"):find("last has 2\n", 1, true))
    assert.are.equal("", sh("ls out.ckpt/quarantine 2>/dev/null || true"))
  end)

  it("does so where what it leads to was not committed either", function()
    local ZIP = [[mkzip() { python3 -c 'import sys, zipfile
z = zipfile.ZipFile(sys.argv[1], "w"); z.writestr("a", b"1" * 90000); z.close()' "$1"; }
]]
    run("save 1; sleep 2")
    sh("rm out/last.ckpt")
    place.must_sh(ZIP .. "mkzip 'out/epoch=2-step=2.ckpt'")
    run("true")
    assert.are.equal("epoch=2-step=2.ckpt\n", sh("readlink out/last.ckpt"))
  end)

  it("does not come where the last ones had none, or there is another", function()
    local UNLINKED = "save() { echo $1 >out/w.tmp; mv out/w.tmp out/epoch=$1-step=$1.ckpt; "
      .. "rm -f out/last.ckpt; }; "
    run("save 1; sleep 2; " .. UNLINKED ..
      "save 2; sleep 1; save 3; sleep 1; save 4; sleep 1; save 5")
    run("true")
    assert.are.equal("", sh("readlink out/last.ckpt || true"))
    run("ln -s epoch=4-step=4.ckpt out/latest.ckpt")
    run("true")
    assert.are.equal("epoch=4-step=4.ckpt\n", sh("readlink out/latest.ckpt"))
  end)

  it("leads to the checkpoint that was asked for by name", function()
    local UNLINKED = "save() { echo $1 >out/w.tmp; mv out/w.tmp out/epoch=$1-step=$1.ckpt; "
      .. "rm -f out/last.ckpt; }; "
    run("save 1; sleep 2; " .. UNLINKED .. "save 2; sleep 2; save 3")
    run("true", "--restore epoch=2-step=2.ckpt")
    assert.are.equal("epoch=2-step=2.ckpt\n", sh("readlink out/last.ckpt"))
  end)

  it("is left alone where it was a checkpoint by itself before", function()
    run("echo own >out/w.tmp; mv out/w.tmp out/last.ckpt; sleep 1; save 2")
    assert.is_nil(run("true"):find("NOT put back", 1, true))
    assert.are.equal("epoch=2-step=2.ckpt\n", sh("readlink out/last.ckpt"))
  end)
end)

-- Saves as Ray Train does: all that its snapshot lists has to be there at a start.
local LISTS = [[
S=out/checkpoint_manager_snapshot.json
list() { printf '{"checkpoint_results": [' >$S; local sep=
  for n; do printf '%s{"checkpoint_dir_name": "checkpoint_00000%s"}' "$sep" $n >>$S; sep=,; done
  printf ']}' >>$S; }
save() { mkdir -p out/checkpoint_00000$1; head -c ${2:-5000} /dev/zero >out/checkpoint_00000$1/w; }
hf() { mkdir -p out/checkpoint-$1; echo args >out/checkpoint-$1/training_args.bin
  echo "{\"best_model_checkpoint\": \"out/checkpoint-$2\"}" >out/checkpoint-$1/trainer_state.json; }
if [ -f $S ]; then for n in $(grep -o 'checkpoint_0[0-9]*' $S); do
  [ -d out/$n ] || { echo "the snapshot lies"; exit 1; }; done; echo "loaded $(tr -cd 0-9 <$S)"; fi
]]

describe("what is named beside the newest checkpoint", function()
  local dir

  place.with_directory(function(made) dir = made end)

  local function run(job)
    write(dir .. "/job.sh", LISTS .. job)
    return place.ckpt("run --run r --dir out --to store --settle 1s -- bash job.sh")
  end

  local function has(said, text) assert.is_truthy(said:find(text, 1, true), said) end

  it("is restored with it", function()
    run("save 1; list 1; sleep 2.5; save 2; list 1 2; sleep 2.5; save 3; list 2 3; sleep 2.5")
    sh("rm -rf out")
    has(run("true"), "loaded 000002000003\n")
    assert.are.equal("checkpoint_000002\ncheckpoint_000003\n", sh("ls out | grep 0"))
  end)

  it("is restored with it, if only the checkpoint itself names it", function()
    run("hf 1 1; sleep 3; hf 2 1; sleep 3; hf 3 1; sleep 6")
    sh("rm -rf out")
    run("true")
    assert.are.equal("checkpoint-1\ncheckpoint-3\n", sh("ls out"))
  end)

  -- Ray keeps all of them by default, and starts with none missing.
  it("is restored however much it is, where the framework needs it", function()
    run("save 1 300000; list 1; sleep 2.5; save 2; list 1 2; sleep 2.5; save 3; list 1 2 3; "
      .. "sleep 2.5")
    sh("rm -rf out")
    has(run("true"), "loaded 000001000002000003\n")
  end)

  it("ends the start with a remedy, where it is gone and the framework needs it", function()
    run("save 1; list 1; sleep 2.5; save 2; list 1 2; sleep 2.5")
    sh("rm -rf out store/checkpoint_000001")
    local said, code = run("true")
    assert.are_not.equal(0, code)
    has(said, "Ray Train would not start")
    has(said, "keep.last(N)")
    assert.is_nil(said:find("the snapshot lies", 1, true))
  end)
end)
