--- Ranks of one node, each with a directory of its own, read what they restore from the store once.
local place = require "place"
local support = require "support"
local await = support.await

local WORLD, FILE = 16, 700000

describe("ranks on one node", function()
  local dir, counting, launches, total = nil, nil, 0, 0

  place.with_directory(function(made) dir = made end)

  -- As many files as ranks, one of two blocks, and two that are equal.
  before_each(function()
    counting = place.preload "spec/ranks/store_reads.c"
    place.must_sh(([[mkdir -p one/checkpoint-1/sub; cd one/checkpoint-1
      for i in $(seq %d); do head -c %d /dev/urandom >part-$i.bin; done
      head -c 9000000 /dev/urandom >large.bin; cp part-1.bin sub/part-1.bin; : >none]])
      :format(WORLD, FILE))
    place.must "sync one --to store --settle 0 --trust"
    total = tonumber((place.must_sh "cat one/checkpoint-1/*.bin one/checkpoint-1/sub/* | wc -c"))
  end)

  local function path(name, rank) return ("%s/%d.%s"):format(dir, rank, name) end

  local function start(rank, job, options, env)
    for _, name in ipairs { "code", "reads", "held" } do os.remove(path(name, rank)) end
    support.write(("%s/job-%d.sh"):format(dir, rank), job)
    local words = "--dir out-%d --to store --run r --launch-id l%d --rank %d --world %d %s"
    words = words:format(rank, launches, rank, WORLD, options or "")
    local with = "RANK=%d LAUNCH=%d STORE_FILES=store/checkpoint- STORE_READS=%d.reads " ..
      "STORE_HELD=%d.held %s"
    with = with:format(rank, launches, rank, rank, env or "")
    os.execute(("cd '%s' && { env %s %s '%s' run -v %s --rank-wait 60s --continue-run " ..
      "--take-over -- sh job-%d.sh >%d.log 2>&1 & echo $! >%d.pid; wait $!; echo $? >%d.code; } " ..
      "2>end &"):format(dir, with, counting, support.runner, words, rank, rank, rank, rank))
  end

  local function code(rank)
    return await("the end of rank " .. rank, function()
      return tonumber(support.read(path("code", rank)) or "")
    end, 120)
  end

  local function read_by(rank)
    local sum = 0
    for line in (support.read(path("reads", rank)) or ""):gmatch "%d+" do sum = sum + line end
    return sum
  end

  -- Each stays until all of them have begun: a rank that ends ends the launch.
  local JOB = ("touch up-$LAUNCH-$RANK; until [ $(ls up-$LAUNCH-* | wc -l) -ge %d ]; do "
    .. "sleep 0.1; done"):format(WORLD)

  --- What each has read of the files in the store, all of which have to end well with all of it.
  local function ends()
    local sum, each = 0, {}
    for rank = 0, WORLD - 1 do
      assert.are.equal(0, code(rank), support.read(path("log", rank)))
      place.must_sh(("diff -r one/checkpoint-1 out-%d/checkpoint-1"):format(rank))
      each[rank] = read_by(rank)
      sum = sum + each[rank]
    end
    return sum, each
  end

  local function start_all(first, options, env)
    launches = launches + 1
    for rank = first, WORLD - 1 do start(rank, JOB, options, env) end
  end

  it("read all of it once together, whether one restores first or all at once", function()
    start_all(0)
    local sum = ends()
    assert.is_true(sum >= total - FILE and sum <= 1.1 * total, ("%d of %d"):format(sum, total))
    -- The first one has it.
    place.must_sh "rm -rf out-[1-9]*"
    start_all(0)
    local each
    sum, each = ends()
    assert.is_true(sum >= total - FILE and sum <= 1.1 * total, ("%d of %d"):format(sum, total))
    assert.is_true(each[0] < FILE, each[0])
    place.has(support.read(path("log", 7)), "come from other tasks of this node")
  end)

  it("read no more where one is killed in the middle: another goes on", function()
    start_all(0, "", "STORE_HOLD=store/checkpoint-1/large")
    await("the read", function() return support.read(path("held", 0)) end, 60)
    place.must_sh "kill -9 $(cat 0.pid); rm 0.held"
    await("its end", function() return support.read(path("code", 0)) end, 60)
    start(0, JOB)
    local sum = ends() -- without what the dead one has read, who could not tell
    assert.is_true(sum <= 1.1 * total, ("%d of %d"):format(sum, total))
  end)

  --- The file in which the others see that somebody fetches `name`, and the times that they go by.
  local function shown_of(name)
    local hex = place.must_sh(([[sed -n '/"name":"%s"/s/.*"digest":"\([^"]*\)".*/\1/p' \
      store/checkpoint-1/.ckpt-manifest.json]]):format(name))
    return function()
      return (place.must_sh("stat -c '%x|%y' /tmp/ckpt-lua-$(id -u)/node-*/" .. hex))
    end
  end

  it("shows that it is alive while its store does not answer", function()
    launches = launches + 1
    start(0, JOB, "", "STORE_HOLD=store/checkpoint-1/large")
    await("the read", function() return support.read(path("held", 0)) end, 60)
    local shown = shown_of "large.bin"
    local first = shown()
    await("a sign of life", function() return shown() ~= first end, 60)
    assert.are.equal(first:match "|.*", shown():match "|.*") -- of no block
    place.must_sh "kill -9 $(cat 0.pid)"
    await("its end", function() return support.read(path("code", 0)) end, 60)
  end)

  it("read each the part of its own, and once what all of them had", function()
    place.must_sh "rm -r store"
    launches = launches + 1
    for rank = 0, WORLD - 1 do
      start(rank, [[mkdir $CKPT_DIR/checkpoint-2; cd $CKPT_DIR/checkpoint-2
        head -c 50000 /dev/urandom >shard-$RANK.bin
        head -c 2000000 /dev/zero >all.bin; echo '{}' >trainer_state.json
        cd ../..; until [ -e store/checkpoint-2/.ckpt-manifest.json ]; do sleep 0.1; done]],
        "--settle 0.5")
    end
    for rank = 0, WORLD - 1 do
      assert.are.equal(0, code(rank), support.read(path("log", rank)))
    end
    place.must_sh "rm -rf out-*"
    start_all(0, "--restore-parts own")
    local sum = 0
    for rank = 0, WORLD - 1 do
      assert.are.equal(0, code(rank), support.read(path("log", rank)))
      place.must_sh(("cmp out-%d/checkpoint-2/shard-%d.bin store/checkpoint-2/shard-%d.bin")
        :format(rank, rank, rank))
      sum = sum + read_by(rank)
    end
    local once = WORLD * 50000 + 2000000
    assert.is_true(sum >= once and sum <= 1.1 * once, ("%d of %d"):format(sum, once))
  end)
end)
