--- Ranks with directories of their own that start again as another number, on other nodes.
local place = require "place"
local support = require "support"

-- Says what it begins from, with all shards of it, and saves its own shard of the next one.
local JOB = [[
echo "from ${CKPT_RESUME##*/}:" $([ -z "$CKPT_RESUME" ] || cat $CKPT_RESUME/shard-*)
mkdir $CKPT_DIR/.new && echo "$STEP.$RANK/$WORLD" >$CKPT_DIR/.new/shard-$RANK &&
mv $CKPT_DIR/.new $CKPT_DIR/checkpoint-$STEP
until [ -e store/checkpoint-$STEP/.ckpt-manifest.json ]; do sleep 0.05; done
]]

describe("ranks that start again as another number", function()
  local dir

  place.with_directory(function(made) dir = made end)
  before_each(function() support.write(dir .. "/job.sh", JOB) end)

  --- What the shards of a world say, in order.
  local function shards(step, world)
    local all = {}
    for rank = 0, world - 1 do all[#all + 1] = ("%d.%d/%d"):format(step, rank, world) end
    return all
  end

  --- One rank on each of these nodes saves a checkpoint; `more(rank)`: its options. Returns what
  --- each has said, and its code.
  local function launch(step, nodes, more)
    local said, codes = {}, {}
    for i, node in ipairs(nodes) do
      local rank = i - 1
      local run = ("'%s' run --run r --dir node-%d --to store --launch-id l%d --rank %d --world %d")
        :format(support.runner, node, step, rank, #nodes)
      os.remove(("%s/%d.code"):format(dir, rank))
      os.execute(("cd '%s' && { STEP=%d RANK=%d WORLD=%d %s --rank-wait 60s " ..
        "--take-over -p builtin --settle 0.2 %s -- sh job.sh >%d.log 2>&1; echo $? >%d.code; } &")
        :format(dir, step, rank, #nodes, run, more and more(rank) or "", rank, rank))
    end
    for rank = 0, #nodes - 1 do
      codes[rank + 1] = support.await("the end of rank " .. rank, function()
        return tonumber(support.read(("%s/%d.code"):format(dir, rank)) or "")
      end, 90)
      said[rank + 1] = support.read(("%s/%d.log"):format(dir, rank))
    end
    return said, codes
  end

  it("each begin from all that the others saved, and save as many parts as they are", function()
    local before
    for step, nodes in ipairs { { 0, 1, 2, 3 }, { 2, 4 }, { 0, 2, 5 }, { 3, 2, 1, 0 } } do
      local all, codes = launch(step, nodes)
      for i, said in ipairs(all) do
        assert.are.equal(0, codes[i], said)
        local from = before and ("from checkpoint-%d: %s\n"):format(step - 1,
          table.concat(before, " ")) or "from :\n"
        place.has(said, from)
      end
      before = shards(step, #nodes)
      assert.are.equal(table.concat(before, "\n") .. "\n",
        place.must_sh(("cat store/checkpoint-%d/shard-*"):format(step)))
    end
    place.must "verify store"
  end)

  it("do not begin where one would go on from another checkpoint than the first", function()
    launch(1, { 0, 1 })
    launch(2, { 0, 1 })
    support.write(dir .. "/job.sh", "touch began.$RANK; until [ -e 1.code ]; do sleep 0.05; done")
    local said, codes = launch(3, { 0, 1 }, function(rank)
      return rank == 1 and "--restore checkpoint-1" or ""
    end)
    place.has(said[2], "rank 0 resumes from checkpoint-2, rank 1 would from checkpoint-1")
    assert.are_not.equal(0, codes[2])
    place.must_sh "ls began.* | grep -qx began.0"
  end)

  it("do not begin from another save of the same name than the first", function()
    launch(1, { 0, 1 })
    support.write(dir .. "/job.sh", "touch began.$RANK; [ $RANK = 1 ] || " ..
      "until [ -e 1.code ]; do sleep 0.05; done")
    -- The first one is ready, and what it names is made another commit before the other one asks.
    local said, codes = launch(2, { 0, 1 }, function(rank)
      if rank == 0 then
        os.remove(dir .. "/1.code")
      else
        support.await("the first one", function() return support.read(dir .. "/began.0") end, 60)
        place.must_sh [[grep -l '"commit":"' store/.ckpt/ranks/* |
          xargs sed -i 's|"commit":"\([^/]*\)/[0-9]*/|"commit":"\1/99/|']]
      end
      return ""
    end)
    place.has(said[2], "rank 0 resumes from checkpoint-1 as commit ")
    assert.are_not.equal(0, codes[2])
    assert.is_nil(support.read(dir .. "/began.1"))
  end)
end)
