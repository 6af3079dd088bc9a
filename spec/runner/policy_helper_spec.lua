-- The program in which policies run, beside a real job: it must not be taken for a part of the job,
-- and its end must change nothing.
local place = require "place"
local support = require "support"
local sh = support.sh

-- Three checkpoints, renamed into place; `between` runs before the second.
local job = [[
for i in 1 2 3; do
  mkdir -p out/checkpoint-$i.tmp
  echo $i >out/checkpoint-$i.tmp/w.pt
  mv out/checkpoint-$i.tmp out/checkpoint-$i
  sleep 0.3
  [ $i != 1 ] || { %s; }
done
]]

local policy = [[
return {
  api = 1,
  sync = function(e, memory)
    memory.calls = (memory.calls or 0) + 1
    if e.checkpoint.step == 2 then return "skip", "no even ones" end
    return "sync", "call " .. memory.calls
  end,
}
]]

describe("the helper of policies", function()
  local dir
  place.with_directory(function(made)
    dir = made
    place.sh "mkdir out"
    support.write(dir .. "/mine.lua", policy)
  end)

  local function run(code, between, options)
    support.write(dir .. "/job.sh", job:format(between or ":"))
    return place.says(code, ("run --dir out --to file://%s/store -p ./mine.lua %s -- sh job.sh")
      :format(dir, options or ""))
  end

  local function committed(out)
    local names = {}
    for name in out:gmatch "committed (checkpoint%-%d)" do names[#names + 1] = name end
    return table.concat(names, " ")
  end

  for tier, options in pairs { ["a helper"] = "", ["this process"] = "--policy-in-process" } do
    it("decides in " .. tier, function()
      local out = run(0, nil, options)
      assert.are.equal("checkpoint-1 checkpoint-3", committed(out))
      assert.truthy(out:find("no even ones", 1, true), out)
    end)
  end

  it("is none of the processes that a job left running", function()
    local begun = os.time()
    local out = run(0)
    assert.falsy(out:find("the job left", 1, true), out)
    assert.is_true(os.time() - begun < (support.sanitized and 20 or 5), out)
  end)

  it("is root among nothing: it has no capabilities, and can get none", function()
    if tonumber((sh "id -u")) ~= 0 then pending "only root has any to give up" return end
    local out = run(0, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' "
      .. "/proc/$(pgrep -P $PPID ckpt-policy)/status")
    for _, name in ipairs { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" } do
      assert.truthy(out:find(name .. ":\t0000000000000000", 1, true), name .. ": " .. out)
    end
    assert.truthy(out:find("NoNewPrivs:\t1", 1, true), out)
  end)

  it("may be killed at any time: the next question has a new one", function()
    local kill = "kill -9 $(pgrep -P $PPID ckpt-policy) && echo killed; sleep 0.3"
    local out = run(0, kill)
    assert.truthy(out:find("killed", 1, true), out)
    assert.are.equal("checkpoint-1 checkpoint-3", committed(out))
    assert.falsy(out:find("warning", 1, true), out)
  end)

  it("ends with the run, also when that is killed", function()
    local note = "pgrep -P $PPID ckpt-policy >pid; kill -9 $PPID"
    run(137, note)
    local pid = support.read(dir .. "/pid"):match "%d+"
    assert.truthy(pid)
    support.await("the helper's end", function()
      local _, status = sh("kill -0 " .. pid)
      return status ~= 0
    end)
  end)

  it("is needed: without it a run with a policy does not begin", function()
    local out, status = sh(("cd %s && CKPT_LIBEXEC=%s %s run --dir out --to file://%s/store "
      .. "-p ./mine.lua -- touch began"):format(dir, dir, support.runner, dir))
    assert.are_not.equal(0, status)
    assert.truthy(out:find(dir .. "/ckpt-policy", 1, true), out)
    assert.is_nil(support.read(dir .. "/began"))
  end)
end)
