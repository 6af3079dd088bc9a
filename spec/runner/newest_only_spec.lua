-- `newest_only`: files that a checkpoint loses once newer ones are there.

local cjson = require "cjson"
local place = require "place"
local support = require "support"
local has, lacks, ends, must, sh = place.has, place.lacks, place.ends, place.must, place.must_sh

local WHOLE, THIN = "model.pt optimizer.pt trainer_state.json", "model.pt trainer_state.json"
local dir

-- A job makes checkpoints of a model, an optimizer, and the file that a Trainer writes last, each
-- as soon as the one before is in the store.
local JOB = [[
for step; do
  without=; case $step in *n) without=y step=${step%n} ;; esac
  mkdir -p out made
  printf 'PK\5\6%018d%d' 0 $step >made/model.pt
  [ $without ] || printf 'PK\5\6%01018d' $step >made/optimizer.pt
  printf '{"global_step":%d}' $step >made/trainer_state.json
  mv made out/checkpoint-$step
  until [ -e store/checkpoint-$step/.ckpt-manifest.json ]; do sleep 0.02; done
done
]]

local function policy(keys)
  support.write(dir .. "/p.lua", "return { api = 1,\n" .. keys .. "\n}\n")
end

local RUN = "run --run r --dir out --to store --settle 0 -p ./p.lua %s -- bash job.sh %s"

local function saved(flags, ...)
  support.write(dir .. "/job.sh", JOB)
  return select(2, ends(0, RUN:format(flags, table.concat({ ... }, " "))))
end

local function files_of(name)
  local names = {}
  for line in sh("cd store/" .. name .. " && ls"):gmatch "[^\n]+" do names[#names + 1] = line end
  return table.concat(names, " ")
end

place.with_directory(function(made) dir = made end)

describe("newest_only", function()
  it("leaves the optimizer to the two newest, and the older ones are whole without", function()
    policy 'newest_only = { "optimizer.pt" }'
    local said = saved("-v --grace-delete 0 --max-delete 100%", 10, 20, 30, 40)
    assert.are.equal(THIN, files_of "checkpoint-10")
    assert.are.equal(THIN, files_of "checkpoint-20")
    assert.are.equal(WHOLE, files_of "checkpoint-30")
    assert.are.equal(WHOLE, files_of "checkpoint-40")
    has(said, "checkpoint-10 stays without 1 of its files, 1022 bytes: " ..
      "2 newer ones have such files (policy p)")
    has(must "verify store", "4")
    local shown = cjson.decode(must "show store checkpoint-10 --json")
    assert.are.same({ "optimizer.pt" }, shown.taken.globs)
    assert.are.equal("p", shown.taken.policy)
    assert.are.equal(1, shown.left_out)
    local _, err = ends(0, "restore store checkpoint-10 --dir back")
    has(err, "without 1 file")
    assert.are.equal("model.pt\ntrainer_state.json\n", (sh "ls back/checkpoint-10"))
    ends(0, "restore store checkpoint-40 --dir back")
    sh "cmp out/checkpoint-40/optimizer.pt back/checkpoint-40/optimizer.pt"
    lacks(must "gc store", "checkpoint-10")
  end)

  it("takes nothing while the newer ones are younger than the grace", function()
    policy 'newest_only = { "optimizer.pt" }'
    saved("--grace-delete 1h", 10, 20, 30)
    assert.are.equal(WHOLE, files_of "checkpoint-10")
    saved("--grace-delete 0 --no-delete", 40)
    assert.are.equal(WHOLE, files_of "checkpoint-10")
    saved("--grace-delete 0", 50)
    assert.are.equal(THIN, files_of "checkpoint-10")
  end)

  it("takes nothing of what is pinned, and of no more than a share in a pass", function()
    policy 'newest_only = { "optimizer.pt" }'
    saved("--grace-delete 1h", 10, 20, 30, 40, 50, 60, 70, 80)
    must "pin store checkpoint-10"
    saved "--grace-delete 0 --max-delete 20%" -- at its start, and at its end
    assert.are.equal(WHOLE, files_of "checkpoint-10")
    assert.are.equal(THIN, files_of "checkpoint-20")
    assert.are.equal(WHOLE, files_of "checkpoint-40")
    assert.are.equal(WHOLE, files_of "checkpoint-60")
    saved "--grace-delete 0 --max-delete 100%"
    assert.are.equal(WHOLE, files_of "checkpoint-10")
    assert.are.equal(THIN, files_of "checkpoint-60")
    assert.are.equal(WHOLE, files_of "checkpoint-70")
    must "verify store"
  end)

  it("waits with the newest alone until that one has been gone on from", function()
    policy 'newest_only = { files = { "optimizer.pt" }, newest = 1 }'
    saved("--grace-delete 0", 10, 20, 30)
    assert.are.equal(WHOLE, files_of "checkpoint-10")
    saved("--grace-delete 0", 40)
    assert.are.equal(THIN, files_of "checkpoint-10")
    assert.are.equal(THIN, files_of "checkpoint-20")
    assert.are.equal(WHOLE, files_of "checkpoint-30")
  end)

  it("takes no proof from one that has no such files", function()
    policy 'newest_only = { files = { "optimizer.pt" }, newest = 1 }'
    saved("--grace-delete 0", 10, "20n")
    assert.are.equal(THIN, files_of "checkpoint-20")
    saved("--grace-delete 0", 30)
    assert.are.equal(WHOLE, files_of "checkpoint-10")
    lacks(must "plan store -p ./p.lua --grace-delete 0", "loses")
    saved("--grace-delete 0", 40)
    assert.are.equal(THIN, files_of "checkpoint-10")
    assert.are.equal(WHOLE, files_of "checkpoint-30")
  end)

  it("goes on with what an earlier run has left, whatever the policy is by then", function()
    policy 'newest_only = { "optimizer.pt" }'
    saved("--grace-delete 1h", 10, 20, 30)
    sh "cp -p store/checkpoint-10/optimizer.pt kept"
    saved "--grace-delete 0"
    assert.are.equal(THIN, files_of "checkpoint-10")
    sh "cp -p kept store/checkpoint-10/optimizer.pt; rm store/.ckpt/thinned/*"
    policy ""
    saved "--grace-delete 0"
    assert.are.equal(THIN, files_of "checkpoint-10")
    assert.are.equal(WHOLE, files_of "checkpoint-20")
  end)

  it("leaves the last good optimizer where newer ones were marked bad before it went", function()
    policy 'newest_only = { "optimizer.pt" }'
    saved("--grace-delete 1h", 10, 20, 30)
    sh "cp -p store/checkpoint-10/optimizer.pt kept"
    saved "--grace-delete 0"
    assert.are.equal(THIN, files_of "checkpoint-10")
    sh "cp -p kept store/checkpoint-10/optimizer.pt; rm store/.ckpt/thinned/*"
    policy ""
    support.write(dir .. "/exclude.lua", 'return { api = 1, exclude = { "optimizer.pt" } }\n')
    saved("--no-delete -p ./exclude.lua", 40, 50)
    assert.are.equal(THIN, files_of "checkpoint-50")
    must "mark bad store checkpoint-20"
    must "mark bad store checkpoint-30"
    must "gc store"
    assert.are.equal(WHOLE, files_of "checkpoint-10")
    must "mark good store checkpoint-20"
    must "mark good store checkpoint-30"
    has(must "gc store", "removed files of checkpoint-10 (1022 B): newer ones have such files")
    assert.are.equal(THIN, files_of "checkpoint-10")
    must "verify store"
  end)

  it("leaves no mark behind of checkpoints that are gone", function()
    local function marks() return tonumber((sh "ls store/.ckpt/thinned | wc -l")) end
    policy 'newest_only = { "optimizer.pt" }'
    saved("--grace-delete 0 --max-delete 100%", 10, 20, 30, 40)
    assert.are.equal(2, marks())
    must "rm store checkpoint-10 --grace-delete 0"
    must "gc store --grace-delete 0"
    assert.are.equal(2, marks()) -- whoever removes may be at it
    sh "cd store/.ckpt/thinned; touch other; touch -d '2 days ago' *"
    lacks(must "gc store -n", "checkpoint-20")
    has(must "gc store", "removed litter .ckpt/thinned/")
    assert.are.equal(2, marks()) -- that of checkpoint-20, and what nobody here has put
    must "gc store --remove-run --yes"
    assert.are.equal("other\n", (sh "ls store/.ckpt/thinned"))
  end)

  it("names the remedy where the log has lost that files were taken", function()
    policy 'newest_only = { "optimizer.pt" }'
    saved("--grace-delete 0", 10, 20, 30)
    sh "cp -rp store whole; rm $(grep -l thin store/.ckpt/log/*.json)"
    local said = (ends(5, "verify store"))
    has(said, "BAD  checkpoint-10: optimizer.pt: missing; a note there says that it was taken: " ..
      "ckpt-lua repair makes the log say so")
    has((ends(5, "verify store/checkpoint-10")), "ckpt-lua repair makes the log say so")
    sh "rm store/checkpoint-10/model.pt"
    lacks((ends(5, "verify store")), "repair")
    sh "cp -p whole/checkpoint-10/model.pt store/checkpoint-10"
    ends(0, "repair store --take-over")
    ends(0, "verify store")
  end)

  it("is the word of why about a file that was taken, and about its checkpoint", function()
    policy 'newest_only = { "optimizer.pt" }'
    saved("--grace-delete 0 --max-delete 100%", 10, 20, 30)
    local file = (place.ckpt "why out/checkpoint-10/optimizer.pt --dir out --to store")
    has(file, "optimizer.pt: taken\n")
    has(file, "store has checkpoint-10 without it since 2")
    has(file, '"optimizer.pt" of newest_only (p: 2 newer ones have such files)')
    local unit = (place.ckpt "why out/checkpoint-10 --dir out --to store")
    has(unit, "without 1 file that was taken since newer ones have such files")
    lacks((place.ckpt "why out/checkpoint-10/model.pt --dir out --to store"), ": taken")
    lacks((place.ckpt "why out/checkpoint-30/optimizer.pt --dir out --to store"), ": taken")
    saved("--grace-delete 0", 40)
    unit = (place.ckpt "why out/checkpoint-10 --dir out --to store")
    has(unit, "it is in the store, without what only the newest keep there")
  end)

  it("takes nothing of groups of files, and says so once", function()
    policy 'unit = { "ckpt-{step}.*" },\nnewest_only = { "*.optim" }'
    support.write(dir .. "/group.sh", [[
mkdir -p out
for step; do
  for file in model optim; do printf '%s' $file $step >out/ckpt-$step.$file; done
  until ls store/ckpt-$step*/.ckpt-manifest.json >/dev/null 2>&1; do sleep 0.02; done
done
]])
    local flags = "--grace-delete 0 --max-delete 100%"
    local _, said = ends(0, (RUN:format(flags, "10 20 30 40"):gsub("job.sh", "group.sh")))
    local word = "newest_only of p takes nothing of groups of files, as ckpt-"
    has(said, word)
    assert.are.equal(1, select(2, said:gsub("takes nothing of", "")))
    assert.are.equal("4\n", (sh "ls store/*/*.optim | wc -l"))
  end)

  it("is told of where other policies bring it", function()
    support.write(dir .. "/q.lua", 'return { api = 1, newest_only = { "optimizer.pt" } }\n')
    policy ""
    support.write(dir .. "/more.sh", "'" .. support.runner ..
      "' policy reload -p ./q.lua $1 >told-$2 2>&1\n")
    support.write(dir .. "/job.sh", JOB .. "bash more.sh --dry-run 1; bash more.sh '' 2\n")
    local _, said = ends(0, RUN:format("-v --grace-delete 1h", "10 20 30"))
    for n = 1, 2 do
      has((sh("cat told-" .. n)),
        "older checkpoints lose, for good, by newest_only: optimizer.pt (2 keep them)")
    end
    has(said, "older checkpoints lose files by newest_only")
  end)

  it("is in a plan: which older ones would lose what, and when, as a run takes it then", function()
    policy ""
    saved("--grace-delete 1h", 10, 20, 30, 40, 50)
    policy 'newest_only = { "optimizer.pt" }, keep = keep.last(4)'
    lacks(must "plan store -p ./p.lua --no-delete", "loses")
    local plan = must "plan store -p ./p.lua --grace-delete 1h --max-delete 100%"
    lacks(plan:match "[^\n]*checkpoint%-10[^\n]*", "loses") -- it goes as a whole
    has(plan:match "[^\n]*checkpoint%-20[^\n]*", "; loses 1 file (1022 B) in 60 min: optimizer.pt")
    lacks(plan:match "[^\n]*checkpoint%-40[^\n]*", "loses")
    has(plan, "2 of those that stay would lose 2 files (2.0 KiB) that only the newest keep")
    plan = must "plan store -p ./p.lua --grace-delete 0 --max-delete 40%"
    has(plan:match "[^\n]*checkpoint%-20[^\n]*", "; loses 1 file (1022 B) now: optimizer.pt")
    has(plan:match "[^\n]*checkpoint%-30[^\n]*", "; loses 1 file (1022 B) in a later pass")
    local loses = {}
    local json = must "plan store -p ./p.lua --grace-delete 0 --max-delete 40% --json"
    for line in json:gmatch "[^\n]+" do
      local one = cjson.decode(line)
      loses[one.name] = one.loses
    end
    local one = { globs = { "optimizer.pt" }, files = 1, bytes = 1022, in_s = 0 }
    local later = { globs = { "optimizer.pt" }, files = 1, bytes = 1022, in_s = cjson.null }
    assert.are.same({ ["checkpoint-20"] = one, ["checkpoint-30"] = later }, loses)
    saved "--grace-delete 0 --max-delete 100%"
    assert.are.equal(THIN, files_of "checkpoint-30")
    assert.are.equal(WHOLE, files_of "checkpoint-40")
    lacks(must "plan store -p ./p.lua --grace-delete 0", "loses")
  end)

  it("takes nothing as long as policies that were replaced rule, too", function()
    support.write(dir .. "/q.lua", 'return { api = 1, newest_only = { "optimizer.pt" } }\n')
    policy ""
    saved("--grace-delete 1h", 10, 20, 30)
    sh "find store -type f -exec touch -d '2 hours ago' {} +" -- their own grace is over
    support.write(dir .. "/job.sh", "'" .. support.runner .. "' policy reload -p ./q.lua\n" .. JOB)
    local _, said = ends(0, RUN:format("-v --grace-delete 1h", "40 50"))
    has(said, "policies are now q")
    assert.are.equal(WHOLE, files_of "checkpoint-10")
    policy 'newest_only = { "optimizer.pt" }'
    saved("--grace-delete 1h --max-delete 100%", 60)
    assert.are.equal(THIN, files_of "checkpoint-10")
  end)

  it("is doubted where the newest alone would have them", function()
    policy 'newest_only = { files = "optimizer.pt", newest = 1 }'
    has((place.ckpt "policy check ./p.lua 2>&1"), "the newest alone keeps these files")
    policy 'newest_only = { files = "optimizer.pt", newest = 2 }'
    lacks((place.ckpt "policy check ./p.lua 2>&1"), "the newest alone")
  end)

  it("is refused where it would take what makes a checkpoint", function()
    for keys, why in pairs {
      ['newest_only = "*"'] = "means all that a checkpoint has",
      ['newest_only = "sub/x"'] = "slash",
      ['newest_only = "train*.json", complete = done.marker "trainer_state.json"'] =
        "complete checkpoint",
      ["newest_only = function() end"] = "not a function",
    } do
      policy(keys)
      local out, err = ends(2, "policy check ./p.lua")
      has(out .. err, why)
      sh "mkdir -p out"
      has(select(2, ends(2, "sync out --to store -p ./p.lua")), why)
    end
  end)
end)
