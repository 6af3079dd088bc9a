--- policies/default.lua says what the engine does by itself, written out.
local library = require "policy.rules"
local support = require "support"

--- The sources as the compiler sees them: macros replaced, comments gone.
local source = support.sh("cc -E -P -std=c11 -Iengine engine/event/rules.c")
local table_of = support.sh("cc -E -P -std=c11 -Iengine engine/event/frameworks.c")

--- The rows of an initializer, { ... }: lists of their values; false stands for NULL. One without
--- rows in it is one row.
local function rows_of(initializer)
  local cell = initializer:gsub("%(%(void %*%)0%)", "NULL")
  local rows, row, value, at = {}, {}, nil, 2
  while at <= #cell do
    local text, after = cell:match('^"([^"]*)"()', at)
    local word, past = cell:match("^([%w_]+)()", at)
    local c = cell:sub(at, at)
    if text then
      value, at = (value or "") .. text, after
    elseif word then
      value, at = word == "true" or word == "1", past
    else
      if (c == "," or c == "}") and value ~= nil then
        row[#row + 1] = value
        value = nil
      end
      if c == "}" and #row > 0 then
        rows[#rows + 1] = row
        row = {}
      end
      at = at + 1
    end
  end
  return rows
end

--- What stands in one column of the table, row after row. A column of names is one list, that of
--- markers has one for each marker.
local function column(name)
  local out, body = {}, table_of:match("framework rows%[%] = (%b{})")
  for cell in body:gmatch("%." .. name .. " = (%b{})") do
    for _, found in ipairs(rows_of(cell)) do out[#out + 1] = found end
  end
  return out
end

local function strings_of(name)
  local list = {}
  for _, row in ipairs(column(name)) do
    for _, text in ipairs(row) do list[#list + 1] = text end
  end
  return list
end

describe("policies/default.lua", function()
  local M, data = library.shipped "default"

  it("names the units that the engine knows, in the same order", function()
    local proven, named = {}, {}
    for _, glob in ipairs(strings_of "proven") do proven[glob] = true end
    for i, glob in ipairs(strings_of "units") do
      named[i] = proven[glob] and { glob = glob, proven = true } or glob
    end
    assert.is_true(#named > 30)
    assert.same(named, data.unit)
  end)

  it("names the files above the checkpoints that the engine knows", function()
    assert.same(strings_of "above", data.above)
    assert.is_true(#data.above > 3)
  end)

  it("saves each file that the engine knows to name checkpoints, beside or above them", function()
    local known, saved = {}, {}
    for _, row in ipairs(column "pointers") do known[row[1]] = true end
    for _, list in ipairs { data.with, data.above } do
      for _, glob in ipairs(list) do saved[glob] = true end
    end
    for name in pairs(known) do assert.is_true(saved[name], name) end
    known["latest-rank*.pt"] = true -- composer's is a link
    for _, glob in ipairs(data.with) do assert.is_true(known[glob], glob) end
  end)

  it("names the excludes that the engine knows", function()
    local named = strings_of "temporary"
    assert.is_true(#named > 10)
    assert.same(named, data.exclude)
  end)

  it("names the markers and times that the engine knows", function()
    local markers = {}
    for i, row in ipairs(column "markers") do
      markers[i] = { name = row[1], when = row[2] or nil, newer = row[3], final = row[4] }
    end
    local function ns(name)
      local times, over = source:match("%." .. name .. " = (%d*) ?%*? ?second ?/? ?(%d*)")
      return (tonumber(times) or 1) / (tonumber(over) or 1) * 1e9
    end
    assert.equal(6, #markers)
    assert.same({
      done = "known",
      markers = markers,
      quiet_ns = ns "quiet_ns",
      marked_ns = ns "marked_ns",
      sound_ns = ns "sound_ns",
      settled_ns = ns "settled_ns",
    }, data.complete)
  end)

  it("deletes nothing, and says what its rules would free", function()
    local list = library.items(20)
    local answer, _, _, memory, warnings = M.ask("keep", { list = list })
    assert.is_nil(answer)
    assert.is_nil(memory)
    assert.equal(1, #warnings)
    assert.truthy(warnings[1]:find("would free 1%d of 20 checkpoints"), warnings[1])
  end)

  it("deletes what its rules do not keep once the two dashes are gone", function()
    local text = support.read(support.root .. "/policies/default.lua")
    local changed, n = text:gsub("%-%- keep = kept", "keep = kept")
    assert.equal(1, n)
    local mine = library.load({ { "mine", changed } }, { keep_last = "2", keep_daily = "1" })
    assert.equal("c19 c20", (library.kept(mine, library.items(20))))
  end)

  it("saves each checkpoint, until a threshold is set", function()
    local early = library.event { since = { seconds = 0.1 } }
    local answer, reason = M.ask("sync", early)
    assert.same({ "sync", "each checkpoint" }, { answer, reason })
    local slow = library.shipped("default", { sync_period = "5m" })
    assert.equal("skip", (slow.ask("sync", early)))
    early.event = "end"
    assert.equal("sync", (slow.ask("sync", early)))
    local late = library.shipped("default", { sync_min_iter = "2", sync_min_time = "1h" })
    for iteration, decision in ipairs { "skip", "sync" } do
      local result = { training_iteration = iteration, time_total_s = 9 }
      assert.equal(decision, (late.ask("sync", library.event { result = result })))
    end
  end)

  it("knows Ray's markers", function()
    assert.same({ null = ".null_marker", temp = ".temp_marker" }, data.markers)
  end)

  it("names the places of numbers that the engine knows", function()
    local text = support.sh("cc -E -P -std=c11 -Iengine engine/decision/policy_metrics.c")
    local known = {}
    for i, row in ipairs(rows_of(text:match("known_sources%[%] = (%b{})"))) do
      known[i] = { from = row[1] }
      if row[2] then
        known[i] = { from = row[1], file = row[2], path = row[3] or "", own = true }
      end
    end
    assert.equal(4, #known)
    assert.same(known, data.metrics)
  end)

  it("has an option for each number, with help", function()
    assert.is_true(#data.options >= 5)
    for _, option in ipairs(data.options) do assert.is_string(option.help) end
  end)
end)
