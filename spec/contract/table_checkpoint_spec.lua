-- Checkpoints that are tables come back as they were: keys and numbers of every kind.

local ckpt = require "ckpt"
local support = require "support"

local fs = ckpt.fs

describe("a checkpoint that is a table", function()
  local dir, saved, loaded, Mine

  support.with_directory(function(made)
    dir = made
    Mine = ckpt.Trainable:extend "Mine"
    function Mine.save_checkpoint() return saved end
    function Mine.load_checkpoint(_, checkpoint) -- luacheck: ignore 212
      checkpoint.tune_checkpoint_path = nil
      loaded = checkpoint
    end
  end)

  local function there_and_back(value)
    saved, loaded = value, nil
    local path = assert(Mine({}, { logdir = dir .. "/log" }):save())
    assert(Mine({}, { logdir = dir .. "/log" }):restore(path))
    return loaded, path
  end

  -- As assert.same, but for numbers by their bits, and cdata by type and value.
  local function must_be(wanted, found, at)
    assert.equal(type(wanted), type(found), at)
    if type(wanted) ~= "table" then
      local function shown(value)
        return type(value) == "number" and ("%.17g"):format(value) or tostring(value)
      end
      assert.equal(shown(wanted), shown(found), at)
      return
    end
    for key, value in pairs(wanted) do must_be(value, found[key], at .. "." .. tostring(key)) end
    for key in pairs(found) do assert.is_not_nil(wanted[key], at .. "." .. tostring(key)) end
  end

  local function must_come_back(value) must_be(value, (there_and_back(value)), "") end

  it("keeps keys that are numbers: whole, fractions, negative, huge, in sparse lists", function()
    must_come_back { loss_at = { [100] = 0.5, [200] = 0.25 } }
    must_come_back { [0] = "zero", [-1] = "minus", [2.5] = "half", [1e300] = "huge",
      [math.huge] = "endless", [2 ^ 53 + 2] = "wide" }
    must_come_back { sparse = { "a", "b", nil, "d", [9] = "e" } }
    must_come_back { 1, 2, 3, name = "mixed", [7] = { [8] = { [9] = 10 } } }
    must_come_back { [1] = "one", ["1"] = "text", ["1.0"] = "text too" }
    assert.equal(0.5, (there_and_back { loss_at = { [100] = 0.5 } }).loss_at[100])
  end)

  it("keeps integers of 64 bits", function()
    must_come_back { seed = 9007199254740993LL, mask = 18446744073709551615ULL,
      least = -9223372036854775807LL - 1LL, [5] = 0ULL, list = { 1LL, 2, 3ULL } }
  end)

  it("keeps names that stand for something in the file", function()
    must_come_back { ["%pairs"] = { { 1, 2 } } }
    must_come_back { x = { ["%int64"] = "5" }, y = { ["%uint64"] = "5", [1] = 2 } }
    must_come_back { ["%pairs"] = false, [1] = 1 }
  end)

  it("keeps numbers that are none, and the sign of zero", function()
    must_come_back { a = math.huge, b = -math.huge, c = 0 / 0, d = -0, e = 1 / 3, [1] = -0 }
  end)

  it("comes back whatever is in it", function()
    local state = 4711
    local function random(n)
      state = state * 48271 % 2147483647
      return state % n
    end
    local texts = { "a", "1", "-1", "%pairs", "%int64", "", "\0\n\"", "\195\164" }
    local numbers = { 1, 2, 3, 4, -7, 0.5, 2 ^ 60, 1e-9 }
    local function key() return (random(2) == 0 and texts or numbers)[1 + random(8)] end
    local function value(depth)
      local kind = random(depth > 4 and 4 or 6)
      if kind == 0 then return texts[1 + random(8)] end
      if kind == 1 then return numbers[1 + random(8)] * (random(2) == 0 and 1 or -1) end
      if kind == 2 then return random(2) == 0 end
      if kind == 3 then return (random(2) == 0 and 1LL or 1ULL) * random(1000000) end
      local made = {}
      for i = 1, random(5) do made[kind == 4 and i or key()] = value(depth + 1) end
      return made
    end
    for _ = 1, 200 do must_come_back { value(1), x = value(1), [random(9)] = value(1) } end
  end)

  it("is the same file as ever if it needs nothing of this", function()
    local _, path = there_and_back { w = { 1, 2.5 }, name = "n", inner = { a = true } }
    assert.equal('{"inner": {"a": true}, "name": "n", "w": [1, 2.5]}', fs.read(path))
    assert.is_nil(assert(fs.read(path .. ".tune_metadata")):find("typed", 1, true))
  end)

  it("of an older release comes back as that read it", function()
    local _, path = there_and_back { w = 1 }
    assert(fs.write(path, '{"loss_at": {"100": 0.5}, "%pairs": [[1, 2]], "x": {"%int64": "5"}}'))
    assert(Mine({}, { logdir = dir .. "/log" }):restore(path))
    assert.same({ loss_at = { ["100"] = 0.5 }, ["%pairs"] = { { 1, 2 } },
      x = { ["%int64"] = "5" } }, loaded)
  end)

  it("comes back from an object, and to a training function", function()
    saved = { at = { [3] = 4 } }
    local object = assert(Mine({}, { logdir = dir .. "/log" }):save_to_object())
    loaded = nil
    assert(Mine({}, { logdir = dir .. "/log" }):restore_from_object(object))
    must_be({ at = { [3] = 4 } }, loaded, "")

    local seen
    local Count = ckpt.wrap_function(function(_, reporter)
      seen = reporter:get_checkpoint()
      reporter:set_checkpoint { best = { [7] = 0.5 } }
      reporter { n = 1 }
    end, { warn = false })
    local first = Count({}, { logdir = dir .. "/count" })
    first:train()
    local path = assert(first:save())
    first:stop()
    local second = Count({}, { logdir = dir .. "/count" })
    assert(second:restore(path))
    second._status_reporter:set_checkpoint(second._status_reporter:get_checkpoint(), false)
    second:train()
    second:stop()
    must_be({ best = { [7] = 0.5 } }, seen, "")
  end)

  it("is refused, with the reason, if it has what cannot be kept", function()
    local loop = {}
    loop.loop = { loop }
    for text, value in pairs {
      ["a boolean cannot be a key"] = { x = { [true] = 1 } },
      ["a cdata cannot be a key"] = { [5LL] = 1 },
      ["a table cannot be a key"] = { { [{}] = 1 } },
      ["a function cannot be"] = { f = print },
      ["a thread cannot be"] = { [2] = coroutine.create(print) },
      ["contains itself"] = loop,
      ["not UTF%-8"] = { [2] = "\255" },
    } do
      saved = value
      local fine, why = pcall(Mine.save, Mine({}, { logdir = dir .. "/log" }))
      assert.is_false(fine)
      assert.matches("a checkpoint that is a table: .*" .. text, why)
    end
  end)

  it("that is damaged is none of this library", function()
    local _, path = there_and_back { [2] = 1 }
    for _, text in ipairs { '{"%pairs": [7]}', '{"%pairs": [[]]}', '{"%pairs": [[2, ', "[]x" } do
      assert(fs.write(path, text))
      local done, _, name = Mine({}, { logdir = dir .. "/log" }):restore(path)
      assert.same({ nil, "EFORMAT" }, { done, name })
    end
  end)

  it("of a hostile store raises nothing, and brings no other number or key", function()
    local _, path = there_and_back { [2] = 1 }
    for _, text in ipairs { '{"%int64": "99999999999999999999999999"}',
      '{"%int64": "9223372036854775808"}', '{"%uint64": "18446744073709551616"}',
      '{"%uint64": "' .. ("9"):rep(100000) .. '"}', '{"%int64": "007"}', '{"%pairs": [[null, 1]]}',
      '{"%pairs": [[true, 1]]}', '{"%pairs": [[[], 1]]}', '{"%pairs": [[NaN, 1]]}' } do
      assert(fs.write(path, text))
      local trial = Mine({}, { logdir = dir .. "/log" })
      local fine, done, _, name = pcall(trial.restore, trial, path)
      assert.same({ true, nil, "EFORMAT" }, { fine, done, name }, text:sub(1, 60))
    end
  end)
end)
