-- A run with nothing to do costs nothing: no thread of it wakes up, and its memory is small, also
-- after it has moved a large checkpoint.

local support = require "support"
local CKPT, SANITIZED, sh, await =
  support.runner, support.sanitized, support.sh, support.await

local function exists(path)
  local f = io.open(path)
  if f then f:close() end
  return f ~= nil
end

-- How often each thread has given the processor up or lost it, in all.
local function switches(pid)
  local total, threads = 0, 0
  for n in sh(("cat /proc/%d/task/*/status"):format(pid)):gmatch("ctxt_switches:%s+(%d+)") do
    total = total + tonumber(n)
    threads = threads + 0.5
  end
  return total, threads
end

local function dirty_kib(pid)
  local text = sh(("cat /proc/%d/smaps_rollup"):format(pid))
  return tonumber(text:match("Private_Dirty:%s+(%d+) kB"))
end

describe("an idle run", function()
  local dir, pid

  before_each(function() dir = support.directory() end)
  after_each(function()
    if pid then os.execute(("kill %d 2>/dev/null"):format(pid)) end
    await("its end", function() return not pid or not exists(("/proc/%d/stat"):format(pid)) end)
    pid = nil
    os.execute(("rm -rf '%s'"):format(dir))
  end)

  -- The job does `text`, makes `ready`, and sleeps.
  local function start(text)
    local job = { "cd '", dir, "'\n", text, "\ntouch ready\nexec sleep 60\n" }
    support.write(dir .. "/job.sh", table.concat(job))
    local line = "cd '%s' && { '%s' run --dir out --to store -- sh job.sh >log 2>&1 & echo $!; }"
    pid = tonumber((sh(line:format(dir, CKPT))))
    await("the job", function() return exists(dir .. "/ready") end)
  end

  -- On a busy machine what it does at the start takes a while: one that wakes up does so each time.
  local function is_still()
    local count
    for _ = 1, 5 do
      os.execute("sleep 0.5")
      local before, threads = switches(pid)
      os.execute("sleep 3")
      assert.is_true(threads >= 1, "it lives")
      count = switches(pid) - before
      if count <= 1 then return end
    end
    error(count .. " wake-ups in 3 s")
  end

  it("has no wake-ups", function()
    if SANITIZED then return pending("a sanitizer has threads of its own") end
    start("")
    is_still()
  end)

  it("has less than 8 MiB of private dirty memory before and after 64 MiB were saved", function()
    if SANITIZED then return pending("a sanitizer's shadow memory is large") end
    start("( while [ ! -e go ]; do sleep 0.02; done\n" ..
      "head -c 67108864 /dev/urandom >out/new && mv out/new out/ckpt-1.pt ) &")
    local before = dirty_kib(pid)
    assert.is_true(before < 8192, before .. " KiB before")
    os.execute(("touch '%s/go'"):format(dir))
    await("a commit", function() return exists(dir .. "/store/ckpt-1.pt/.ckpt-manifest.json") end)
    is_still()
    local after = dirty_kib(pid)
    assert.is_true(after < 8192, after .. " KiB after")
  end)
end)
