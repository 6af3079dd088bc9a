--- What each of several ranks says at its end of what it has, and the target has not.
local json = require "cjson"
local place = require "place"
local support = require "support"
local await = support.await

describe("a rank", function()
  local dir

  place.with_directory(function(made) dir = made end)

  --- Rank `rank` of two, each with a directory of its own, with this job, in the background. It
  --- waits for the other one for `wait` (3s).
  local function start(rank, job, wait)
    support.write(("%s/job-%d.sh"):format(dir, rank), [[
save() {
  mkdir $CKPT_DIR/.new && echo "weights $1" >$CKPT_DIR/.new/model-$RANK.bin &&
  mv $CKPT_DIR/.new $CKPT_DIR/checkpoint-$1
}
await() { until [ -e "$1" ]; do sleep 0.02; done; }
]] .. job)
    os.execute(("cd '%s' && { RANK=%d '%s' run --dir out-%d --to store --run r --launch-id spec " ..
      "--rank %d --world 2 --rank-wait %s -p builtin --settle 0.2 -- sh job-%d.sh >%d.log 2>&1; " ..
      "echo $? >%d.code; } &"):format(dir, rank, support.runner, rank, rank, wait or "3s", rank,
      rank, rank))
  end

  local function code_of(rank)
    return await("the end of rank " .. rank, function()
      return tonumber(support.read(("%s/%d.code"):format(dir, rank)) or "")
    end, 60)
  end

  --- How it ended: its code, its exit.json, and all that it said.
  local function ended(rank)
    local code = code_of(rank)
    local all = json.decode(support.read(("%s/out-%d.ckpt/exit.json"):format(dir, rank)))
    assert.are.equal(rank, all.rank)
    assert.are.equal(2, all.world)
    return code, all, support.read(("%s/%d.log"):format(dir, rank))
  end

  it("is durable where all of the newest checkpoint is in the target", function()
    start(0, "save 1")
    start(1, "save 1")
    for rank = 0, 1 do
      local code, all, text = ended(rank)
      assert.are.equal(0, code, text)
      assert.are.equal("durable", all.standing, text)
    end
  end)

  it("names what rank 0 passed over for one that never gets there", function()
    local first = "save 1; await store/checkpoint-1/.ckpt-manifest.json; "
    start(0, first .. "save 3")
    start(1, first .. "save 2; touch two")
    local code, all, text = ended(1)
    place.has(text, "NOT durable: checkpoint-2 (")
    assert.are.equal(6, code, text)
    assert.are.equal("not_durable", all.standing)
    assert.is_false(all.durable)
    assert.are.equal("checkpoint-2", all.not_durable[1].unit)
    assert.are.equal("rank 0 saves checkpoint-3 instead", all.not_durable[1].reason)
    code, all, text = ended(0)
    assert.are_not.equal(0, code, text)
    assert.are.equal("not_durable", all.standing)
  end)

  it("is not waited for once its job has ended, and is named", function()
    start(0, "save 1", "10m")
    start(1, "exit 7", "10m")
    assert.are.equal(7, (ended(1)))
    local code, all, text = ended(0)
    place.has(text, "rank 1 has no part of it, and has ended")
    assert.are.equal(6, code, text)
    assert.are.equal("not_durable", all.standing)
  end)

  it("says that rank 0 has ended, of what that one had none of: no newer one is saved", function()
    start(0, "exit 0")
    start(1, "save 1; save 2")
    local code, all, text = ended(1)
    assert.are.equal(6, code, text)
    place.has(text, "rank 0 has ended without saving it")
    place.lacks(text, "let go for a newer one")
    assert.are.equal("not_durable", all.standing)
    assert.are.equal("checkpoint-2", all.not_durable[#all.not_durable].unit)
  end)

  --- Another run has the state directory of rank `rank` until the file "end" is there.
  local function hold(rank)
    os.execute(("cd '%s' && '%s' run --ranks off --run other --dir out-%d --to other -- " ..
      "sh -c 'touch holds; until [ -e end ]; do sleep 0.05; done' >other.log 2>&1 &")
      :format(dir, support.runner, rank))
    await("the other run", function() return support.read(dir .. "/holds") end)
  end

  it("is not waited for where it is refused, whichever it is", function()
    hold(1)
    start(0, "save 1", "10m")
    start(1, "save 1", "10m")
    assert.are.equal(11, code_of(1))
    local code, _, text = ended(0)
    place.has(text, "rank 1 has no part of it, and has ended: another ckpt-lua has the state")
    assert.are.equal(6, code, text)
    place.must_sh "touch end"
  end)

  it("does not wait for a first one that is refused", function()
    hold(0)
    start(0, "save 1", "10m")
    start(1, "save 1", "10m")
    assert.are.equal(11, code_of(0))
    assert.are.equal(6, code_of(1))
    place.has(support.read(dir .. "/1.log"), "has ended: another ckpt-lua has the state directory")
    place.must_sh "touch end"
  end)
end)
