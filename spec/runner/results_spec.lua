-- Which checkpoint a number belongs to, as it is for the ways in which trainers save and report.
-- Each saves eight checkpoints whose sixth is the best.

local json = require "cjson"
local place = require "place"
local support = require "support"
local has, sh = place.has, place.must_sh

local CKPT = support.runner
local LOSSES = { 5, 4, 4.5, 3, 3.5, 2, 2.5, 2.7 }

local dir

place.with_directory(function(made)
  dir = made
  sh "mkdir out"
end)

-- The policy that README tells people to begin with.
local readme = support.read(support.root .. "/README.md")
  :match "cat >mine%.lua <<'END'\n(.-)\nEND"
assert(readme:find("metric_improved", 1, true))

--- Runs a trainer: `step` is shell, with the number of the checkpoint in $n and its loss in $loss.
local function train(step, policy, args)
  support.write(dir .. "/mine.lua", policy or readme)
  support.write(dir .. "/job.sh", ([[
    notify() { '%s' notify "$@" || exit 9; }
    made() { mkdir out/.new; echo "weights $n" >out/.new/model.bin; }
    saved() { # what waits in the queue would be let go for a newer one
      for i in $(seq 400); do [ ! -e "store/$1" ] || return 0; sleep 0.05; done
    }
    n=0
    for loss in %s; do n=$((n + 1))
      %s
    done]]):format(CKPT, table.concat(LOSSES, " "), step))
  return place.must(("run --dir out --to store -p ./mine.lua --max-delete 100%% %s -- sh job.sh")
    :format(args or ""))
end

--- What is live, by name.
local function live()
  local all = {}
  for _, item in ipairs(place.objects(place.must "ls store --json")) do all[item.name] = item end
  return all
end

--- Each that has such a number has its own, and the best is there.
local function must_be_right(key, name_of)
  local all, count = live(), 0
  for i, loss in ipairs(LOSSES) do
    local item = all[name_of and name_of(i) or "checkpoint-" .. i]
    local metrics = item and item.metrics or {}
    if metrics[key] then
      count = count + 1
      assert.are.equal(loss, metrics[key], item.name)
    end
  end
  local best = all[name_of and name_of(6) or "checkpoint-6"]
  assert.is_truthy(best, "the best is not there")
  assert.are.equal(2, best.metrics[key])
  return count
end

describe("the numbers of a checkpoint", function()
  it("are of the result before it, for who evaluates, logs and saves", function()
    local text = train [[
      made; notify loss=$loss; mv out/.new out/checkpoint-$n; sleep 0.4
      [ $n != 6 ] || saved checkpoint-6]]
    must_be_right "loss"
    has(text, "checkpoint-3 (step 3) was skipped: loss 4.5 is not better than 4")
    has(place.must "show store checkpoint-6", "loss improved to 2")
    has(place.must "show store checkpoint-6", 'metrics    {"loss":2}')
    local listed = place.must "ls store --metrics"
    has(listed, "COMMITTED  METRICS\n")
    assert.is_truthy(listed:find("checkpoint%-6 [^\n]* loss=2\n"), listed)
    place.must "mark bad store checkpoint-6 --reason torn"
    listed = place.must "ls store --metrics"
    has(listed, "METRICS   BAD\n")
    assert.is_truthy(listed:find("checkpoint%-6 [^\n]* loss=2    torn\n"), listed)
  end)

  it("are of the result that names it, for who saves and then reports", function()
    train [[
      made; mv out/.new out/checkpoint-$n; saved checkpoint-$n
      notify checkpoint=out/checkpoint-$n loss=$loss]]
    must_be_right "loss"
  end)

  it("are of the result that names it, also if that comes before", function()
    train [[
      notify checkpoint=checkpoint-$n loss=$loss; notify loss=99$n
      made; mv out/.new out/checkpoint-$n; sleep 0.4; notify loss=9
      [ $n != 6 ] || saved checkpoint-6]]
    must_be_right "loss"
  end)

  it("are of no later step, for who logs each while it is written and after", function()
    train([[
      notify loss=$loss
      exec 3>out/checkpoint-$n.pt
      for i in 1 2 3 4 5 6 7 8 9; do echo part >&3; notify loss=0.$i; done
      exec 3>&-
      for i in 1 2 3 4 5 6 7 8 9; do sleep 0.05; notify loss=0.$i; done
      [ $n != 6 ] || saved checkpoint-6.pt]],
      nil, "--settle 0.2s")
    must_be_right("loss", function(i) return ("checkpoint-%d.pt"):format(i) end)
  end)

  it("are of no later step, for who saves a directory in place, so the best one stays", function()
    train([[
      [ $n -ge 5 ] || continue
      notify loss=$loss
      mkdir out/checkpoint-$n; echo weights >out/checkpoint-$n/pytorch_model.bin
      notify loss=0.$n
      echo args >out/checkpoint-$n/training_args.bin
      echo '{}' >out/checkpoint-$n/trainer_state.json
      notify loss=0.0$n; saved checkpoint-$n; notify loss=0.00$n]],
      [[return { api = 1, keep = keep.best("loss", 1, "min") }]])
    assert.are.equal(2, must_be_right "loss")
  end)

  it("are those of a Trainer's own state, of its own step, with no word from the job", function()
    -- Every second save is evaluated, and what is logged last is of the training.
    sh "mkdir states"
    local log = {}
    for step = 1, 16 do
      if step % 2 == 1 then
        log[#log + 1] = { eval_loss = LOSSES[(step + 1) / 2], step = step }
      end
      log[#log + 1] = { loss = 1 / step, step = step }
      support.write(("%s/states/%d"):format(dir, step),
        json.encode { global_step = step, log_history = log })
    end
    train([[
      for step in $((2 * n - 1)) $((2 * n)); do
        made; cp states/$step out/.new/trainer_state.json
        mv out/.new out/checkpoint-$step; saved checkpoint-$step
      done]], [[return { api = 1, keep = keep.best("eval_loss", 1, "min") }]])
    local all = live()
    assert.are.equal(2, all["checkpoint-11"] and all["checkpoint-11"].metrics.eval_loss)
    assert.is_nil(all["checkpoint-12"])
    assert.is_nil(all["checkpoint-16"].metrics.eval_loss)
    assert.are.equal(1 / 16, all["checkpoint-16"].metrics.loss)
  end)

  it("are those in its name, as Lightning writes it", function()
    train([[
      made; mv out/.new/model.bin "out/epoch=$n-val_loss=$loss.ckpt"; rmdir out/.new; sleep 0.3
      [ $n != 6 ] || saved epoch=6-val_loss=2.ckpt]],
      [[return { api = 1, sync = when.metric_improved("val_loss", "min"),
                 keep = any { keep.last(1), keep.best("val_loss", 1, "min") } }]])
    local n = must_be_right("val_loss", function(i)
      return ("epoch=%d-val_loss=%s.ckpt"):format(i, LOSSES[i])
    end)
    assert.is_true(n >= 1)
  end)
end)
