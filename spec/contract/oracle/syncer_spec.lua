-- Recorded runs of Ray 2.4.0's background syncer, replayed on ours with scripted transfers; and its
-- 30 pairs of (upload_dir, syncer). Where section G makes us differ, syncer_model.lua says what we
-- must answer, item by item.

local ckpt = require "ckpt"
local model = require "contract.syncer_model"
local peer_words = require "contract.peer_words"
local recording = require "recording"
local source = require "ckpt.base.clock"

-- A launch has three parts, other lines have two; what is null there is taken out below.
local function has_all_parts(traces)
  for _, trace in ipairs(traces) do
    for _, step in ipairs(trace.oracle) do
      for _, entry in ipairs(step.trace) do
        if #entry ~= (entry[1] == "launch" and 3 or 2) then return false end
      end
    end
  end
  return true
end

local function load(name)
  local function plain(part)
    for key, member in pairs(part) do
      if member == recording.null then
        part[key] = nil
      elseif type(member) == "table" then
        plain(member)
      end
    end
    return part
  end
  local recorded = recording.read(name)
  assert(has_all_parts(recorded.traces) and has_all_parts(recorded.named), name)
  return plain(recorded)
end

-- Everything of a step as one text.
local function show(step)
  local parts = {}
  for i, entry in ipairs(step.trace) do
    local words = {}
    for k = 1, 3 do
      words[k] = type(entry[k]) == "table" and table.concat(entry[k], ",") or tostring(entry[k])
    end
    parts[i] = table.concat(words, " ")
  end
  local e = step.exception
  return ("%s | %s | %s | now %s | process %s, running %s | up %s, down %s"):format(
    tostring(step.answer),
    e and table.concat({ e[1], e[2], e[3] or "-" }, ": ") or "-", table.concat(parts, "; "),
    step.now, tostring(step.has_process), tostring(step.running), step.last_up, step.last_down)
end

-- A recorded step in the model's words: our texts of a timeout end without a full stop.
local function recorded(step)
  local trace = {}
  for _, entry in ipairs(step.trace) do
    local text = entry[2]
    if type(text) == "string" then text = text:gsub("(timeout of [%d.]+ seconds)%.", "%1") end
    trace[#trace + 1] = { entry[1], text, entry[3] }
  end
  local e = step.exception
  return {
    answer = step.ret, trace = trace, now = step.now,
    exception = e and { e[1], (e[2]:gsub("seconds%.$", "seconds")), e[3] },
    has_process = step.has_process, running = step.running or false,
    last_up = step.last_up or -math.huge, last_down = step.last_down or -math.huge,
  }
end

-- Our syncer under a trace: a record for each event, in the model's words.
local function play(trace, queue)
  local clock = ckpt.testing.clock(1000)
  local transfers = ckpt.testing.transfers(clock)
  local happened
  local function note(...) happened[#happened + 1] = { ... } end

  local virtual
  virtual = source.use {
    now = function() return clock.time end,
    monotonic = function() return clock.time end,
    sleep = function(seconds)
      note("sleep", seconds)
      virtual.sleep(seconds)
    end,
  }
  -- What is called by its name in our messages is "cmd" in all of Ray's.
  local function unnamed(text)
    for _, name in ipairs { "sync up of /l to u", "sync down of u to /l", "deletion of u" } do
      text = text:gsub(name .. " did not finish", "cmd did not finish")
    end
    return text
  end
  local levels = { warning = "WARNING", error = "ERROR" }
  local sink = ckpt.log.use(function(level, text) note(levels[level], unnamed(text)) end)

  local Scripted = ckpt.BackgroundSyncer:extend("Scripted")
  function Scripted.sync_up_command(_, _, _, exclude)
    note("launch", "up", exclude)
    return transfers:launch()
  end
  function Scripted.sync_down_command(_, _, _, exclude)
    note("launch", "down", exclude)
    return transfers:launch()
  end
  function Scripted.delete_command()
    note("launch", "delete")
    return transfers:launch()
  end
  local syncer = Scripted {
    sync_period = trace.config.sync_period, sync_timeout = trace.config.sync_timeout, queue = queue,
  }
  local ops = {
    up = function(e) return syncer:sync_up("/l", "u", e.exclude) end,
    down = function(e) return syncer:sync_down("u", "/l", e.exclude) end,
    up_if = function(e) return syncer:sync_up_if_needed("/l", "u", e.exclude) end,
    down_if = function(e) return syncer:sync_down_if_needed("u", "/l", e.exclude) end,
    delete = function() return syncer:delete("u") end,
    wait = function() return syncer:wait() end,
    retry = function() return syncer:retry() end,
    reset = function() return syncer:reset() end,
    wait_or_retry = function(e) return syncer:wait_or_retry(e.max_retries, e.backoff_s) end,
    advance = function() end,
  }
  -- These say true or nothing, as Ray's return nothing or raise.
  local quiet = { wait = true, retry = true, wait_or_retry = true }

  local steps = {}
  for i, event in ipairs(trace.events) do
    clock:advance(event.dt or 0)
    if event.plan then
      local plan = {}
      for k, entry in ipairs(event.plan) do plan[k] = { entry[1], entry[2], "boom" } end
      transfers:plan(plan)
    end
    happened = {}
    local fine, answer, text, name = pcall(ops[event.op], event)
    local exception
    if not fine then
      exception = { "AssertionError", "" }
      assert.matches("max_retries must be at least 1", answer)
      answer = nil
    elseif text then
      text = unnamed(text)
      local cause = name == "ETIMEOUT" and "TimeoutError" or "TuneError"
      if text:find("^Failed sync even after") then
        exception = { "TuneError", text:match("^[^:]+") .. ".", cause }
      elseif text:find("^Sync process failed") then
        exception = { "TuneError", text, "RuntimeError" }
      else
        exception = { cause, text }
      end
    end
    if quiet[event.op] then answer = nil end
    steps[i] = {
      answer = answer, exception = exception, trace = happened, now = clock.time,
      has_process = syncer._process ~= nil,
      running = syncer._process ~= nil and syncer._process:is_running(),
      last_up = syncer.last_sync_up_time, last_down = syncer.last_sync_down_time,
    }
  end
  ckpt.log.use(sink)
  source.use(virtual)
  clock:restore()
  return steps
end

-- The model sleeps on 0 s too; clock.sleep does not come that far.
local function without_empty_sleeps(steps)
  for _, step in ipairs(steps) do
    local trace = {}
    for _, entry in ipairs(step.trace) do
      if not (entry[1] == "sleep" and entry[2] == 0) then trace[#trace + 1] = entry end
    end
    step.trace = trace
  end
  return steps
end

local OURS = { 165, 170, 180 }

-- The items of section G that a trace meets, but for `without`.
local function switched(items, without)
  local switches = {}
  for _, item in ipairs(items) do switches[item] = item ~= without or nil end
  return switches
end

describe("recorded traces of the background syncer", function()
  local data = load("background_syncer")
  local traces = {}
  for _, list in ipairs { data.traces, data.named } do
    for _, trace in ipairs(list) do traces[#traces + 1] = trace end
  end

  it("are what the model says without switches", function()
    local steps = 0
    for i, trace in ipairs(traces) do
      local played = model.play(trace, {})
      for k, step in ipairs(played) do
        assert.equal(show(recorded(trace.oracle[k])), show(step),
          ("trace %d, step %d"):format(i, k))
        steps = steps + 1
      end
    end
    assert.equal(30 + 20, #traces)
    assert.equal(423, steps)
  end)

  local function compare(queue, items)
    local same, differing = 0, 0
    for i, trace in ipairs(traces) do
      local wanted = without_empty_sleeps(model.play(trace, switched(items)))
      local played = play(trace, queue)
      assert.equal(#wanted, #played)
      for k, step in ipairs(played) do
        assert.equal(show(wanted[k]), show(step), ("trace %d, step %d"):format(i, k))
        if show(step) == show(without_empty_sleeps { recorded(trace.oracle[k]) }[1]) then
          same = same + 1
        else
          differing = differing + 1
        end
      end
    end
    return same, differing
  end

  it("[156, 157, 158, 160, 162, 163, 164, 167, 168, 169, 171, 172, 173, 175, 177, 179] are met "
    .. "but for 165, 170 and 180, which are better", function()
    assert.same({ 352, 71 }, { compare("skip", OURS) })
  end)

  it("[165, 170, 174, 180 G] are met with requests that wait for their turn", function()
    assert.same({ 325, 98 }, { compare(nil, { 165, 170, 174, 180 }) })
  end)

  it("differ from us by no item in vain", function()
    for _, item in ipairs(OURS) do
      local changed = false
      for _, trace in ipairs(traces) do
        local with, without = model.play(trace, switched(OURS)),
          model.play(trace, switched(OURS, item))
        for k, step in ipairs(with) do
          changed = changed or show(step) ~= show(without[k])
        end
      end
      assert.is_true(changed, "item " .. item)
    end
  end)
end)

describe("recorded configurations", function()
  it("[140, 141, 142, 143, 144] are accepted, refused and served as recorded", function()
    local rows = recording.read "syncconfig"
    local custom = ckpt.Syncer {
      sync_up = function() return true end, sync_down = function() return true end,
      delete = function() return true end,
    }
    for i, row in ipairs(rows) do
      local syncer = row.syncer
      if syncer == recording.null then syncer = false end
      if syncer == "SYNCER" then syncer = custom end
      local upload_dir = row.upload_dir
      if upload_dir == recording.null then upload_dir = nil end
      assert.same(peer_words.of_sync_config(upload_dir, syncer == custom and "SYNCER" or syncer),
        row.error, "row " .. i)
      local made, config = pcall(ckpt.SyncConfig, { upload_dir = upload_dir, syncer = syncer })
      local fine, found = made, config
      if made then
        fine, found = pcall(ckpt.get_node_to_storage_syncer, config)
      end
      if row.error then
        assert.is_false(fine, "row " .. i)
        assert.equal(row.error[2]:find("^Unknown syncer") ~= nil, made, "row " .. i)
        local kind = row.error[2]:match("<class '(%a+)'>")
        local ours = { str = "string", int = "number" }
        if kind then assert.matches("unknown syncer type `" .. ours[kind], found, 1, true) end
      elseif row.node_to_storage == recording.null then
        assert.is_true(fine)
        assert.is_nil(found)
      elseif row.node_to_storage == "same object" then
        assert.equal(custom, found)
      else
        assert.equal("_DefaultSyncer", row.node_to_storage)
        assert.is_true(ckpt.class.is(found, ckpt.DefaultSyncer))
      end
    end
    assert.equal(30, #rows)
  end)
end)
