-- The last word of run, watch and sync: the same in the last line, in exit.json and in `status`;
-- durable is said only where something is in the target.

local json = require "cjson"
local place = require "place"
local support = require "support"
local has, lacks, sh = place.has, place.lacks, place.must_sh
local CKPT, read, write, await = support.runner, support.read, support.write, support.await

local dir

place.with_directory(function(made)
  dir = made
  sh "mkdir out"
  write(dir .. "/no.lua", "return { api = 1, sync = function() return 'skip', 'too hot' end }\n")
  write(dir .. "/first.lua", [[
return { api = 1, sync = function(e)
  if e.checkpoint.step > 1 then return 'skip', 'one is enough' end
end }
]])
  write(dir .. "/job.sh", [[
save() {
  mkdir -p out/.new && echo "weights $1" >out/.new/model.bin &&
  echo '{}' >out/.new/trainer_state.json &&
  mv out/.new out/checkpoint-$1
}
]])
end)

local function ended() return json.decode(read(dir .. "/out.ckpt/exit.json")) end

--- A run of this job ends with this code and this standing: its last line, and its exit.json.
local function must_end(code, standing, job, args)
  local text = place.sh_ends(code, ("export CKPT='%s'; \"$CKPT\" run --dir out --to store %s " ..
    "-- sh -c '. ./job.sh; %s'"):format(CKPT, args or "", job))
  local all = ended()
  assert.are.equal(standing, all.standing, text)
  assert.are.equal(standing == "durable", all.durable)
  assert.are.equal(code, all.exit_code)
  local line = text:match "([^\n]*)\n*$"
  assert.are.equal("ckpt-lua: " .. all.summary, line)
  if standing ~= "durable" then lacks(line, "; durable") end
  return line, all, text
end

local function store_is_empty() return sh "ls -A store 2>/dev/null | grep -v .ckpt; true" == "" end

describe("a run that saved something", function()
  it("is durable, and says where", function()
    local line, all = must_end(0, "durable", "save 1; save 2", "--require-commit")
    has(line, "; durable in file://" .. dir .. "/store")
    assert.are.equal("file://" .. dir .. "/store", all.target)
    assert.are.equal(dir .. "/out", all.directory)
    assert.are.equal((sh "hostname"):match "%S+", all.host)
    assert.are.equal(0, all.rank)
    assert.are.equal(1, all.world)
    assert.is_truthy(all.run:match "^%x+$")
    assert.are.equal(json.null, all.not_wanted)
  end)

  it("is durable at its next start, which finds it there", function()
    must_end(0, "durable", "save 1")
    must_end(0, "durable", "true", "--require-commit --continue-run")
  end)

  it("names the newer one that the policy did not want", function()
    local line, all = must_end(0, "durable", "save 1; save 2", "-p ./first.lua --require-commit")
    has(line, "; not wanted: checkpoint-2 (by first: one is enough)")
    assert.are.same({ unit = "checkpoint-2", policy = "first", reason = "one is enough" },
      all.not_wanted)
  end)

  it("has the code of its job, and the word besides", function()
    must_end(9, "durable", "save 1; exit 9")
    sh "rm -rf out/* store out.ckpt"
    must_end(9, "nothing_to_save", "exit 9", "--require-commit")
  end)
end)

describe("a target that was emptied", function()
  local function must_be_missed(job)
    local line, all, text = must_end(5, "not_durable", job)
    has(line, "NOT durable: checkpoint-1 (")
    assert.are.equal("checkpoint-1", all.not_durable[1].unit)
    has(text, "checkpoint-1 was committed to file://" .. dir .. "/store, but its manifest is gone")
  end

  local saved = '"$CKPT" notify checkpoint=checkpoint-1 --wait; '

  it("is noticed at the end of a run", function()
    must_be_missed("save 1; " .. saved .. "rm -rf store/checkpoint-1")
  end)

  it("is noticed where nothing at all is left of it", function()
    must_be_missed("save 1; " .. saved .. "rm -rf store")
  end)
end)

describe("a run that saved nothing", function()
  it("had nothing to save, and names the directory that it looked in", function()
    local line = must_end(0, "nothing_to_save", "mkdir elsewhere; touch elsewhere/model.bin")
    has(line, "nothing to save: there was no file in " .. dir .. "/out")
    must_end(4, "nothing_to_save", "true", "--require-commit --continue-run")
  end)

  it("had nothing to save where no checkpoint was complete", function()
    local line, _, text = must_end(0, "nothing_to_save", "echo x >out/notes.xyz")
    has(line, "nothing to save: no checkpoint was complete in " .. dir .. "/out")
    has(text, "notes.xyz")
  end)

  it("says by which policy it was not wanted", function()
    local line, all = must_end(0, "not_wanted", "save 1; save 2", "-p ./no.lua")
    has(line, "; not wanted: checkpoint-2 (by no: too hot)")
    assert.are.same({ unit = "checkpoint-2", policy = "no", reason = "too hot" }, all.not_wanted)
    assert.is_true(store_is_empty())
    must_end(4, "not_wanted", "save 3", "-p ./no.lua --require-commit --continue-run")
  end)

  it("says so also when the job has removed what was not wanted", function()
    must_end(0, "not_wanted", [[
      save 1; until "$CKPT" status out | grep -q "skipped 1"; do sleep 0.02; done
      rm -r out/checkpoint-1]], "-p ./no.lua")
  end)

  it("has code 3 where nothing proves the newest one whole", function()
    local line, all = must_end(3, "not_proven", "head -c 100 /dev/zero >out/model-1.safetensors")
    has(line, "; NOT proven whole: model-1.safetensors (")
    assert.are.equal("model-1.safetensors", all.not_proven.unit)
    assert.is_true(store_is_empty())
    must_end(3, "not_proven", "save 1", "--continue-run --restore never")
  end)
end)

describe("a sync", function()
  local function must_sync(code, standing, args)
    local text = place.says(code, "sync out --to store --settle 0 " .. (args or ""))
    assert.are.equal(standing, ended().standing, text)
    return text
  end

  it("has the same words and codes", function()
    has(must_sync(0, "nothing_to_save"), "there is no complete checkpoint in " .. dir .. "/out")
    must_sync(4, "nothing_to_save", "--require-commit")
    place.save("out", 1)
    has(must_sync(0, "not_wanted", "-p ./no.lua"), "not wanted: checkpoint-1 (by no: too hot)")
    must_sync(4, "not_wanted", "-p ./no.lua --require-commit")
    must_sync(0, "durable", "--require-commit")
    must_sync(0, "durable", "--require-commit") -- all is there
  end)

  it("is durable in the target at hand, not in another one", function()
    place.save("out", 1, 2)
    must_sync(0, "durable")
    has(place.must "sync out --to B --settle 0", "durable in file://" .. dir .. "/B")
    assert.are.equal("weights 2\n", read(dir .. "/B/checkpoint-2/model.bin"))
    sh "rm -rf B"
    has(place.must "sync out --to B --settle 0", "2 committed")
    assert.are.equal("weights 2\n", read(dir .. "/B/checkpoint-2/model.bin"))
  end)

  it("has a last word that is no advice", function()
    sh "mkdir -p out/checkpoint-1 && echo weights >out/checkpoint-1/model.bin"
    sh "touch -d '1 hour ago' out/*/*"
    local _, err = place.ends(3, "sync out --to store --json")
    local told = json.decode(err:match "{.*}")
    has(told.why, "; NOT proven whole: checkpoint-1")
    assert.are.equal(json.null, told.next)
  end)
end)

describe("a run that does not begin", function()
  it("names its directory as any other", function()
    place.save("out", 1)
    place.ends(0, "sync out --to store --run one")
    place.ends(11, "sync out --to store --run two")
    assert.are.equal("start", ended().reason)
    assert.are.equal(dir .. "/out", ended().directory)
  end)
end)

describe("what could not be saved", function()
  it("is counted in bytes, each and in all", function()
    if sh "id -u":match "%d+" ~= "0" then
      return pending "it mounts a file system: only root may"
    end
    sh "mkdir store"
    if select(2, place.sh "mount -t tmpfs -o size=2m none store") ~= 0 then
      return pending "no file system can be mounted here"
    end
    finally(function() place.sh "umount -l store" end)
    local line, all = must_end(7, "not_durable",
      "for n in 1 2; do mkdir out/$n.new; head -c 3000000 /dev/zero >out/$n.new/model.bin; " ..
      "mv out/$n.new out/checkpoint-$n; done")
    has(line, "NOT durable: checkpoint-")
    local sum = 0
    for _, one in ipairs(all.not_durable) do
      assert.are.equal(3000000, one.bytes_left)
      sum = sum + one.bytes_left
    end
    assert.is_true(sum > 0)
    assert.are.equal(sum, all.bytes_left)
  end)
end)

describe("a watch, and its status", function()
  local function start(args)
    place.background(("exec '%s' watch --dir out --to store %s & echo $! >pid; wait $!")
      :format(CKPT, args or ""))
  end

  local function status() return json.decode((place.must "status out --json")) end

  local function await_standing(word)
    await(word, function()
      local text, code = place.ckpt "status out --json"
      local all = code == 0 and json.decode(text)
      return all and all.alive and all.standing == word
    end)
  end

  local function must_finish(code)
    sh "kill -TERM $(cat pid)"
    local got, err = place.ended()
    assert.are.equal(code, got, err)
    return err
  end

  it("say durable neither before the first save nor in its middle", function()
    start "--require-commit"
    await_standing "nothing_to_save"
    has(place.must "status out", "standing   nothing to save: there was no file in " .. dir)
    sh "mkdir out/checkpoint-1"
    local pipe = assert(io.popen(("cat >'%s/out/checkpoint-1/model.bin'"):format(dir), "w"))
    pipe:write "part"
    pipe:flush()
    await_standing "not_durable"
    assert.is_false(status().durable)
    has(place.must "status out", "standing   NOT durable: checkpoint-1")
    pipe:close()
    sh "echo '{}' >out/checkpoint-1/trainer_state.json"
    await("the bytes of what settles", function()
      local all = status()
      local one = all.not_durable[1]
      return all.standing == "durable" or (one and one.bytes_left == 8 and all.bytes_left == 8)
    end)
    await_standing "durable"
    has(place.must "status out", "standing   durable in file://" .. dir .. "/store")
    assert.are.equal("durable", json.decode((place.must "why out/checkpoint-1 --json")).standing)
    has(must_finish(0), "; durable in ")
    has(place.must "why out/checkpoint-1", "standing   durable\n")
  end)

  it("have a second one name a state of its own", function()
    start()
    await_standing "nothing_to_save"
    local _, err = place.ends(11, "watch --dir out --to second")
    has(err, "beside it, name another --state")
    _, err = place.ends(11, "run --dir out --to second -- true")
    lacks(err, "another --state")
    must_finish(0)
  end)

  it("say that nothing was wanted", function()
    start "-p ./no.lua"
    await_standing "nothing_to_save"
    place.save("new", 1)
    sh "mv new/checkpoint-1 out"
    await_standing "not_wanted"
    has(place.must "status out", "standing   not wanted: checkpoint-1 (by no: too hot)")
    assert.are.equal("no", status().not_wanted.policy)
    has(place.must "why out/checkpoint-1", "standing   not wanted\n")
    has(must_finish(0), "not wanted: checkpoint-1")
    assert.are.equal("not_wanted", json.decode((place.must "why out/checkpoint-1 --json")).standing)
    has(place.must "status out", "not wanted: checkpoint-1")
  end)

  it("have code 4 at the end with --require-commit where nothing is committed", function()
    start "--require-commit"
    await_standing "nothing_to_save"
    has(must_finish(4), "nothing to save: there was no file in " .. dir .. "/out")
  end)
end)
