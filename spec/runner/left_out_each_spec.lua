-- `exclude` may be a function: what one checkpoint alone is saved without.

local cjson = require "cjson"
local place = require "place"
local support = require "support"
local has, lacks, ends, must, sh = place.has, place.lacks, place.ends, place.must, place.must_sh

local ZIP, TORN = "PK\5\6" .. ("\0"):rep(18), "PK\3\4 torn"
local dir

-- A checkpoint of a model, an optimizer, and the file that a Trainer writes last.
local function checkpoint(step, more)
  local at = ("%s/out/checkpoint-%d"):format(dir, step)
  sh("mkdir -p " .. at)
  support.write(at .. "/model.pt", ZIP .. step)
  support.write(at .. "/optimizer.pt", ZIP)
  if more then support.write(at .. "/" .. more, step .. more) end
  support.write(at .. "/trainer_state.json", ('{"global_step":%d}'):format(step))
end

local function policy(keys, name)
  support.write(("%s/%s.lua"):format(dir, name or "p"), "return { api = 1,\n" .. keys .. "\n}\n")
end

local EVEN = [[exclude = function(e)
  if e.checkpoint.step % 20 ~= 0 then return { "optimizer.pt" }, "no twentieth" end
end]]

-- One after the other, as a job makes them.
local function saved(...)
  for _, step in ipairs { ... } do
    checkpoint(step)
    must "sync out --to store --settle 0 -p ./p.lua"
  end
end

local function files_of(name)
  local names = {}
  for line in sh("cd store/" .. name .. " && ls"):gmatch "[^\n]+" do names[#names + 1] = line end
  return table.concat(names, " ")
end

local function count_of(name)
  local n = 0
  for _, one in ipairs(place.objects(must "ls store --json")) do
    if one.name == name then n = n + 1 end
  end
  return n
end

place.with_directory(function(made) dir = made end)

describe("a function of exclude", function()
  it("says of each checkpoint what it is saved without, and show tells", function()
    policy(EVEN)
    saved(10, 20)
    assert.are.equal("model.pt trainer_state.json", files_of "checkpoint-10")
    assert.are.equal("model.pt optimizer.pt trainer_state.json", files_of "checkpoint-20")
    local text = must "show store checkpoint-10"
    has(text, "left out   1 file, by excludes: a restore does not bring it back")
    has(text, "\nleft out   optimizer.pt\n")
    local shown = cjson.decode(must "show store checkpoint-10 --json")
    assert.are.same({ "optimizer.pt" }, shown.left_names)
    assert.are.same({ "optimizer.pt" }, shown.left_globs)
    assert.is_nil(cjson.decode(must "show store checkpoint-20 --json").left_out)
    local _, err = ends(0, "restore store checkpoint-10 --dir back")
    has(err, "without 1 file that excludes left out of it when it was saved")
    must "verify store"
  end)

  it("is told by why, of the file and of its checkpoint", function()
    policy(EVEN)
    saved(10)
    local function asked(name)
      return cjson.decode((ends(0, "why --json out/checkpoint-10" .. name)))
    end
    assert.are.equal("committed", asked("").cause)
    assert.are.equal("committed", asked("/model.pt").cause)
    local left = asked "/optimizer.pt"
    assert.are.equal("left-out", left.cause)
    has(left.text, 'checkpoint-10 was saved without it: "optimizer.pt", by `exclude` of a policy')
    must "run --dir out --to store --continue-run -p ./p.lua -- true"
    assert.are.equal("left-out", asked("/optimizer.pt").cause)
    has(must "why out/checkpoint-10", 'it was saved without what "optimizer.pt" means')
  end)

  it("is said with -v, with its reason", function()
    policy(EVEN)
    checkpoint(10)
    local _, err = ends(0, "sync out --to store --settle 0 -v -p ./p.lua")
    has(err, "checkpoint-10 is saved without optimizer.pt, by `exclude` of p: no twentieth")
  end)

  it("is asked once about each that is saved, however often the run starts", function()
    policy [[exclude = { "*.log", function(_, memory)
      memory.asked = (memory.asked or 0) + 1
      return memory.asked % 2 == 0 and { "optimizer.pt" } or nil
    end }]]
    for step = 1, 4 do
      checkpoint(step, "debug.log")
      must "sync out --to store --settle 0 -p ./p.lua"
      must "sync out --to store --settle 0 -p ./p.lua"
    end
    local left = {}
    for step = 1, 4 do left[step] = files_of("checkpoint-" .. step) end
    local all, less = "model.pt optimizer.pt trainer_state.json", "model.pt trainer_state.json"
    assert.are.same({ all, less, all, less }, left)
    assert.are.equal(2, cjson.decode(must "show store checkpoint-2 --json").left_out)
    assert.are.equal(1, cjson.decode(must "show store checkpoint-3 --json").left_out)
  end)

  it("sees the numbers of the checkpoint, and what is at its top", function()
    policy [[exclude = function(e)
      local names = table.concat(e.checkpoint.names, " ")
      if e.checkpoint.metrics.loss > 1 and names:find "optimizer.pt" then return "optimizer.pt" end
    end]]
    checkpoint(10)
    support.write(dir .. "/out/checkpoint-10/trainer_state.json",
      '{"global_step":10,"log_history":[{"loss":2.5,"step":10}]}')
    must "sync out --to store --settle 0 -p ./p.lua"
    assert.are.equal("model.pt trainer_state.json", files_of "checkpoint-10")
  end)

  it("is seen by keep, which may keep one that is whole", function()
    policy(EVEN .. [[,
keep = any { keep.last(1), function(list)
  local whole
  for _, c in ipairs(list) do
    if not c.left_out then whole = c end
  end
  return { whole }, "whole"
end }]])
    saved(10, 20, 30, 50, 70)
    local text = must "plan store -p ./p.lua --max-delete 100% --grace-delete 0"
    assert.are.equal("keep", text:match "(%S+) +checkpoint%-20 ")
    assert.are.equal("drop", text:match "(%S+) +checkpoint%-30 ")
    assert.are.equal("keep", text:match "(%S+) +checkpoint%-70 ")
  end)

  it("counts for keep by itself, not with what globs leave out of all", function()
    policy [[exclude = { "*.log", function(e)
  if e.checkpoint.step % 20 ~= 0 then return { "optimizer.pt", "*.log" } end
end },
keep = any { keep.last(1), function(list)
  local whole
  for _, c in ipairs(list) do
    if not c.left_out then whole = c end
    assert(not c.left_out or c.left_out == 1)
  end
  return { whole }, "whole"
end }]]
    for _, step in ipairs { 10, 20, 30, 50 } do
      checkpoint(step, "train.log")
      must "sync out --to store --settle 0 -p ./p.lua"
    end
    local text = must "plan store -p ./p.lua --max-delete 100% --grace-delete 0"
    assert.are.equal("keep", text:match "(%S+) +checkpoint%-20 ")
    assert.are.equal("drop", text:match "(%S+) +checkpoint%-30 ")
    has(must "show store checkpoint-20", "left out   1 file, by excludes")
    has(must "show store checkpoint-30", "left out   2 files, by excludes")
    assert.are.equal(2, cjson.decode(must "show store checkpoint-30 --json").left_out)
  end)

  it("is put together with that of another policy", function()
    policy(EVEN)
    policy("exclude = { 'none', function() return 'model.pt' end }", "q")
    checkpoint(10)
    must "sync out --to store --settle 0 -p ./p.lua -p ./q.lua"
    assert.are.equal("trainer_state.json", files_of "checkpoint-10")
  end)

  it("holds for a name that is written again and again, which is copied first", function()
    policy "unit = 'last/', exclude = function() return 'optimizer.pt' end"
    sh "mkdir -p out/last"
    for i = 1, 2 do
      support.write(dir .. "/out/last/model.pt", ZIP .. i)
      support.write(dir .. "/out/last/optimizer.pt", ZIP .. i)
      support.write(dir .. "/out/last/trainer_state.json", "{}")
      must "sync out --to store --settle 0 -p ./p.lua"
    end
    assert.are.equal(2, count_of "last")
    has(must "show store last", "left out   optimizer.pt\n")
    must "run --dir out --to store --continue-run -p ./p.lua -- true"
    assert.are.equal(2, count_of "last")
  end)

  describe("that has no answer has the checkpoint saved whole, and the log says so:", function()
    for what, row in pairs {
      ["a number"] = { "return 5", "exclude: its answer is none: p: `exclude` returned 5" },
      ["an error"] = { "error 'boom'", "exclude: it raised an error: " },
      ["no end"] = { "while true do end", "exclude: it ran too long" },
      ["a glob that is none"] = { "return 'a[b'", "exclude: " },
    } do
      it(what, function()
        policy(("exclude = function(e) if not e.trial then %s end end"):format(row[1]))
        checkpoint(10)
        local _, err = ends(0, "sync out --to store --settle 0 -p ./p.lua")
        has(err, row[2])
        has(err, "; the checkpoint is saved whole (1 time so far)")
        assert.are.equal("model.pt optimizer.pt trainer_state.json", files_of "checkpoint-10")
      end)
    end

    it("all that there is", function()
      policy "exclude = function() return '**' end"
      checkpoint(10)
      local _, err = ends(0, "sync out --to store --settle 0 -p ./p.lua")
      has(err, "checkpoint-10 is saved whole: what it was to be saved without, by the policy's "
        .. "`exclude`, is all that it has")
      assert.are.equal("model.pt optimizer.pt trainer_state.json", files_of "checkpoint-10")
    end)
  end)
end)

describe("a start that finds a checkpoint with what its commit was saved without", function()
  local function start()
    return ends(0, "run --dir out --to store --continue-run -p ./p.lua -- ls out/checkpoint-10")
  end

  before_each(function()
    policy(EVEN)
    saved(10)
  end)

  it("goes on from it with all of its files, and saves it no second time", function()
    local text, err = start()
    has(text, "optimizer.pt")
    has(err, "resume from " .. dir .. "/out/checkpoint-10\n")
    lacks(err, "without")
    assert.are.equal(1, count_of "checkpoint-10")
  end)

  it("does so where its own records are lost, too", function()
    sh "rm -rf out.ckpt"
    local text, err = start()
    has(text, "optimizer.pt")
    has(err, "resume from " .. dir .. "/out/checkpoint-10\n")
    lacks(err, "was moved to")
    assert.are.equal(1, count_of "checkpoint-10")
  end)

  it("takes the commit where one of these files is torn, and says what is not there", function()
    sh "rm -rf out.ckpt"
    support.write(dir .. "/out/checkpoint-10/optimizer.pt", TORN)
    local text, err = start()
    lacks(text, "optimizer.pt")
    has(err, "it is torn, and a committed copy is restored")
    has(err, "; the copy there has 1 file that the commit was saved without: optimizer.pt)")
    has(err, "checkpoint-10 was saved without 1 file that --exclude or a policy leaves out")
    assert.are.equal(1, count_of "checkpoint-10")
  end)

  it("says where a copy with all of them is, if only lost records prove it whole", function()
    sh "rm -rf out out.ckpt store"
    support.write(dir .. "/job.sh", "mkdir -p out/tmp; echo m >out/tmp/model.pt\n"
      .. "echo o >out/tmp/optimizer.pt; mv out/tmp out/checkpoint-10\n")
    must "run --dir out --to store --settle 0 -p ./p.lua -- sh job.sh"
    sh "rm -rf out.ckpt"
    local text, err = start()
    lacks(text, "optimizer.pt")
    has(err, "nothing proves it whole, and a committed copy is restored (")
    has(err, "; the copy there has 1 file that the commit was saved without: optimizer.pt)")
    local to = err:match "checkpoint%-10 was moved to (%S+):"
    assert.are.equal("o\n", support.read(to .. "/optimizer.pt"))
  end)

  it("restores what was saved where nothing is here, and takes that for the commit", function()
    sh "rm -rf out out.ckpt"
    local text, err = start()
    lacks(text, "optimizer.pt")
    has(err, "checkpoint-10 was saved without 1 file that --exclude or a policy leaves out")
    sh "rm -rf out.ckpt"
    text, err = start()
    lacks(text, "optimizer.pt")
    lacks(err, "was moved to")
    assert.are.equal(1, count_of "checkpoint-10")
  end)

  it("saves it anew where what was saved of it is another content now", function()
    sh "rm -rf out.ckpt out/checkpoint-10"
    checkpoint(10)
    support.write(dir .. "/out/checkpoint-10/model.pt", "other" .. ZIP)
    must "sync out --to store --settle 0 --continue-run -p ./p.lua"
    assert.are.equal(2, count_of "checkpoint-10")
  end)
end)

describe("a directory that was copied out of the store without what was left out", function()
  it("is the commit, and gets no second one", function()
    policy(EVEN)
    saved(10)
    sh "rm -rf out out.ckpt; mkdir out; cp -r store/checkpoint-10 out/"
    must "sync out --to store --settle 0 --continue-run -p ./p.lua"
    assert.are.equal(1, count_of "checkpoint-10")
  end)
end)

describe("a job that is killed while its policy leaves files out of some", function()
  local train = ("luajit '%s/examples/train.lua' --hidden 8 --save-every 10 --steps 60")
    :format(support.root)

  it("goes on with all that is here, and ends as one that was not killed", function()
    policy(EVEN)
    local whole = sh(train .. " --dir other")
    local args = " run --dir out --to store --continue-run -p ./p.lua -- "
    place.background(place.at("echo $$ >pid; exec CKPT" .. args .. train
      .. " --dir out --save-delay 0.3"))
    support.await("a commit without its optimizer", function()
      return place.ckpt("ls store --json"):find('"left_out":1', 1, true) ~= nil
    end)
    sh "kill -9 $(cat pid)"
    place.ended()
    local text = must(args .. train .. " --dir out --resume auto")
    assert.are.equal(whole:match "final step=60[^\n]*", text:match "final step=60[^\n]*")
    for _, one in ipairs(place.objects(must "ls store --json")) do
      assert.are.equal(one.step % 20 ~= 0 and 1 or nil, one.left_out)
      assert.are.equal(1, count_of(one.name))
    end
  end)
end)
