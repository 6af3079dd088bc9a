-- Names as frameworks give them: what is the newest, and what a start resumes from.

local json = require "cjson"
local place = require "place"
local support = require "support"
local has, lacks, sh = place.has, place.lacks, place.must_sh

local dir

place.with_directory(function(made)
  dir = made
  sh "mkdir out"
end)

--- A whole file of torch.save's format, written so many seconds ago.
local function saved(name, ago)
  sh(("python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1], \"w\")" ..
    ".writestr(\"archive/data.pkl\", sys.argv[1])' 'out/%s' && touch -d '-%d seconds' 'out/%s'")
    :format(name, ago, name))
end

local function resumed(args)
  local text = place.must("run --dir out --to store --run r --settle 1s " .. (args or "") ..
    [[ -- sh -c 'echo "came:${CKPT_RESUME##*/}"']])
  return text:match "came:([^\n]*)", text
end

local function steps()
  local found = {}
  for _, item in ipairs(place.objects(place.must "ls store --json")) do
    found[#found + 1] = ("%s:%s"):format(item.name, tostring(item.step))
  end
  return found
end

describe("names with a metric in them", function()
  local names = { "epoch=0-val_loss=1.70.ckpt", "epoch=1-val_loss=0.99.ckpt",
    "epoch=2-val_loss=1.05.ckpt", "epoch=3-val_loss=0.47.ckpt" }

  it("are resumed from by their epoch, though none was ever committed", function()
    for i, name in ipairs(names) do saved(name, 100 - 10 * i) end
    assert.are.equal(names[4], (resumed()))
    has(place.must "latest store", names[4])
  end)

  it("are in the order in which they were made, with the epoch as step", function()
    for i, name in ipairs(names) do saved(name, 100 - 10 * i) end
    place.must "sync out --to store --run r --settle 0 --trust"
    assert.are.same({ names[1] .. ":0", names[2] .. ":1", names[3] .. ":2", names[4] .. ":3" },
      steps())
  end)

  it("are resumed from where one was whole, and not yet committed, when the job died", function()
    saved("epoch=4-val_loss=0.28.ckpt", 100)
    place.must "sync out --to store --run r --settle 0 --trust"
    saved("epoch=5-val_loss=0.21.ckpt", 50)
    assert.are.equal("epoch=5-val_loss=0.21.ckpt", (resumed()))
    has(place.must "latest store", "epoch=5")
  end)

  it("are one kind, whatever the metric looks like", function()
    saved("epoch=4-val_loss=-1e-05.ckpt", 100)
    place.must "sync out --to store --run r --settle 0 --trust"
    saved("epoch=5-val_loss=nan.ckpt", 50)
    place.must "sync out --to store --run r --settle 0 --trust"
    sh "rm -r out out.ckpt"
    assert.are.equal("epoch=5-val_loss=nan.ckpt", (resumed()))
    lacks(sh "ls out", "epoch=4")
  end)

  it("are taken by the order of their times where they have no step at all", function()
    saved("model_0.9500.pt", 50)
    saved("model_0.9900.pt", 100)
    assert.are.equal("model_0.9500.pt", (resumed()))
  end)

  it("count by their number where all have the same time", function()
    for _, n in ipairs { 9, 10, 8 } do saved(("model_%d_acc_0.5.pt"):format(n), 50) end
    sh "touch -d '2026-01-01 00:00:00' out/*"
    assert.are.equal("model_10_acc_0.5.pt", (resumed()))
    has(place.must "latest store", "model_10_acc_0.5.pt")
  end)
end)

describe("directories that are called by a time of day", function()
  it("are resumed from by their times, with no step", function()
    for i, name in ipairs { "58.642753", "59.100000" } do
      local path = "out/checkpoint_2026-11-22_10-22-" .. name
      sh(("mkdir %s && echo %d >%s/shard && touch -d '-%d seconds' %s/shard")
        :format(path, i, path, 100 - 10 * i, path))
    end
    place.must "sync out --to store --run r --settle 0 --trust"
    sh "rm -r out out.ckpt"
    assert.are.equal("checkpoint_2026-11-22_10-22-59.100000", (resumed()))
    for _, item in ipairs(place.objects(place.must "ls store --json")) do
      assert.is_true(item.step == nil or item.step == json.null)
    end
    assert.is_truthy(support.read(dir .. "/out/checkpoint_2026-11-22_10-22-59.100000/shard"))
  end)
end)

-- Orbax: no file of one is in the next. Nobody watched when they were written.
describe("checkpoints whose files are named by what is in them", function()
  before_each(function()
    for n = 9, 10 do
      sh((([[mkdir -p out/N/state/d; echo weights N >out/N/state/d/$(echo N | md5sum | cut -c-32)
        echo {} >out/N/_CHECKPOINT_METADATA; echo done >out/N/commit_success.txt; sleep 0.1]])
        :gsub("N", n)))
    end
  end)

  it("are all saved by sync", function()
    place.must "sync out --to store --run r --settle 0"
    assert.are.same({ "9:9", "10:10" }, steps())
  end)

  it("are resumed from where the newest was never committed", function()
    assert.are.equal("10", (resumed()))
    has(place.must "latest store", "10")
  end)
end)

describe("what a framework deletes by moving it below its directory", function()
  --- A job that saves as Orbax does, keeps two, and moves the others to `trash`.
  local job = [[set -e; cd out; for n in %s; do
    t=$n.orbax-checkpoint-tmp; mkdir $t; echo "weights of $n" >$t/d
    echo {} >$t/_CHECKPOINT_METADATA; mv $t $n; sleep 1; old=$((n - 2))
    if test -d $old; then mkdir -p trash; mv $old trash/$old; fi; sleep 0.5; done; sleep 1]]

  local function train(numbers)
    return place.must(("run --dir out --to store --run r -- sh -c '%s'")
      :format(job:format(numbers)))
  end

  local function names()
    local found = {}
    for _, item in ipairs(place.objects(place.must "ls store --json")) do
      found[#found + 1] = (item.path or item.group or "") .. ":" .. item.name
    end
    return table.concat(found, " ")
  end

  it("is saved under its own name alone, now and after starts", function()
    train "1 2 3 4"
    lacks(names(), "trash")
    has(place.must "latest store", "4")
    assert.are.equal("1\n2\n", sh "ls out/trash")
    local text = train "5 6"
    has(text, "6")
    has(place.must "latest store", "6")
    assert.are.equal("6", (resumed()))
    assert.are.equal("", sh "find store -path '*trash*'")
    sh "rm -r out/trash/3"
    assert.are.equal("6", (resumed()))
    assert.are.equal("", sh "find store -path '*trash*'")
  end)

  it("is known where nobody watched when it was moved", function()
    train "1 2"
    sh "mkdir out/trash; mv out/1 out/trash/1"
    assert.are.equal("2", (resumed()))
    assert.are.equal("2", (resumed()))
    assert.are.equal("", sh "find store -path '*trash*'")
  end)
end)

describe("files that are called as other things are", function()
  --- What LightGBM's Booster.save_model writes: the last line comes in a second opening.
  local function lightgbm(name)
    return ([[printf 'tree\nversion=v4\n\nend of trees\n\nend of parameters\n' >out/%s
      printf '\npandas_categorical:null\n' >>out/%s]]):format(name, name)
  end

  --- What a Stable-Baselines3 model's save() writes: a zip whose first member is `data`.
  local function zip(name, member)
    return ("python3 -c 'import zipfile; z = zipfile.ZipFile(\"out/%s\", \"w\"); " ..
      "z.writestr(\"%s\", \"{}\"); z.writestr(\"policy.pth\", \"x\")'"):format(name, member)
  end

  local function stored()
    local found = {}
    for _, item in ipairs(place.objects(place.must "ls store --json")) do
      local step = item.step ~= json.null and item.step or nil
      found[#found + 1] = ("%s:%s"):format(item.name, tostring(step))
    end
    table.sort(found)
    return found
  end

  local expected = { "best_model.zip:nil", "lgb_3.txt:3", "pytorch_model-00001-of-00002.bin:nil",
    "rl_model_100_steps.zip:100", "sgd_4.joblib.gz:4" }

  local function all()
    return table.concat({ lightgbm "lgb_3.txt", zip("best_model.zip", "data"),
      zip("rl_model_100_steps.zip", "data"), zip("images.zip", "cat.png"),
      "echo epoch 3 >out/log.txt", "echo x | gzip >out/sgd_4.joblib.gz",
      zip("pytorch_model-00001-of-00002.bin", "data.pkl"),
    }, "\n") .. "\n"
  end

  it("are saved while a job writes them, and nothing else of that name is", function()
    support.write(dir .. "/job.sh", all() .. "sleep 3\n")
    place.must "run --dir out --to store --run r --quiet --settle 1s -- sh job.sh"
    assert.are.same(expected, stored())
  end)

  it("are found where they stand already", function()
    support.write(dir .. "/job.sh", all())
    sh "sh job.sh"
    place.must "sync out --to store --settle 0 --trust"
    assert.are.same(expected, stored())
  end)

  it("are proven by the last brace of XGBoost's, and the one that breaks off is not", function()
    local key = [[L\0\0\0\0\0\0\0\1a]]
    support.write(dir .. "/job.sh", ([[
      printf '{%s[$l#L\0\0\0\0\0\0\0\1\0\0\0\2%s{}}' >out/model_1.ubj
      printf '{%s[$l#L\0\0\0\0\0\0\0\1\0\0\0\2%s{}' >out/model_2.ubj
      kill -9 $$]]):format(key, key, key, key))
    sh "sh job.sh || true"
    assert.are.equal("model_1.ubj", (resumed()))
    has(place.must_sh "ls out.ckpt/quarantine/*", "model_2.ubj")
  end)

  it("are proven by LightGBM's last line", function()
    support.write(dir .. "/job.sh", lightgbm "lgb_3.txt")
    sh "sh job.sh"
    assert.are.equal("lgb_3.txt", (resumed()))
  end)
end)
