--[[
A training function whose checkpoints are in a store before anybody counts on them, so that it goes
on elsewhere when its machine is lost.

  ckpt-lua exec examples/durable_function.lua URI [STEPS]

URI is the trial's place, as s3://bucket/trial or file:///data/trial. It takes STEPS results (5),
and saves after each third. Started again, here or on another machine, it goes on from the store.
]]
local ckpt = require "ckpt"

local uri = assert(arg[1], "the first argument is the URI of the trial's place")
local steps = tonumber(arg[2]) or 5

local function train(_, checkpoint_dir)
  local step, sum = 0, 0
  if checkpoint_dir then
    step, sum = assert(ckpt.fs.read(checkpoint_dir .. "/model")):match "^(%d+) (%S+)$"
  end
  while true do
    step, sum = step + 1, sum + 1 / (step + 1) ^ 2
    if step % 3 == 0 then
      assert(ckpt.session.checkpoint_dir(step, function(dir)
        assert(ckpt.fs.write(dir .. "/model", ("%d %.17g"):format(step, sum)))
      end))
    end
    ckpt.session.report { step = step, sum = sum }
  end
end

-- The newest checkpoint of the trial in the store, as a path in a log directory.
local function newest(logdir)
  local place, found = assert(ckpt.store.open(uri)), nil
  for _, object in ipairs(place:list() or {}) do
    local name = object.key:match "^(checkpoint_%d+)/%.tune_metadata$"
    if name and (not found or name > found) then found = name end
  end
  return found and ckpt.fs.join(logdir, found)
end

local Sum = ckpt.wrap_function(train, { name = "Sum", durable = true })
local here = assert(ckpt.fs.temporary_directory(nil, "sum-"))
local logdir = ckpt.fs.join(here, "trial")
local runner = Sum(uri, {}, { logdir = logdir })

local from = newest(logdir)
if from then
  assert(runner:restore(from))
  print("goes on from " .. ckpt.fs.base(from))
end
for _ = 1, steps do
  local result = assert(runner:train())
  print(("step %2d  sum %.6f"):format(result.step, result.sum))
  if result.should_checkpoint then
    print(ckpt.fs.base(assert(runner:save()):gsub("/$", "")) .. " is in the store")
  end
end
assert(runner:stop())
assert(ckpt.fs.remove_tree(here)) -- as if this machine were lost
