-- Each command with --json prints the members that docs/json.md has, and the page has no other.

local cjson = require "cjson"
local place = require "place"
local support = require "support"
local sh, must = place.sh, place.must

local dir
local page = {} -- of each section: the members of its table, and the sections that it includes
local seen = {} -- of each section: the members that were printed

local function anchor(title) return (title:lower():gsub("[^%w%- ]", ""):gsub(" ", "-")) end

setup(function()
  local titles = {}
  local section
  for _, line in ipairs(support.lines(support.read "docs/json.md")) do
    local title = line:match "^## (.*)"
    if title then
      section = { members = {}, holders = {}, with = {} }
      page[title], titles[anchor(title)] = section, title
    end
    for member in (section and line:match "^| (`[^|]+) |" or ""):gmatch "`([%w_.]+)`" do
      section.members[member] = true
      section.holders[member:match "^(.-)%." or member] = true
    end
    for link in (section and line or ""):gmatch "%]%(#([%w%-]+)%)" do
      section.with[#section.with + 1] = link
    end
  end
  for _, each in pairs(page) do
    for i, link in ipairs(each.with) do each.with[i] = assert(titles[link], link) end
  end
end)

-- What a user's job or policy has put there has names of its own.
local function walk(value, path, out)
  if type(value) ~= "table" or path == "metrics." then return out end
  for key, inner in pairs(value) do
    if type(key) == "number" then
      walk(inner, path, out)
    else
      out[path .. key] = true
      walk(inner, path .. key .. ".", out)
    end
  end
  return out
end

local function note(section, text)
  seen[section] = seen[section] or {}
  for line in text:gmatch "[^\n]+" do
    local own = line:gsub("%b[]", ""):gsub(":%b{}", "")
    for member in own:gmatch '[{,]("[%w_]+"):' do -- a reader takes the last of two
      assert.are.equal(1, select(2, own:gsub("[{,]" .. member .. ":", "")), line)
    end
    for member in pairs(walk(cjson.decode(line), "", {})) do seen[section][member] = true end
  end
end

-- Standard output of a command that ends with this code; standard error is its own.
local function says(section, args, code)
  local text = place.ends(code or 0, args .. " --json")
  assert.are_not.equal("", text, args)
  note(section, text)
end

local function fails(args, code)
  local text, err = place.ends(code, args .. " --json")
  local lines = support.lines(err)
  assert.are.equal(1, #lines, err)
  note("Errors", lines[1])
  local e = cjson.decode(lines[1])
  assert.are.equal(code, e.code, err)
  assert.are.equal("", text)
  return e
end

describe("docs/json.md", function()
  before_each(function() dir = place.begin() end)
  after_each(function() os.execute("rm -rf '" .. dir .. "'") end)

  it("has the members of what each command prints about a target", function()
    place.save("out", 1, 2, 3, 4)
    sh [[echo '{"best_model_checkpoint": "checkpoint-1"}' >out/checkpoint-4/trainer_state.json]]
    sh "ln -s model.bin out/checkpoint-1/link"
    sh "cd out/checkpoint-1; echo x | tee left >one"
    sh "ln -s /nowhere out/checkpoint-1/out"
    sh "mkdir out/checkpoint-5; echo w >out/checkpoint-5/model.bin"
    support.write(dir .. "/p.lua",
      'return { api = 1, exclude = { "left", function() return "one" end }, ' ..
      'metrics = from.name { key = "n", after = "checkpoint-" } }')
    local policy = " -p ./p.lua -p default --settle 0"
    says("sync", "sync out --to store -n" .. policy, 3)
    says("sync", "sync out --to store" .. policy, 3)
    says("latest", "latest store")
    says("show", "show store checkpoint-1")
    says("mark", "mark bad store checkpoint-2 --reason x")
    says("pin", "pin store checkpoint-1 -n")
    says("pin", "pin store checkpoint-1 --for 1h")
    says("show", "show store checkpoint-1")
    says("show", "show store checkpoint-2")
    says("show", "show store checkpoint-4")
    says("verify", "verify store")
    says("drill", "drill store")
    says("doctor", "doctor store")
    says("unpin", "unpin store checkpoint-1")
    says("rm", "rm store checkpoint-3")
    says("plan", "plan store")
    says("policy list", "policy list")
    sh "mkdir p; touch p/default.lua; ln -s gone p/broken.lua"
    note("policy list", (place.ends(3, "policy list --json", "CKPT_POLICIES=p")))
    says("policy show", "policy show markers")
    support.write(dir .. "/f.lua", "return { api = 1, sync = function(e) return e.x end }")
    says("policy check", "policy check f.lua", 2)
    support.write(dir .. "/e.jsonl", '{"event":"checkpoint"}\n{"event":"crash"}\n')
    says("policy simulate", "policy simulate e.jsonl")
    support.write(dir .. "/one.lua", "return { api = 1, keep = keep.last(1) }")
    support.write(dir .. "/two.lua", "return { api = 1, keep = keep.last(2) }")
    support.write(dir .. "/fun.lua", [[return { api = 1,
      keep = function(list) return { list[#list - 1] or list[1], list[#list] } end }]])
    says("policy diff", "policy diff one.lua two.lua")
    says("policy diff", "policy diff two.lua p.lua")
    says("policy diff", "policy diff two.lua fun.lua")
    says("policy replay", "policy replay store -p ./one.lua --max-delete 100%")
    says("why", "why checkpoint-1 --at 1000 --to store")
    says("ls", "ls store")
    says("restore", "restore store --dir back")
    says("restore", "restore store --dir some --only '*'")
    sh "mkdir tune; echo '{}' >tune/experiment_state-2026-11-23_19-58-33.json"
    must "sync tune --to above --settle 0"
    says("ls", "ls above")
    says("show", "show above experiment_state-2026-11-23_19-58-33.json")
    place.save("fails", 1, 2)
    must "sync fails --to elsewhere --settle 0"
    for _ = 1, 3 do
      place.ends(1, "run --dir fails --to elsewhere --continue-run --settle 0 -- " ..
        "sh -c 'cat $CKPT_RESUME/model.bin; echo it is said >&2; exit 1'")
    end
    must "run --dir fails --to elsewhere --continue-run --settle 0 -- true"
    says("show", "show elsewhere checkpoint-2")
    sh(("cp -r '%s/spec/data/format1/thin' lean"):format(support.root)) -- files of two were taken
    says("show", "show lean checkpoint-0")
    says("ls", "ls lean")
    support.write(dir .. "/newest.lua", 'return { api = 1, newest_only = "model.bin" }')
    place.save("many", 1, 2, 3)
    must "sync many --to whole --settle 0"
    says("plan", "plan whole -p ./newest.lua")
    says("ls", "ls elsewhere")
    says("bisect", "bisect store --json -- true; : ")
    says("gc", "gc store --grace-delete 0")
    sh "rm store/.ckpt/log/*2.json"
    says("repair", "repair store", 3) -- what a removal left is named
    says("why", "why checkpoint-3 --dir out")
    says("exit.json", "status out")
    says("version", "version")
  end)

  it("has those of a run that begins, lives and ends", function()
    support.write(dir .. "/job.sh", [[
      mkdir -p out/checkpoint-1; echo w >out/checkpoint-1/model.bin
      touch up; until [ -e go ]; do sleep 0.02; done]])
    place.save("out", 2)
    must "sync out --to store --settle 0"
    os.execute(("cd '%s' && { '%s' run --dir out --to store --continue-run -- sh job.sh " ..
      ">log 2>&1; touch over; } &"):format(dir, support.runner))
    place.await_file "up"
    local alive
    support.await("a checkpoint that settles", function()
      alive = must "status out --json"
      return #cjson.decode(alive).not_durable > 0
    end)
    note("status", alive)
    support.write(dir .. "/none.lua", "return { api = 1, keep = function() return {} end }")
    says("policy reload", "policy reload out -p ./none.lua -p default")
    note("status", (must "status out --json"))
    note("evict.json", support.read(dir .. "/out.ckpt/evict.json"))
    says("drain", "drain out --for 30s")
    support.write(dir .. "/go", "")
    place.await_file "over"
    says("exit.json", "status out")
    sh(("'%s' run --dir out --to store --continue-run -- sh -c 'kill -9 $$'")
      :format(support.runner))
    says("exit.json", "status out")
    note("status", '{"starting":true,"waits":""}') -- what spec/world/takeover_spec.lua sees
  end)

  it("has those of a run that saved nothing, and of a place that another tool wrote", function()
    place.save("out", 1)
    support.write(dir .. "/no.lua", 'return { api = 1, sync = function() return "skip", "no" end }')
    must "run --dir out --to store -p ./no.lua -p default --settle 0 -- true"
    says("exit.json", "status out")
    sh "mkdir torn; echo x >torn/a.pt"
    place.ends(3, "run --dir torn --to elsewhere --settle 0 -- true")
    says("exit.json", "status torn")
    says("restore", "restore out/checkpoint-1 --dir back")
  end)

  it("has those of an error", function()
    assert.are.equal("usage", fails("sync", 2).class)
    local e = fails("ls nowhere", 10)
    assert.are.equal("permanent", e.class)
    assert.are.equal("nowhere", e.where)
    place.save("out", 1)
    must "sync out --to store --settle 0"
    e = fails("rm store checkpoint-1", 11)
    assert.are.equal("held", e.class)
    must "run --dir other --to free --run mine -- true"
    assert.matches("^usage: ckpt%-lua sync", fails("sync out", 2).next)
    assert.are.equal(cjson.null, fails("show store nothing", 4).next)
  end)

  -- Each of the tests above has noted what it saw.
  it("has nothing that is not printed, and all that is", function()
    local shared = {}
    for title, members in pairs(seen) do
      local section = assert(page[title], title)
      for member in pairs(members) do
        local known = section.members[member] or section.holders[member]
        for _, other in ipairs(section.with) do
          local theirs = page[other].members[member]
          if theirs then shared[other .. member] = true end
          known = known or theirs
        end
        assert.is_truthy(known, title .. ": " .. member .. " is not on the page")
      end
    end
    for title, section in pairs(page) do
      for member in pairs(section.members) do
        local printed = (seen[title] or {})[member] or shared[title .. member]
        assert.is_truthy(printed, title .. ": " .. member .. " was not printed")
      end
    end
  end)

  it("has a section for each verb that takes --json", function()
    for name in must("help"):gmatch "\n  (%l+) " do
      if must("help " .. name):find("--json", 1, true) then assert.is_truthy(page[name], name) end
    end
  end)
end)
