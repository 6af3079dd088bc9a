--[[
A job that goes on where it was when it is started again, by AdaptDL's rules: two states, saved
together, loaded one by one. It knows of no scheduler; the environment tells it where it is.

  export ADAPTDL_CHECKPOINT_PATH=$PWD/states; mkdir -p states
  ADAPTDL_NUM_RESTARTS=0 ckpt-lua exec examples/state_registry.lua 10
  ADAPTDL_NUM_RESTARTS=1 ckpt-lua exec examples/state_registry.lua 10

Each start makes so many steps towards the square root of 2 and saves. To have the states in a store
too, and on another machine at the next start, run it under the engine:

  ckpt-lua run --dir states --to URI -p adaptdl -- ckpt-lua exec examples/state_registry.lua 10
]]
local ckpt = require "ckpt"

-- What is learned: a number, kept with all of its bits.
local Guess = ckpt.State:extend("Guess")
Guess.value = 100

function Guess:save(file) return file:write(("%.17g"):format(self.value)) end

function Guess:load(file) self.value = assert(file:read "*n", "no number in the file") end

-- How far it came.
local Progress = ckpt.State:extend("Progress")
Progress.steps = 0

function Progress:save(file) return file:write(self.steps, "\n") end

function Progress:load(file) self.steps = assert(file:read "*n", "no number of steps") end

-- With more replicas, `sync` is where they agree; it runs on each of them before rank 0 writes.
function Progress:sync() self.synced = self.steps end

local guess, progress = Guess("guess"), Progress("progress")

-- False is a first start: the states are as they were made. Nil, and why, is no first start.
local function load(state)
  local loaded, text = ckpt.load_state(state)
  if loaded == nil then error(text, 0) end
  return loaded
end
local resumed = load(guess) and load(progress)
print(resumed and "goes on after step " .. progress.steps or "begins")

for _ = 1, tonumber(arg[1]) or 10 do
  guess.value = guess.value - (guess.value * guess.value - 2) / (200 + progress.steps)
  progress.steps = progress.steps + 1
end

-- Nil and a text: it could not be saved. Nil alone: this replica writes nothing.
local path, text = ckpt.save_all_states()
if text then error(text, 0) end
print(("step %d, %.12f, %s"):format(progress.steps, guess.value,
  path and "saved in " .. path or "not saved here"))
