-- One directory and more than one target: what is "committed" is asked of the target at hand, never
-- of what this machine remembers of another one.

local cjson = require "cjson"
local support = require "support"
local targets = require "world.targets"
local uri, change, must, ckpt = targets.uri, targets.change, targets.must, targets.ckpt
local save, sync, committed = targets.save, targets.sync, targets.committed
local must_sync, must_hold, has = targets.must_sync, targets.must_hold, targets.has
local lacks = targets.lacks

local dir

local function count(to)
  local _, n = (ckpt("ls --json '%s'", uri(to))):gsub("[^\n]+", "")
  return n
end

before_each(function() dir = targets.begin() end)
after_each(targets.finish)

describe("a second target", function()
  it("gets by sync what the first one has, and by turns nothing is saved twice", function()
    save(1, 2)
    must_sync("A", 2, 1, 2)
    must_sync("B", 2, 1, 2)
    must_sync("A", 0, 1, 2)
    must_sync("B", 0, 1, 2)
    save(3)
    must_sync("A", 1, 1, 2, 3)
    must_sync("B", 1, 1, 2, 3)
    must_sync("A", 0, 3)
    assert.are.equal(3, count("A"))
    assert.are.equal(3, count("B"))
  end)

  it("gets it by watch", function()
    save(1)
    must_sync("A", 1, 1)
    local text, code = targets.sh((
      "'%s' watch --dir out --to '%s' --settle 0 2>watch.txt & pid=$!\n" ..
      "for _ in $(seq 200); do grep -q 'committed checkpoint-1' watch.txt && break; sleep 0.05\n" ..
      "done; kill -TERM $pid; wait $pid; code=$?; cat watch.txt; exit $code"):format(
      support.runner, uri("B")))
    has(text, "1 committed")
    assert.is_truthy(code == 0 or code == 143, text)
    must_hold("B", 1)
  end)

  it("gets it by run", function()
    save(1)
    must_sync("A", 1, 1)
    local made, code, text = committed("run --dir out --to '%s' --settle 0 -- true", uri("B"))
    assert.are.equal(1, made, text)
    assert.are.equal(0, code, text)
    must_hold("B", 1)
    made, code, text = committed(
      "run --dir out --to '%s' --continue-run --settle 0 -- true", uri("A"))
    assert.are.equal(0, made, text)
    assert.are.equal(0, code, text)
  end)

  it("gets one that lies in a directory of its own", function()
    must("mkdir -p out/exp/T1/checkpoint-5 && cd out/exp/T1/checkpoint-5 && echo w >w.bin && " ..
      "echo '{}' >trainer_state.json")
    assert.are.equal(1, (sync("A")))
    assert.are.equal(1, (sync("B")))
    assert.are.equal(0, (sync("A")))
    change("B", "diff DATA/exp/T1/checkpoint-5/w.bin out/exp/T1/checkpoint-5/w.bin")
  end)

  it("is named by status and exit.json", function()
    save(1)
    for _, name in ipairs { "A", "B" } do
      must_sync(name, 1, 1)
      local ended = cjson.decode(support.read(dir .. "/out.ckpt/exit.json"))
      assert.are.equal(uri(name), ended.target)
      has((ckpt("status out")), uri(name))
    end
  end)
end)

describe("what why says of a second target", function()
  local function why(to)
    return cjson.decode((ckpt("why --json --dir out --to '%s' checkpoint-1", uri(to)))).cause
  end

  local function save_another(to)
    must("rm -rf other && cp -r out other && echo else >other/checkpoint-1/model.bin && " ..
      "find other -exec touch -d '1 hour ago' {} +")
    committed("sync other --settle 0 --to '%s' --continue-run", uri(to))
  end

  before_each(function() save(1) end)

  it("is not that it has it, if it has another one of that name", function()
    must_sync("A", 1, 1)
    save_another("B")
    assert.are.equal("other-store", why("B"))
    assert.are.equal("committed", why("A"))
    assert.are.equal(1, (sync("B", "--continue-run")))
    assert.are.equal("committed", why("B"))
    assert.are.equal("committed", why("A"))
  end)

  it("is not that it has it, if it has an older content of ours", function()
    must_sync("A", 1, 1)
    must("echo newer >out/checkpoint-1/model.bin")
    must_sync("B", 1, 1)
    assert.are.equal("other-store", why("A"))
    assert.are.equal("committed", why("B"))
    must_sync("A", 1, 1)
    assert.are.equal("committed", why("A"))
    assert.are.equal("committed", why("B"))
    change("A", "cp -a DATA backup")
    must("echo newest >out/checkpoint-1/model.bin")
    must_sync("A", 1, 1)
    change("A", "rm -rf DATA && mv backup DATA")
    assert.are.equal("lost", why("A"))
  end)

  it("is that it was lost, if its number is another one's now", function()
    save(0)
    must_sync("A", 2, 0, 1)
    must("rm -rf out.ckpt")
    change("A", "rm -rf DATA")
    must_sync("A", 2, 0, 1)
    change("A", "rm -rf DATA")
    save_another("A")
    assert.are.equal("lost", why("A"))
  end)
end)

-- A file stands where its directory would be: it cannot be opened.
describe("a second target that cannot be opened", function()
  local function must_fail(args)
    local text, code = ckpt(args)
    assert.are_not.equal(0, code, text)
    return text
  end

  it("leaves no word of the first one's run as its own", function()
    save(1)
    must_sync("A", 1, 1)
    must("echo >plain")
    local wrong = "file://" .. dir .. "/plain/B"
    must_fail(("sync out --settle 0 --to '%s'"):format(wrong))
    local ended = cjson.decode(support.read(dir .. "/out.ckpt/exit.json"))
    assert.are.equal(wrong, ended.target)
    assert.are.equal("start", ended.reason)
    assert.is_false(ended.durable)
    assert.are_not.equal(0, ended.exit_code)
    local text = ckpt("status out")
    has(text, "did not begin")
    has(text, wrong)
    lacks(text, "1 committed")
    must_sync("A", 0, 1)
    has((ckpt("status out")), "0 committed")
  end)

  it("leaves what a live run will say alone, and what is not ours", function()
    save(1)
    must_sync("A", 1, 1)
    must("mkdir foreign && echo theirs >foreign/exit.json")
    must_fail(("sync out --settle 0 --state foreign --to '%s'"):format(uri("B")))
    assert.are.equal("theirs\n", support.read(dir .. "/foreign/exit.json"))
    local held = targets.sh((
      "'%s' run --dir out --to '%s' --continue-run -- sh -c \"" ..
      "'%s' sync out --settle 0 --to '%s'; test ! -e out.ckpt/exit.json && echo none-was-left\""
    ):format(support.runner, uri("A"), support.runner, uri("B")))
    has(held, "none-was-left")
  end)
end)

describe("a target that is not what it was", function()
  before_each(function() save(1, 2) end)

  it("was removed: all of it is saved again", function()
    must_sync("A", 2, 1, 2)
    change("A", "rm -rf DATA")
    must_sync("A", 2, 1, 2)
    must_sync("A", 0, 1, 2)
  end)

  it("was emptied: all of it is saved again", function()
    must_sync("A", 2, 1, 2)
    change("A", "find DATA -mindepth 1 -delete")
    must_sync("A", 2, 1, 2)
  end)

  it("was removed as a run: all of it is saved again", function()
    must_sync("A", 2, 1, 2)
    local text, code = ckpt("gc '%s' --remove-run --yes --grace-delete 0", uri("A"))
    assert.are.equal(0, code, text)
    must_sync("A", 2, 1, 2)
  end)

  it("was restored from an older backup: what was committed since is saved again", function()
    must_sync("A", 2, 1, 2)
    change("A", "cp -a DATA backup")
    save(3)
    must_sync("A", 1, 1, 2, 3)
    change("A", "rm -rf DATA && cp -a backup DATA")
    -- The number of the lost commit is taken: by another one of the same name, from elsewhere.
    must("cp -r out other && echo else >other/checkpoint-3/model.bin && " ..
      "find other -exec touch -d '1 hour ago' {} +")
    committed("sync other --settle 0 --to '%s' --continue-run", uri("A"))
    local made, code, text = sync("A", "--continue-run")
    assert.are.equal(1, made, text)
    assert.are.equal(0, code, text)
    must_hold("A", 1, 2, 3)
  end)

  it("is a copy, and both were gone on with: each has what was saved to it alone", function()
    must_sync("A", 2, 1, 2)
    change("A", "cp -a DATA '" .. targets.data("B") .. "'")
    save(3)
    must_sync("A", 1, 1, 2, 3)
    must_sync("B", 1, 1, 2, 3)
    save(4)
    must_sync("B", 1, 4)
    must_sync("A", 1, 4)
    must_sync("B", 0, 1, 2, 3, 4)
    must_sync("A", 0, 1, 2, 3, 4)
  end)

  it("is another one for a copy of the state directory", function()
    must_sync("A", 2, 1, 2)
    must("cp -a out.ckpt copied")
    local made, code, text = sync("B", "--state copied")
    assert.are.equal(2, made, text)
    assert.are.equal(0, code, text)
    must_hold("B", 1, 2)
    must_sync("A", 0, 1, 2)
  end)

  it("is known again by a journal of before, which names no log", function()
    must_sync("A", 2, 1, 2)
    local path = dir .. "/out.ckpt/journal.jsonl"
    local old = support.read(path):gsub('"entry":"[^"]*",', ""):gsub('"log":"[^"]*",', "")
    assert.is_nil(old:find('"entry"', 1, true))
    support.write(path, old)
    must_sync("B", 2, 1, 2)
    support.write(path, old)
    must_sync("A", 0, 1, 2)
    has(support.read(path), '"entry"')
  end)
end)
