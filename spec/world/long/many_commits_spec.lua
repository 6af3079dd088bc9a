-- The bounds are wide enough for a run of 10,000 checkpoints with 4 KiB of metrics each, and what
-- that takes stays small beside a trainer.

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

describe("a run of 10,000 checkpoints with 4 KiB of metrics each", function()
  it("is saved, listed, gone on with and put back", function()
    sh [[python3 -c '
import json, os
def make(i):
    place = "out/checkpoint-%d" % i
    os.makedirs(place)
    open(place + "/model.bin", "w").write("x%d" % i)
    metrics = {"m%02d" % k: "v" * 55 for k in range(62)}
    metrics["step"] = i
    json.dump(metrics, open(place + "/trainer_state.json", "w"))
for i in range(1, 10001): make(i)
os.rename("out/checkpoint-10000", "last")']]
    support.write(dir .. "/p.lua",
      'return { api = 1, metrics = { from.json "trainer_state.json" } }')
    within(250, "sync out --to store -p ./p.lua --quiet 0")
    sh "mv last out/checkpoint-10000"
    within(250, "sync out --to store -p ./p.lua --quiet 0")
    local listed = within(250, "ls store --json")
    local _, count = listed:gsub("\n", "")
    assert(count >= 10000 and count <= 10001, count)
    local metrics = listed:match '"step":10000,.-"metrics":(%b{})'
    assert(metrics and #metrics > 3800, metrics)
    within(250, "restore store checkpoint-10000 --dir back")
    assert.are.equal("", (sh "diff -r out/checkpoint-10000 back/checkpoint-10000"))
  end)
end)
