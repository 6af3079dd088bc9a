-- Run by put.sh: sends a directory, and prints the seconds of processor and wall time that it took.

local ckpt = require "ckpt"
local clock = ckpt.clock

local dir, uri = arg[1], arg[2]
local cpu, wall = os.clock(), clock.monotonic()
assert(assert(ckpt.store.upload { dir = dir, uri = uri }):wait())
print(("%.3f\t%.3f"):format(os.clock() - cpu, clock.monotonic() - wall))
