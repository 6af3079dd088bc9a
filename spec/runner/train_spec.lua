-- The demo's training program: what `make demo` claims rests on these promises.

local support = require "support"
local sh, read, write = support.sh, support.read, support.write

local TRAIN = "luajit examples/train.lua --hidden 8 --batch 4 "

describe("examples/train.lua", function()
  local dir

  support.with_directory(function(made) dir = made end)

  -- Runs it with its checkpoints in `name` of the test's directory; it must succeed.
  local function train(name, args, luajit)
    local command = TRAIN:gsub("^luajit", luajit or "luajit")
    local out, status = sh(command .. "--dir " .. dir .. "/" .. name .. " " .. args)
    assert.equal(0, status, out)
    return out, out:match("final [^\n]+")
  end

  local function resume_fails(checkpoint, message)
    local out, status = sh(TRAIN .. "--steps 9 --dir " .. dir .. "/a --resume " .. checkpoint)
    assert.equal(1, status, out)
    assert.matches(message, out, 1, true)
    assert.not_matches("traceback", out)
  end

  it("lowers the loss", function()
    local out, final = train("a", "--steps 150 --save-every 1000 --batch 16")
    local first = tonumber(out:match("loss ([%d.]+) over"))
    local last = tonumber(final:match("loss=(%S+)"))
    assert.is_true(first > 5.4 and last < 3.4, out)
  end)

  it("ends with the same bits, stopped or not, compiled or interpreted", function()
    math.randomseed(os.time())
    local _, whole = train("whole", "--steps 40 --save-every 9")
    for _ = 1, 3 do
      local at = math.random(1, 39)
      train("parts", "--save-every 9 --steps " .. at, "luajit -joff")
      local _, final = train("parts", "--steps 40 --save-every 9 --resume auto")
      assert.equal(whole, final, "stopped at step " .. at)
      assert.equal("", (sh("cd " .. dir .. "; diff -r whole/checkpoint-40 parts/checkpoint-40")))
      sh("rm -r " .. dir .. "/parts")
    end
  end)

  it("depends on the seed", function()
    local _, one = train("a", "--steps 2")
    local _, two = train("b", "--steps 2 --seed 2")
    assert.not_equal(one, two)
  end)

  it("resumes from a killed run's last whole checkpoint, not from the torn one", function()
    local _, whole = train("whole", "--steps 6 --save-every 2")
    -- With this delay the save of step 4 stays in optimizer.pt until the kill.
    local torn = dir .. "/a/checkpoint-4"
    train("a", "--steps 2 --save-every 2")
    local out = sh(TRAIN .. "--steps 6 --save-every 2 --save-delay 600 --resume auto --dir " .. dir
      .. "/a & pid=$!; i=0; until [ -s " .. torn .. "/optimizer.pt ] || [ $((i += 1)) -gt 500 ]; "
      .. "do sleep 0.01; done; kill -9 $pid; wait $pid; echo status $?")
    assert.matches("status 137", out)
    assert.equal("config.json model.safetensors optimizer.pt training_args.bin ",
      (sh("ls " .. torn .. " | tr '\\n' ' '")))
    resume_fails("auto", "cannot open " .. torn .. "/trainer_state.json: No such file or directory")
    local _, final = train("a", "--steps 6 --save-every 2 --resume " .. dir .. "/a/checkpoint-2")
    assert.equal(whole, final)
  end)

  it("refuses each file that is torn, and says which", function()
    train("a", "--steps 2")
    local at = dir .. "/a/checkpoint-2/"
    for _, name in ipairs { "model.safetensors", "training_args.bin", "optimizer.pt",
      "scheduler.pt", "rng_state.pth", "trainer_state.json" } do
      local whole = read(at .. name)
      for _, size in ipairs { #whole - 1, math.floor(#whole / 2), 0 } do
        write(at .. name, whole:sub(1, size))
        resume_fails("auto", at .. name .. " is ")
      end
      write(at .. name, whole)
    end
    train("a", "--steps 3 --resume auto")
  end)

  it("refuses an optimizer.pt that has a hole of zeros", function()
    train("a", "--steps 2")
    local path = dir .. "/a/checkpoint-2/optimizer.pt"
    local data = read(path)
    write(path, data:sub(1, 4000) .. ("\0"):rep(4096) .. data:sub(8097))
    resume_fails("auto", "optimizer.pt is damaged")
  end)

  it("refuses files of two steps, another text or another model", function()
    train("a", "--steps 4 --save-every 2")
    local at = dir .. "/a/checkpoint-"
    resume_fails("auto --hidden 9", "made with another text, model or batch")
    resume_fails("auto --text examples/train.lua", "made with another text, model or batch")
    write(at .. "4/optimizer.pt", read(at .. "2/optimizer.pt"))
    resume_fails("auto", "not of the same step")
  end)

  it("keeps the three newest checkpoints, by number, and touches nothing else", function()
    local names = function() return (sh("ls " .. dir .. "/a | tr '\\n' ' '")) end
    sh("mkdir -p " .. dir .. "/a/checkpoint-best; echo x >" .. dir .. "/a/notes")
    train("a", "--steps 11 --save-every 2")
    assert.equal("checkpoint-10 checkpoint-11 checkpoint-8 checkpoint-best notes ", names())
    train("a", "--steps 11 --save-every 2 --resume auto")
    assert.equal("checkpoint-10 checkpoint-11 checkpoint-8 checkpoint-best notes ", names())
  end)

  it("writes the files of the Trainer, and no temporary name stays", function()
    train("a", "--steps 10")
    local at = dir .. "/a/checkpoint-10/"
    assert.equal("config.json model.safetensors optimizer.pt rng_state.pth scheduler.pt "
      .. "trainer_state.json training_args.bin ", (sh("ls -A " .. at .. " | tr '\\n' ' '")))
    local model = read(at .. "model.safetensors")
    local low, high = model:byte(1, 2)
    local head = model:sub(9, 8 + low + 256 * high)
    assert.equal(0, #head % 8)
    assert.equal(#model, 8 + #head + tonumber(head:match("(%d+)%]}} *$")))
    local state = read(at .. "trainer_state.json")
    assert.matches('"global_step": 10,.*"loss": [%d.]+, "step": 10}\n', state)
  end)

  it("starts afresh when --resume auto finds nothing", function()
    local out = train("a", "--steps 1 --resume auto")
    assert.matches("^started with", out)
  end)

  it("names what is wrong on the command line", function()
    for args, message in pairs {
      ["--foo 1"] = "unknown option --foo", ["--steps"] = "--steps needs a value",
      ["--steps x"] = "--steps must be a number", ["--steps 1"] = "--dir is missing",
    } do
      local out, status = sh(TRAIN .. args)
      assert.equal(2, status)
      assert.matches(message, out, 1, true)
    end
  end)
end)
