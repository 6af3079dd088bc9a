--- Files that name checkpoints, where several ranks save together.
local place = require "place"
local support = require "support"
local await = support.await

-- As DeepSpeed does with a directory on each node: each rank its own file, and `latest` beside it.
local JOB = [[
zip() { python3 -c 'import sys, zipfile
z = zipfile.ZipFile(sys.argv[1], "w"); z.writestr("a", b"1" * 90000); z.close()' "$1"; }
shard() { echo "$CKPT_DIR/global_step$1/zero_pp_rank_$2_optim_states.pt"; }
part() { mkdir -p "$CKPT_DIR/global_step$1"; shard $1 $RANK; }
point() { printf global_step$1 >$CKPT_DIR/latest; }
save() { zip "$(part $1)"; point $1; }
torn() { zip whole-$RANK; head -c 40000 whole-$RANK >"$(part $1)"; point $1; }
load() { if [ -f $CKPT_DIR/latest ]; then n=$(tr -cd 0-9 <$CKPT_DIR/latest)
    [ -f "$(shard $n 0)" ] && [ -f "$(shard $n 1)" ] || { echo "latest lies"; exit 1; }
    echo "rank $RANK loaded $(cat $CKPT_DIR/latest)"
  else echo "rank $RANK loaded nothing"; fi; }
await() { until [ -e "$1" ]; do sleep 0.05; done; }
committed() { await store/global_step$1/.ckpt-manifest.json; }
both() { touch up-$LAUNCH-$RANK; await up-$LAUNCH-0; await up-$LAUNCH-1; }
load; both
]]

describe("of two ranks", function()
  local dir, launches = nil, 0

  place.with_directory(function(made) dir = made end)

  --- Both of them, each with this job in a directory of its own; what each said.
  --- `codes`: how they may end.
  local function run(job, codes)
    local said = {}
    launches = launches + 1
    support.write(dir .. "/job.sh", JOB .. job)
    for rank = 0, 1 do
      os.remove(("%s/%d.code"):format(dir, rank))
      os.execute(("cd '%s' && { LAUNCH=%d RANK=%d '%s' run --dir out-%d --to store --run r " ..
        "--launch-id l%d --rank %d --world 2 --rank-wait 20s --settle 0.5 --take-over -- " ..
        "bash job.sh >%d.log 2>&1; echo $? >%d.code; } &"):format(dir, launches, rank,
        support.runner, rank, launches, rank, rank, rank))
    end
    for rank = 0, 1 do
      local ended = await("the end of rank " .. rank, function()
        return tonumber(support.read(("%s/%d.code"):format(dir, rank)) or "")
      end, 90)
      said[rank] = support.read(("%s/%d.log"):format(dir, rank))
      assert.is_truthy((codes or "0"):find(ended, 1, true), ended .. "\n" .. said[rank])
    end
    return said
  end

  local function both_load(said, name)
    for rank = 0, 1 do
      place.has(said[rank], ("rank %d loaded %s\n"):format(rank, name))
      assert.are.equal(name, support.read(("%s/out-%d/latest"):format(dir, rank)))
    end
  end

  local TWO = "save 1; committed 1; sleep 1; save 2; committed 2"

  it("rank 0 saves them, once", function()
    run(TWO)
    assert.are.equal("store/.ckpt/with\n", (place.sh("find store -name with")))
    local saved = support.lines((place.sh("find store/.ckpt/with -name latest")))
    assert.are.equal(2, #saved)
  end)

  it("each gets its own back after the loss of both directories", function()
    run(TWO)
    place.sh("rm -rf out-0 out-1")
    both_load(run("true", "0 3"), "global_step2")
  end)

  it("the one whose directory was lost gets it back, and the other keeps its own", function()
    run(TWO)
    place.sh("rm -rf out-1 out-1.ckpt")
    both_load(run("true", "0 3"), "global_step2")
    run((TWO:gsub("%f[%d][12]%f[%D]", { ["1"] = "3", ["2"] = "4" })))
    place.sh("rm -rf out-0 out-0.ckpt")
    both_load(run("true"), "global_step4")
  end)

  it("each one's is put right where a save was torn", function()
    run(TWO)
    run("if [ $RANK = 0 ]; then save 3; else torn 3; fi; kill -9 $$", "137")
    both_load(run("true", "0 3"), "global_step2")
    place.has((place.sh "find out-1.ckpt/quarantine"), "global_step3")
    -- It has nothing torn: the other's part is missing. It stays, and is not loaded; or is put
    -- aside, where this rank had time to learn that the other one has none.
    place.has((place.sh "ls out-0; find out-0.ckpt/quarantine"), "global_step3")
  end)

  it("each one's is put right where only one of them lost a directory in a save", function()
    run(TWO)
    run("save 3; kill -9 $$", "137")
    place.sh("rm -rf out-1 out-1.ckpt")
    both_load(run("true", "0 3"), "global_step2")
    both_load(run("true", "0 3"), "global_step2")
  end)
end)
