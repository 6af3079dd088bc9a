--[[
A training function that is stopped and goes on: it finds the line through some points, step by
step, saves its checkpoint every third step, and begins where the checkpoint says.

  ckpt-lua exec examples/function_trainable.lua [DIR]

The program around it does what a driver does: it takes six results, saves, stops, makes a new
runner for the same function, restores, and takes the rest. In a DIR that has a checkpoint from an
earlier start it goes on from there.
]]
local ckpt = require "ckpt"

local STEPS = 12

local function encode(model) return ("%d %.17g %.17g"):format(model.step, model.a, model.b) end

local function read(dir)
  local step, a, b = assert(ckpt.fs.read(dir .. "/model")):match "^(%d+) (%S+) (%S+)$"
  return { step = tonumber(step), a = tonumber(a), b = tonumber(b) }
end

-- One step down the slope of the squared error of y = a x + b.
local function improve(model, points, rate)
  local da, db, loss = 0, 0, 0
  for _, p in ipairs(points) do
    local off = model.a * p[1] + model.b - p[2]
    da, db, loss = da + off * p[1], db + off, loss + off * off
  end
  model.a, model.b = model.a - rate * da / #points, model.b - rate * db / #points
  model.step = model.step + 1
  return loss / #points
end

local function train(config, checkpoint_dir)
  local model = checkpoint_dir and read(checkpoint_dir) or { step = 0, a = 0, b = 0 }
  while model.step < STEPS do
    local loss = improve(model, config.points, config.rate)
    if model.step % 3 == 0 then
      assert(ckpt.session.checkpoint_dir(model.step, function(dir)
        assert(ckpt.fs.write(dir .. "/model", encode(model)))
      end))
    end
    ckpt.session.report { step = model.step, loss = loss, done = model.step == STEPS }
  end
end

local Line = ckpt.wrap_function(train, { name = "Line" })
local config = { points = { { 0, 1 }, { 1, 3 }, { 2, 5 } }, rate = 0.2 }
local dir = arg[1] or assert(ckpt.fs.temporary_directory(nil, "line-"))

-- The newest checkpoint that was saved in the directory. Null and temporary ones are none.
local function newest()
  local found = ckpt.fs.glob(dir .. "/checkpoint_[0-9]*/.tune_metadata")
  return found[#found] and ckpt.fs.parent(found[#found])
end

-- A life of the trial: at most so many results.
local function live(results)
  local runner = Line(config, { logdir = dir })
  local from = newest()
  if from then
    assert(runner:restore(from))
    print("goes on from " .. ckpt.fs.base(from))
  end
  for _ = 1, results do
    local result = assert(runner:train())
    if result.__duplicate__ then break end -- the function has returned
    print(("step %2d  loss %.6f"):format(result.step, result.loss))
    if result.should_checkpoint then print("saved " .. ckpt.fs.base(assert(runner:save()))) end
    if result.done then break end
  end
  assert(runner:stop())
end

live(6)
live(STEPS)
print "done"
