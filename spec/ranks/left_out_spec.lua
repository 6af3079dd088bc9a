-- Checkpoints that ranks save together are whole, whatever a function of `exclude` says of one.

local place = require "place"
local support = require "support"
local await, has, lacks = support.await, place.has, place.lacks

describe("a function of exclude", function()
  local dir

  place.with_directory(function(made) dir = made end)

  local function start(rank)
    os.execute(([[cd '%s' && { '%s' run --dir out-%d --to store --run r --launch-id spec \
      --rank %d --world 2 --rank-wait 20s -p ./p.lua --settle 0.2 -- sh job.sh %d >%d.log 2>&1
      echo $? >%d.code; } &]]):format(dir, support.runner, rank, rank, rank, rank, rank))
  end

  local function ended(rank)
    local code = await("the end of rank " .. rank, function()
      return tonumber(support.read(("%s/%d.code"):format(dir, rank)) or "")
    end, 60)
    return code, support.read(("%s/%d.log"):format(dir, rank))
  end

  it("is not asked where ranks save together, and rank 0 says so", function()
    support.write(dir .. "/p.lua",
      "return { api = 1, exclude = { '*.log', function() return 'optim*' end } }")
    support.write(dir .. "/job.sh", [[
mkdir $CKPT_DIR/.new && cd $CKPT_DIR/.new && echo "optim $1" >optim-$1.pt && echo log >a.log &&
echo "weights $1" >model-$1.bin && mv $CKPT_DIR/.new $CKPT_DIR/checkpoint-1
]])
    start(0)
    start(1)
    local code, said = ended(0)
    assert.are.equal(0, code, said)
    has(said, "checkpoints that ranks save together are saved whole: the function of `exclude`")
    code, said = ended(1)
    assert.are.equal(0, code, said)
    lacks(said, "saved whole")
    local names = place.must_sh "cd store/checkpoint-1 && ls"
    assert.are.equal("model-0.bin\nmodel-1.bin\noptim-0.pt\noptim-1.pt\n", names)
  end)
end)
