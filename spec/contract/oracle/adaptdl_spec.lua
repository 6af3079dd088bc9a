-- What adaptdl 0.2.11 was seen to do (spec/data/oracle/adaptdl_select.json, adaptdl_save.json),
-- replayed: what is loaded, called, logged, raised, and what is on disk afterwards. Where the
-- contract has something better, the item is named here and our answer is checked; that the record
-- has then what the contract says of adaptdl, spec/adaptdl_model.lua tells.

local ckpt = require "ckpt"
local model = require "adaptdl_model"
local recording = require "recording"
local states = require "contract.state_support"

local function given(value)
  if value ~= recording.null then return value end
end

local function lay(root, entries)
  local tree = {}
  for _, entry in ipairs(entries) do
    if entry.type == "dir" then
      tree[entry.path .. "/"] = true
    else
      tree[entry.path] = entry.data
    end
  end
  states.lay(root, tree)
end

describe("loading, as recorded", function()
  local select = recording.read "adaptdl_select"

  -- The names at the top of a case's tree that have the prefix: those that are plain numbers,
  -- padded so that they compare as texts, and whether there are others.
  local function numbers_of(case)
    local plain, has_odd = {}, false
    for _, entry in ipairs(case.entries) do
      local suffix = entry.path:match "^checkpoint%-([^/]*)"
      if suffix and (suffix == "0" or suffix:find "^[1-9]%d*$") then
        plain[#plain + 1] = ("0"):rep(40 - #suffix) .. suffix
      elseif suffix and not suffix:find "^%-%d+$" then
        has_odd = true
      end
    end
    table.sort(plain)
    return plain, has_odd
  end

  -- A recorded line in our words.
  local function worded(line, case)
    local level, text = line[1]:lower(), line[2]
    if text == "No checkpoint found in $ROOT." then
      return level .. ": no checkpoint found in $ROOT"
    end
    local number = text:match "Loading checkpoint from restart (%d+)%.$"
    if number then
      return ("%s: $ROOT: there is no checkpoint from the last restart, %d; loading that of "
        .. "restart %s"):format(level, case.num_restarts - 1, number)
    end
    return ("%s: there is no state file %s"):format(level,
      assert(text:match "^Cannot find state file (.*)%.$"))
  end

  -- What is expected with items 104 and 105 better: the greatest plain number, and one warning.
  local function better(case, state, plain)
    local number = (plain[#plain] or "0"):gsub("^0+(%d)", "%1")
    local wanted = { returned = false, calls = {}, log = { "warning: $ROOT: passed over" } }
    if number ~= ("%d"):format(case.num_restarts - 1) then
      table.insert(wanted.log, worded({ "WARNING", "Loading checkpoint from restart " .. number
        .. "." }, case))
    end
    local path = ("checkpoint-%s/%s"):format(number, state)
    for _, entry in ipairs(case.entries) do
      if entry.path == path and entry.type == "file" then
        wanted.returned, wanted.value, wanted.calls = true, entry.data, { "load" }
      end
    end
    if not wanted.returned then
      table.insert(wanted.log, "warning: there is no state file $ROOT/" .. path)
    end
    return wanted
  end

  local function recorded(case, result)
    local wanted = { returned = given(result.returned), value = given(result.value), log = {},
      calls = {} }
    for i, line in ipairs(result.log) do wanted.log[i] = worded(line, case) end
    for i, call in ipairs(result.calls) do wanted.calls[i] = call end
    return wanted
  end

  local function observed(root, log, result)
    while #log > 0 do table.remove(log) end
    local registry = ckpt.Registry()
    local state = states.Text(result.state, nil, registry)
    local seen = { calls = state.calls }
    local fine, answer = pcall(registry.load_state, registry, state)
    if fine then
      seen.returned = answer
    else
      seen.raised = answer
    end
    seen.value = state.value
    seen.log = states.lines(log, root)
    for i, line in ipairs(seen.log) do
      seen.log[i] = line:gsub("^(warning: $ROOT: passed over).*", "%1")
    end
    registry:close()
    return seen
  end

  local function replay(cases)
    local count = { agree = 0, better = 0 }
    for i, case in ipairs(cases) do
      states.with_root(function(root, log)
        local title = case.name or ("random " .. i)
        lay(root, case.entries)
        states.job(case.name ~= "unset checkpoint path" and root or nil, case.num_restarts)
        if case.name == "checkpoint path missing on disk" then assert(ckpt.fs.remove_tree(root)) end
        local plain, has_odd = numbers_of(case)
        for _, result in ipairs(case.results) do
          local seen = observed(root, log, result)
          if has_odd then
            assert.same(better(case, result.state, plain), seen, title)
            -- What adaptdl loads is loaded here.
            if given(result.value) then assert.equal(result.value, seen.value, title) end
            count.better = count.better + 1
          else
            local wanted = recorded(case, result)
            if given(result.exception) then
              assert.equal("FileNotFoundError", result.exception[1], title)
              assert.truthy(seen.raised:find("must be there", 1, true), title)
              seen.raised = nil
            end
            assert.same(wanted, seen, title)
            count.agree = count.agree + 1
          end
        end
      end)
    end
    return count
  end

  -- Also of the rows in which ours answers something else.
  it("has of each row what the contract says of adaptdl", function()
    local count = 0
    for _, cases in ipairs { select.named, select.random } do
      for i, case in ipairs(cases) do
        local is_set = case.name ~= "unset checkpoint path"
        local is_there = case.name ~= "checkpoint path missing on disk"
        for _, result in ipairs(case.results) do
          local wanted = model.load(case, result.state, is_set, is_there)
          local exception = given(result.exception)
          local seen = { returned = given(result.returned), value = given(result.value),
            calls = { unpack(result.calls) }, log = {}, raises = wanted.raises }
          for k, line in ipairs(result.log) do seen.log[k] = table.concat(line, ": ") end
          assert.same(wanted, seen, case.name or i)
          local text = exception and table.concat(exception, ": ")
          local is_said = #wanted.raises == 0 and not text
          for _, raised in ipairs(wanted.raises) do is_said = is_said or raised == text end
          assert(is_said, tostring(text))
          count = count + 1
        end
      end
    end
    assert.equal(136, count)
  end)

  it("[101, 102, 103, 106, 107, 108, 109, 110, 111, 112] the named cases", function()
    assert.equal(16, #select.named)
    assert.same({ agree = 14, better = 2 }, replay(select.named))
  end)

  it("[103, 106, 107, 108, 109, 111] the random cases", function()
    assert.equal(60, #select.random)
    assert.same({ agree = 84, better = 36 }, replay(select.random))
  end)
end)

describe("saving, as recorded", function()
  local cases = recording.read("adaptdl_save").cases

  local function tree_of(rows)
    local tree = {}
    for _, row in ipairs(rows) do
      if type(row) == "string" then
        tree[row] = true
      else
        tree[row[1]] = row[2]
      end
    end
    return tree
  end

  -- Ours, with the staging directory laid out as theirs.
  local function on_disk(root)
    local tree = {}
    for path, data in pairs(states.tree(root)) do
      local staged = path:match "^_checkpoint%.%?/states/(.*)$"
      if staged then
        tree["_checkpoint/" .. staged] = data
      elseif not path:find "^_checkpoint%.%?/.+" then
        tree[path:gsub("^_checkpoint%.%?/$", "_checkpoint/")] = data
      end
    end
    return tree
  end

  local function without(tree, pattern)
    local left = {}
    for path, data in pairs(tree) do
      if not path:find(pattern) then left[path] = data end
    end
    return left
  end

  -- The items of section G that a case is about.
  local function items_of(case)
    local found = {}
    if #case.states == 0 then found[99] = true end
    for _, state in ipairs(case.states) do
      if state[1] == "" or state[1]:find "/" then found[85] = true end
    end
    for _, outcome in ipairs(case.outcomes) do
      local exception = given(outcome.exception)
      if exception and exception[2] == 39 then found[95] = true end
      if exception and exception[2] == 20 and not exception[3]:find "%->" then found[90] = true end
    end
    for _, entry in ipairs(case.entries) do
      if entry.path:find "^_checkpoint" then found[97] = true end
    end
    return found
  end

  -- The tree that we leave, from the recorded one.
  local function expected(case, items)
    local tree = tree_of(case.tree)
    local target = ("checkpoint-%d/"):format(case.num_restarts)
    if items[85] or items[99] then
      tree = {}
    elseif items[95] then
      tree = without(without(tree, "^checkpoint%-"), "^_checkpoint")
      tree[target] = true
      for _, state in ipairs(case.states) do tree[target .. state[1]] = state[2] end
    end
    for _, entry in ipairs(case.entries) do
      local is_stale = entry.path:find "^_checkpoint"
      if items[85] or items[99] or is_stale then
        tree[entry.path .. (entry.type == "dir" and "/" or "")] = entry.data or true
        if entry.path:find "/" then tree[entry.path:match "^(.-/)"] = true end
      end
      -- It rode along in the recorded one.
      local ghost = is_stale and entry.path:match "^_checkpoint/(.*)"
      if ghost and tree[target .. ghost] == entry.data then tree[target .. ghost] = nil end
    end
    return tree
  end

  local function register(case, registry)
    local list = {}
    for i, row in ipairs(case.states) do
      list[i] = states.Text(row[1], row[2], registry)
    end
    if case.name:find "^save raises midway" then
      list[2].save = function(_, file)
        file:write "part"
        error("save failed", 0)
      end
    end
    return list
  end

  -- Replays those cases whose name has the pattern, or has not; returns how many agree with the
  -- record, and for each item of section G how many are better.
  local function replay(pattern, has)
    local agree, better = 0, {}
    for _, case in ipairs(cases) do
      states.with_root(function(root)
        if (case.name:find(pattern) ~= nil) ~= has then return end
        lay(root, case.entries)
        states.job(not case.name:find "^unset path" and root or nil, case.num_restarts, case.rank)
        local registry = ckpt.Registry()
        local items = items_of(case)
        local is_better = next(items) ~= nil
        local fine, list = pcall(register, case, registry)
        assert.equal(not items[85], fine, case.name)
        for i = 1, items[85] and 0 or case["repeat"] do
          local outcome = case.outcomes[i]
          local saved, path, text = pcall(registry.save_all_states, registry)
          local exception = given(outcome.exception)
          if items[99] then
            assert.is_nil(path)
            assert.truthy(text, case.name)
          elseif not exception or is_better then
            assert.is_true(saved, case.name)
            local wanted = given(outcome.returned) and root or exception and root or nil
            assert.equal(wanted, path, case.name)
          elseif exception[1] == "RuntimeError" then
            assert.is_false(saved, case.name)
            assert.equal(exception[3], path)
          else
            -- An error of the system: returned, not raised.
            assert.is_nil(path, case.name)
            assert.truthy(text, case.name)
          end
        end
        if not items[85] then
          for i, calls in ipairs(case.calls) do
            local wanted = {}
            for k, call in ipairs(calls) do wanted[k] = call end
            assert.same(wanted, list[i].calls, case.name)
          end
        end
        assert.same(expected(case, items), on_disk(root), case.name)
        registry:close()
        if not is_better then agree = agree + 1 end
        for item in pairs(items) do better[item] = (better[item] or 0) + 1 end
      end)
    end
    return agree, better
  end

  it("has of each case what the contract says of adaptdl", function()
    for _, case in ipairs(cases) do
      local outcomes, calls, tree = model.save(case, not case.name:find "^unset path",
        case.name:find "^save raises midway" and 2)
      local seen = { outcomes = {}, calls = {}, tree = {} }
      for i, outcome in ipairs(case.outcomes) do
        local exception = given(outcome.exception)
        seen.outcomes[i] = { returned = given(outcome.returned),
          exception = exception and { exception[1], given(exception[2]), exception[3] } }
      end
      for i, list in ipairs(case.calls) do seen.calls[i] = { unpack(list) } end
      assert.same({ outcomes = outcomes, calls = calls, tree = tree },
        { outcomes = seen.outcomes, calls = seen.calls, tree = tree_of(case.tree) }, case.name)
      for _, row in ipairs(case.tree) do
        assert(type(row) == "string" or #row == 2, case.name)
      end
    end
    assert.equal(77, #cases)
  end)

  it("[73, 81, 82, 84, 86, 87, 88, 89, 93, 94, 96, 98] the named cases", function()
    local agree, better = replay("^random", false)
    assert.equal(9, agree)
    assert.same({ [85] = 3, [90] = 1, [95] = 2, [97] = 1, [99] = 1 }, better)
  end)

  it("[73, 88] the random cases", function()
    local agree, better = replay("^random", true)
    assert.equal(51, agree)
    assert.same({ [95] = 6, [97] = 3 }, better)
    assert.equal(77, #cases)
  end)
end)
