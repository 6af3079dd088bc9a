-- The bounds are wide enough for a checkpoint of 100,000 files, and what that takes stays small
-- beside a trainer.

package.path = "./spec/?.lua;" .. package.path
local support = require "support"

local dir

local function sh(command) return support.sh(("cd '%s' && { %s\n}"):format(dir, command)) end

-- What the runner says. It must end with 0, and no process of it may take `most` MiB.
local function within(most, args)
  support.write(dir .. "/measure.py", [[
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print("\nmeasured", code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)]])
  local out = sh(("python3 measure.py '%s' %s"):format(support.runner, args))
  local text, code, mib = out:match "^(.*)\nmeasured (%d+) (%d+)"
  assert(code == "0", ("%s: %s"):format(args, out:sub(-2000)))
  print(("# %s: %s MiB"):format(args, mib))
  assert(support.sanitized or tonumber(mib) < most, ("%s: %s MiB"):format(args, mib))
  return text
end

before_each(function()
  dir = support.sh "mktemp -d -p /dev/shm 2>/dev/null || mktemp -d -p /var/tmp":match "%S+"
end)
after_each(function() os.execute("rm -rf '" .. dir .. "'") end)

describe("a checkpoint of 100,000 files", function()
  it("is saved, listed, verified and put back", function()
    sh [[python3 -c '
import os
for i in range(100):
    os.makedirs("out/checkpoint-1/shard-%03d" % i)
    for k in range(1000):
        place = "out/checkpoint-1/shard-%03d/tensor-%04d.bin" % (i, k)
        with open(place, "w") as f: f.write(str(i * k))
open("out/checkpoint-1/trainer_state.json", "w").write("{}")']]
    within(250, "sync out --to store --quiet 0")
    assert.is_truthy(within(250, "ls store"):find("checkpoint%-1 +1 +100001 "))
    within(250, "verify store")
    within(250, "restore store --dir back")
    assert.are.equal("", (sh "diff -rq out back"))
  end)
end)
