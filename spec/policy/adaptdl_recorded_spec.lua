-- policies/adaptdl.lua decides as adaptdl 0.2.11 was seen to do (spec/data/oracle/adaptdl_*.json),
-- and as ckpt.Registry does, which spec/contract/oracle/adaptdl_spec.lua holds to the same records:
-- which checkpoint a restart goes on from, what is kept after a save, who writes.

local json = require "cjson"
local library = require "policy.rules"
local place = require "place"
local recording = require "recording"
local support = require "support"

-- The directories of a tree that the policy's unit takes for checkpoints, in the order of their
-- numbers; and whether AdaptDL, which reads numbers differently, sees others.
local function units_of(entries)
  local of, list, has_other = {}, {}, false
  for _, entry in ipairs(entries) do
    local name, rest = entry.path:match "^(checkpoint%-[^/]*)(.*)$"
    local step = name and name:match "^checkpoint%-(%d+)$"
    local is_directory = entry.type == "dir" or (rest or "") ~= ""
    if step and is_directory and tostring(tonumber(step)) == step then
      if not of[name] then list[#list + 1] = { name = name, step = tonumber(step) } end
      of[name] = true
    elseif name and not name:find "^checkpoint%-%-" then
      has_other = true
    end
  end
  table.sort(list, function(a, b) return a.step < b.step end)
  return list, has_other
end

-- As the engine's list of checkpoints. Those that were found together have one place in the log.
local function items_of(units, number)
  return library.items(#units, function(item, i)
    item.name, item.dir, item.step = units[i].name, units[i].name, units[i].step
    if number then item.number, item.time = number(i), 0 end
  end)
end

describe("policies/adaptdl.lua and the recordings", function()
  local dir
  place.with_directory(function(made) dir = made end)

  -- Each load: the checkpoints that there are, and the name of the one that AdaptDL takes; nil
  -- where there is none.
  local function each_load(fn)
    local select = recording.read "adaptdl_select"
    local count = { compared = 0, nothing = 0, other = 0 }
    for _, group in ipairs { select.random, select.named } do
      for _, case in ipairs(group) do
        local units, has_other = units_of(case.entries)
        local result = case.results[1]
        local text = result.value ~= recording.null and result.value or ""
        for _, line in ipairs(result.log) do text = text .. " " .. line[2] end
        local chosen = text:match "restart (%d+)%." or text:match "checkpoint%-(%d+)"
          or text:match "^v(%d+)"
        if has_other then
          count.other = count.other + 1 -- there AdaptDL trips, and items 104 and 105 are better
        else
          local key = #units == 0 and "nothing" or "compared"
          count[key] = count[key] + 1
          fn(units, #units > 0 and "checkpoint-" .. chosen or nil, case.name)
        end
      end
    end
    assert.same({ compared = 36, nothing = 11, other = 29 }, count)
  end

  it("brings back what AdaptDL loads from", function()
    local M = library.shipped "adaptdl"
    each_load(function(units, chosen, what)
      if not chosen then return end
      local name = library.kept(M, items_of(units, function() return 1 end), "restore")
      assert.equal(chosen, name, what)
    end)
  end)

  it("brings back the same where `policy simulate -p adaptdl` loses the machine", function()
    local lines, expected = {}, {}
    each_load(function(units, chosen, what)
      local trial = "case-" .. #expected
      local function add(event, unit)
        lines[#lines + 1] = json.encode { event = event, trial = trial, t = #lines,
          checkpoint = unit and { name = unit.name, step = unit.step } or nil }
      end
      add "start"
      for _, unit in ipairs(units) do add("checkpoint", unit) end
      add "crash"
      add "start"
      expected[#expected + 1] = { at = #lines, name = chosen, what = what }
    end)
    support.write(dir .. "/e.jsonl", table.concat(lines, "\n") .. "\n")
    local rows = place.objects((place.ends(0,
      "policy simulate e.jsonl --json -p adaptdl -o keep=1000")))
    for _, one in ipairs(expected) do
      assert.same({ one.name }, rows[one.at].restored, one.what)
    end
    assert.equal(47, #expected)
  end)

  -- Each case in which one checkpoint is left: those that there were and the one that was saved,
  -- in their order, and the name of what AdaptDL has left.
  local function each_save(fn)
    local compared = 0
    for _, case in ipairs(recording.read("adaptdl_save").cases) do
      local name = "checkpoint-" .. case.num_restarts
      local left, is_written = {}, false
      for _, row in ipairs(case.tree) do
        local top = type(row) == "string" and row:match "^(checkpoint%-%d+)/$"
        if top then left[#left + 1] = top end
        is_written = is_written or top == name
      end
      if is_written and #left == 1 and case.rank == 0 then
        local units = {}
        for _, unit in ipairs((units_of(case.entries))) do
          if unit.name ~= name then units[#units + 1] = unit end
        end
        units[#units + 1] = { name = name, step = case.num_restarts }
        compared = compared + 1
        fn(units, left[1], case.name, compared)
      end
    end
    assert.equal(65, compared)
  end

  it("keeps what AdaptDL leaves: the one that was just saved, whatever the numbers", function()
    local M = library.shipped("adaptdl", { keep = "1" })
    each_save(function(units, left, what)
      assert.equal(left, library.kept(M, items_of(units)), what)
    end)
  end)

  it("keeps the same where `policy simulate -p adaptdl` plays the saves", function()
    local lines, expected, stored = {}, {}, {}
    each_save(function(units, left, what, i)
      local trial = "case-" .. i
      expected[trial], stored[trial] = what .. ": " .. left, { what = what }
      for _, unit in ipairs(units) do
        lines[#lines + 1] = json.encode { event = "checkpoint", trial = trial, t = #lines,
          checkpoint = { name = unit.name, step = unit.step } }
      end
    end)
    support.write(dir .. "/e.jsonl", table.concat(lines, "\n") .. "\n")
    local rows = place.objects((place.ends(0, "policy simulate e.jsonl --json -p adaptdl "
      .. "-o keep=1 --max-delete 100%")))
    assert.equal(#lines + 1, #rows)
    rows[#rows] = nil
    for _, row in ipairs(rows) do
      assert.equal("sync", row.decision, row.reason)
      for _, name in ipairs(row.saved) do stored[row.trial][name] = true end
      for _, name in ipairs(row.deleted) do stored[row.trial][name] = nil end
    end
    for trial, names in pairs(stored) do
      local text = names.what
      names.what = nil
      for name in pairs(names) do text = text .. ": " .. name end
      assert.equal(expected[trial], text)
    end
  end)
end)

describe("a job with states under policies/adaptdl.lua", function()
  local dir

  place.with_directory(function(made)
    dir = made
    place.must_sh "mkdir out"
    support.write(dir .. "/job.lua", [[
      local ckpt = require "ckpt"
      local Count = ckpt.State:extend("Count")
      Count.n = 0
      function Count:save(file) file:write(self.n) end
      function Count:load(file) self.n = file:read "*n" end
      local count = Count("count")
      ckpt.load_state(count)
      count.n = count.n + 1
      print("path", ckpt.save_all_states(), "n", count.n)]])
  end)

  -- The command of one replica.
  local function replica(restart, rank, world)
    return ([[cd '%s' && ADAPTDL_CHECKPOINT_PATH=$PWD/out ADAPTDL_NUM_RESTARTS=%d \
      ADAPTDL_REPLICA_RANK=%d ADAPTDL_NUM_REPLICAS=%d ADAPTDL_JOB_ID=spec CKPT_LUADIR='%s/lua' \
      timeout 60 '%s' run --dir-is shared --dir out --to store -p '%s/policies/adaptdl.lua' \
      -- '%s/libexec/ckpt-script' job.lua]]):format(dir, restart, rank, world, support.root,
        support.runner, support.root, support.build)
  end

  local function committed()
    local names = {}
    local text = support.sh(("'%s' ls '%s/store' --json"):format(support.runner, dir))
    for name in text:gmatch '"name":"([^"]+)"' do names[#names + 1] = name end
    return table.concat(names, " ")
  end

  it("goes on from restart to restart, on an empty disk each time", function()
    for restart = 0, 2 do
      place.sh "rm -rf out; mkdir out"
      local text = place.sh_ends(0, replica(restart, 0, 1))
      assert.truthy(text:find("n\t" .. restart + 1, 1, true), text)
      assert.equal("checkpoint-" .. restart, committed():match "%S+$")
    end
    assert.equal("checkpoint-1 checkpoint-2", committed())
    -- A counter that goes back: what was saved last is what comes back.
    for restart = 0, 1 do
      place.sh "rm -rf out; mkdir out"
      local text = place.sh_ends(0, replica(restart, 0, 1))
      assert.truthy(text:find("n\t" .. restart + 4, 1, true), text)
    end
  end)

  it("is written by rank 0 alone", function()
    local text = place.sh_ends(0, ("(%s) >'%s/one' 2>&1 & (%s); wait"):format(replica(0, 1, 2), dir,
      replica(0, 0, 2)))
    assert.truthy(text:find("path\t" .. dir, 1, true), text)
    local other = support.read(dir .. "/one")
    assert.truthy(other:find("path\tnil", 1, true), other)
    assert.equal("checkpoint-0", committed())
  end)
end)
