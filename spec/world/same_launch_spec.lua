-- One launch id used twice by mistake, where two tasks share a directory: the second start ends no
-- task of its own launch, and does not take what the first left for its own.

local support = require "support"
local alive, sh, read, await = support.alive, support.sh, support.read, support.await

local dir

-- Task `rank` of two of the launch `id` ("twice"), in the background; `as` names what it leaves in
-- the test's directory: as.pid (of its job), as.log, as.code. Its job stays until `as`.go is there.
local function start(rank, as, id)
  support.write(dir .. "/job.sh", [[
    trap '' TERM
    echo $PPID >"$1.runner"; echo $$ >"$1.new"; mv "$1.new" "$1.pid"
    until [ -e "$1.go" ]; do sleep 0.05; done]])
  local text = [[{
    env -u SLURM_STEP_ID TORCHELASTIC_RUN_ID=none RANK=%d WORLD_SIZE=2 LOCAL_RANK=%d \
      LOCAL_WORLD_SIZE=2 %s run --run one --launch-id %s --dir-is shared --dir @/out \
      --to @/store --rank-wait 60s --grace 1 -- sh @/job.sh @/%s
    echo $? >@/%s.code; } </dev/null >@/%s.log 2>&1 &]]
  text = text:format(rank, rank, support.runner, id or "twice", as, as, as)
  os.execute((text:gsub("@/", dir .. "/")))
end

local function said(as) return read(dir .. "/" .. as .. ".log") or "" end

local function job(as)
  local pid = await("the job of " .. as, function() return read(dir .. "/" .. as .. ".pid") end)
  return pid:match("%d+")
end

local function let_go(as) support.write(dir .. "/" .. as .. ".go", "") end

local function code(as)
  return await("the end of " .. as, function()
    return tonumber(read(dir .. "/" .. as .. ".code") or "")
  end)
end

local function finish(...)
  for _, as in ipairs { ... } do let_go(as) end
  for _, as in ipairs { ... } do assert.are.equal(0, code(as), said(as)) end
end

before_each(function()
  dir = support.directory()
  sh("mkdir " .. dir .. "/out")
end)

after_each(function()
  for _, as in ipairs { "first-0", "first-1", "again-0", "again-1" } do
    let_go(as)
    local pid = read(dir .. "/" .. as .. ".pid")
    if pid then sh("kill -9 " .. pid:match("%d+")) end
  end
  sh("rm -rf '" .. dir .. "'")
end)

describe("one launch id, used twice", function()
  it("ends nothing of a launch that is alive, and is refused", function()
    start(0, "first-0")
    start(1, "first-1")
    local zero, one = job("first-0"), job("first-1")
    start(0, "again-0")
    assert.are.equal(11, code("again-0"), said("again-0"))
    assert.is_true(alive(zero) and alive(one), said("again-0"))
    finish("first-0", "first-1")
  end)

  it("leaves what the live one told its tasks, for those that come late", function()
    start(0, "first-0")
    job("first-0")
    start(0, "again-0")
    assert.are.equal(11, code("again-0"), said("again-0"))
    start(1, "first-1")
    assert.is_true(alive(job("first-1")), said("first-1"))
    finish("first-0", "first-1")
  end)

  it("is no other launch, whose tasks are told that it was refused", function()
    start(0, "first-0")
    start(1, "first-1")
    job("first-0")
    job("first-1")
    start(0, "again-0", "another")
    assert.are.equal(11, code("again-0"), said("again-0"))
    start(1, "again-1", "another")
    assert.are.equal(11, code("again-1"), said("again-1"))
    assert.is_nil(read(dir .. "/again-1.pid"))
    finish("first-0", "first-1")
  end)

  it("leaves the other tasks alone that live when the first one begins", function()
    start(0, "first-0")
    start(1, "first-1")
    local zero, one = job("first-0"), job("first-1")
    sh("kill -9 " .. read(dir .. "/first-0.runner"))
    assert.are.equal(137, code("first-0"))
    start(0, "again-0")
    local new = job("again-0")
    assert.is_true(alive(one), said("again-0"))
    assert.is_false(alive(zero), "what it left itself is its own to end: " .. said("again-0"))
    assert.is_true(alive(new))
    assert.is_truthy(said("again-0"):find("process " .. one .. " ", 1, true), said("again-0"))
    assert.is_truthy(said("again-0"):find("another task of this launch", 1, true))
    finish("again-0", "first-1")
  end)

  it("does not begin on what the first use left behind", function()
    start(0, "first-0")
    start(1, "first-1")
    job("first-0")
    job("first-1")
    finish("first-0", "first-1")
    assert.are_not.equal("", (sh("ls " .. dir .. "/out.ckpt | grep ^ready")))
    start(1, "again-1")
    sh("sleep 1")
    assert.is_nil(read(dir .. "/again-1.pid"), "it began before its first task")
    start(0, "again-0")
    local zero, one = job("again-0"), job("again-1")
    assert.is_true(alive(zero) and alive(one), said("again-0"))
    assert.is_nil(said("again-0"):find("ending it", 1, true))
    finish("again-0", "again-1")
  end)
end)
