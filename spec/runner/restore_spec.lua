-- What a restart goes on from when something is wrong with the newest: marks, failed starts,
-- damage; what is saved beside a checkpoint; and bisect.

local cjson = require "cjson"
local place = require "place"
local support = require "support"
local sh, has, ckpt, ends = place.sh, place.has, place.apart, place.ends
local CKPT = support.runner

local dir

-- A trainer: goes on from $CKPT_RESUME, fails if that is step $FAIL, saves $STEPS more steps.
local TRAINER = [[
n=0; [ -n "$CKPT_RESUME" ] && n=$(cat "$CKPT_RESUME/step")
echo "$n" >>starts
[ "$FAIL" = "$n" ] && exit "${CODE:-1}"
for i in $(seq "${STEPS:-0}"); do
  n=$((n + 1))
  mkdir out/tmp-checkpoint-$n; echo $n >out/tmp-checkpoint-$n/step
  echo '{}' >out/tmp-checkpoint-$n/trainer_state.json
  mv out/tmp-checkpoint-$n out/checkpoint-$n
  echo "checkpoint-$n" >out/latest; echo "{\"step\":$n}" >>out/result.json
  while ! "$CKPT" ls store 2>/dev/null | grep -q "^checkpoint-$n[ .]"; do sleep 0.05; done
done
exit 0
]]

-- A run of it, which has to end with this code: both of its outputs.
local function run(code, env, args)
  return ends(code, ("run --dir out --to store --run one --settle 0.1s %s -- sh trainer.sh")
    :format(args or ""), ("CKPT='%s' %s"):format(CKPT, env))
end

local function train(steps) run(0, "STEPS=" .. steps) end

local function last_start() return tonumber(sh("tail -n 1 starts"):match("%d+")) end

local function lose_all() sh("rm -rf out out.ckpt") end

place.with_directory(function(made)
  dir = made
  support.write(dir .. "/trainer.sh", TRAINER)
end)

describe("mark", function()
  before_each(function() train(3) end)

  it("makes restores choose the one before, and says so everywhere", function()
    assert.are.equal("would mark bad: checkpoint-3\n", (ckpt("mark bad store --dry-run")))
    assert.are.equal("checkpoint-3\n", (ckpt("latest store")))
    local text = ends(0, "mark bad store --reason 'loss is NaN'")
    assert.are.equal("marked bad: checkpoint-3\n", text)
    assert.are.equal("checkpoint-2\n", (ckpt("latest store")))
    has(ckpt("ls store"), "loss is NaN")
    has(ckpt("show store checkpoint-3"), "loss is NaN")
    local shown = cjson.decode((ckpt("show --json store checkpoint-3")))
    assert.is_true(shown.bad)
    assert.are.equal("loss is NaN", shown.bad_reason)
    has(ckpt("why checkpoint-3 --to store"), "loss is NaN")
    assert.are.equal("back/checkpoint-2\n", (ckpt("restore store --dir back")))
    assert.are.equal("named/checkpoint-3\n", (ckpt("restore store checkpoint-3 --dir named")))
  end)

  it("is taken back", function()
    ckpt("mark bad store checkpoint-3")
    assert.are.equal("marked good: checkpoint-3\n", (ckpt("mark good store")))
    assert.are.equal("checkpoint-3\n", (ckpt("latest store")))
    ends(4, "mark good store")
  end)

  it("on all of them is told where nothing is found, and at a fresh start", function()
    for i = 1, 3 do ckpt(("mark bad store checkpoint-%d --reason broken"):format(i)) end
    for _, args in ipairs { "latest store", "show store", "restore store --dir back" } do
      local _, err = ends(4, args)
      has(err, "marked bad")
      has(err, "checkpoint-3")
      assert.is_nil(err:find("no checkpoint yet", 1, true))
    end
    lose_all()
    local _, err = run(0, "STEPS=0")
    assert.are.equal(0, last_start())
    has(err, "nothing is resumed from: ")
    has(err, "checkpoint-3 and all others are marked bad: broken")
  end)

  it("is refused for what is not there or no longer kept, and for other words", function()
    local _, err = ends(4, "mark bad store checkpoint-9")
    has(err, "checkpoint-9")
    ckpt("rm store checkpoint-1")
    _, err = ends(4, "mark bad store checkpoint-1")
    has(err, "no longer kept")
    ends(2, "mark ugly store")
  end)

  it("is not restored where nothing is there any more", function()
    ckpt("mark bad store checkpoint-3")
    lose_all()
    run(0, "STEPS=0")
    assert.are.equal(2, last_start())
    assert.are.equal("", sh("find out -name checkpoint-3"))
  end)

  it("makes the next start go back, with the pointer of that time", function()
    ckpt("mark bad store checkpoint-3")
    run(0, "STEPS=0")
    assert.are.equal(2, last_start())
    assert.are.equal("checkpoint-2\n", support.read(dir .. "/out/latest"))
    has(sh("find out.ckpt/quarantine"), "checkpoint-3/step")
    has(sh("cat out.ckpt/quarantine/*/latest"), "checkpoint-3")
  end)
end)

describe("failed starts", function()
  before_each(function() train(2) end)

  it("from one checkpoint end in a start from the one before", function()
    for _ = 1, 3 do
      run(1, "FAIL=2")
      assert.are.equal(2, last_start())
    end
    local _, err = run(0, "FAIL=2")
    assert.are.equal(1, last_start())
    has(err, "OLDER")
  end)

  it("name what is taken instead, though it is newer", function()
    train(1)
    ckpt("mark bad store checkpoint-3")
    for _ = 1, 3 do run(1, "FAIL=2") end
    ckpt("mark good store checkpoint-3")
    local _, err = run(0, "FAIL=2")
    assert.are.equal(3, last_start())
    has(err, "checkpoint-3, a newer one, is taken")
  end)

  it("are counted as --bad-after says, and never with 0", function()
    run(1, "FAIL=2", "--bad-after 1")
    run(0, "FAIL=2", "--bad-after 1")
    assert.are.equal(1, last_start())
    ckpt("mark good store")
    lose_all()
    for _ = 1, 4 do run(1, "FAIL=2", "--bad-after 0") end
    assert.are.equal(2, last_start())
    run(2, "", "--bad-after x")
  end)

  it("do not count when a scheduler ended the job", function()
    for _ = 1, 5 do run(143, "FAIL=2 CODE=143") end
    assert.are.equal(2, last_start())
  end)
end)

describe("a damaged checkpoint", function()
  before_each(function() train(3) end)

  it("is passed over loudly, and marked", function()
    sh("echo x >store/checkpoint-3/step")
    lose_all()
    local _, err = run(0, "STEPS=1")
    assert.are.equal(2, last_start())
    has(err, "CANNOT BE RESTORED")
    has(ckpt("ls store"), "BAD")
    assert.are.equal("checkpoint-3.~", (ckpt("latest store")):sub(1, 14))
  end)

  it("is one in which a link has taken a file's place, too", function()
    sh("mv store/checkpoint-3/step kept; ln -s ../../kept store/checkpoint-3/step")
    lose_all()
    ends(5, "restore store --dir back")
    ends(5, "verify store")
    local _, err = run(0, "STEPS=1")
    assert.are.equal(2, last_start())
    has(err, "CANNOT BE RESTORED")
    has(err, "symbolic link")
  end)

  it("is an error when it was named, or when there is no other", function()
    sh("for i in 1 2 3; do echo x >store/checkpoint-$i/step; done")
    lose_all()
    run(5, "", "--restore checkpoint-3")
    run(5, "")
    assert.are.equal("", sh("ls out"))
  end)
end)

describe("what is saved beside a checkpoint", function()
  before_each(function() train(2) end)

  it("comes back after it", function()
    lose_all()
    run(0, "STEPS=0")
    assert.are.equal("checkpoint-2\n", support.read(dir .. "/out/latest"))
    assert.are.equal('{"step":1}\n{"step":2}\n', support.read(dir .. "/out/result.json"))
  end)

  it("is of the moment of its checkpoint", function()
    ends(0, "restore store checkpoint-1 --dir back")
    assert.are.equal("checkpoint-1\n", support.read(dir .. "/back/latest"))
  end)

  it("comes back when it alone is missing, and replaces nothing newer", function()
    sh("rm out/latest; echo more >>out/result.json")
    run(0, "STEPS=0")
    assert.are.equal("checkpoint-2\n", support.read(dir .. "/out/latest"))
    has(support.read(dir .. "/out/result.json"), "more")
  end)

  it("stops a restore where something else has its name, but for --alone", function()
    ckpt("restore store checkpoint-1 --dir back")
    local _, code, err = ckpt("restore store checkpoint-2 --dir back")
    assert.are_not.equal(0, code)
    has(err, "latest")
    assert.is_nil(support.read(dir .. "/back/checkpoint-2/step"))
    ends(0, "restore store checkpoint-2 --dir back --alone")
    assert.are.equal("checkpoint-1\n", support.read(dir .. "/back/latest"))
  end)

  it("is verified, too", function()
    ends(0, "verify store")
    sh("for f in store/.ckpt/with/*/*/latest; do echo checkpoint-9 >$f; done")
    local out
    out = ends(5, "verify store")
    has(out, "latest")
    sh("rm store/.ckpt/with/*/*/.ckpt-manifest.json")
    ends(5, "verify store")
  end)

  it("is what the policy says", function()
    support.write(dir .. "/mine.lua", 'return { api = 1, with = { "notes/**" } }')
    sh("rm -rf out out.ckpt store; mkdir -p out/notes; echo n >out/notes/a")
    run(0, "STEPS=1", "-p ./mine.lua")
    ckpt("restore store --dir back")
    assert.are.equal("n\n", support.read(dir .. "/back/notes/a"))
    assert.is_nil(support.read(dir .. "/back/latest"))
    support.write(dir .. "/mine.lua", 'return { api = 1, with = { "../*" } }')
    run(2, "", "-p ./mine.lua")
  end)

  it("is named when it points to a place that is gone", function()
    sh("echo /gone/work/checkpoint-3 >out/last_checkpoint")
    train(1)
    local _, _, err = ckpt("restore store --dir back")
    has(err, "back/last_checkpoint names /gone/work/checkpoint-3, which is not there")
  end)
end)

describe("the times of directories", function()
  it("rise with the log after a restore", function()
    train(3)
    sh("rm -r out/checkpoint-3; touch out/checkpoint-1")
    run(0, "STEPS=0")
    assert.are.equal("checkpoint-1\ncheckpoint-2\ncheckpoint-3\n",
      sh("ls -dtr out/checkpoint-* | xargs -n 1 basename"))
  end)
end)

describe("bisect", function()
  before_each(function() train(6) end)

  local function tries()
    local _, count = support.read(dir .. "/err.txt"):gsub("the command ended", "")
    return count
  end

  it("finds the newest that the command accepts, in few tries", function()
    local text = ends(0, "bisect store -- sh -c 'test $(cat {}/step) -le 2'")
    assert.are.equal("checkpoint-2\n", text)
    assert.is_true(tries() <= 4)
    text = ckpt("bisect store -- sh -c 'test $(cat $CKPT_RESUME/step) -le 6'")
    assert.are.equal("checkpoint-6\n", text)
    assert.are.equal(1, tries())
  end)

  it("tries each, newest first, with --linear", function()
    local text = ends(0, "bisect store --linear -- sh -c 'test $(cat {}/step) = 4'")
    assert.are.equal("checkpoint-4\n", text)
    assert.are.equal(3, tries())
  end)

  it("passes over what cannot be told, and says that it is not sure", function()
    local text, code =
      ckpt("bisect store -- sh -c 's=$(cat {}/step); test $s = 3 && exit 125; test $s -le 2'")
    assert.are.equal("checkpoint-2\n", text)
    assert.are.equal(3, code)
  end)

  it("leaves nothing behind when it is told to end, and marks nothing", function()
    sh("mkdir tmp")
    local command = "sh -c 'kill $PPID; sleep 0.2; exit 1'"
    ends(143, "bisect store --mark -- " .. command, "TMPDIR=tmp")
    assert.are.equal("", sh("ls -A tmp"))
    assert.are.equal("checkpoint-6\n", (ckpt("latest store")))
  end)

  it("marks what is newer with --mark", function()
    ckpt("bisect store --mark -- sh -c 'test $(cat {}/step) -le 2'")
    assert.are.equal("checkpoint-2\n", (ckpt("latest store")))
  end)

  it("takes damaged data for bad, and needs no command for that", function()
    sh("echo x >store/checkpoint-6/step")
    assert.are.equal("checkpoint-5\n", (ckpt("bisect store")))
  end)

  it("leaves nothing behind, whatever the command does", function()
    sh("mkdir tmp")
    ckpt("bisect store --dir tmp -- sh -c 'mkdir {}/more; echo x >{}/more/x; chmod 500 {}/more'")
    assert.are.equal("", sh("ls -A tmp"))
    local text = ends(4, "bisect store --dir tmp -- false")
    assert.are.equal("", text)
    ends(1, "bisect store --dir tmp -- ./no-such-command")
    assert.are.equal("", sh("ls -A tmp"))
  end)
end)
