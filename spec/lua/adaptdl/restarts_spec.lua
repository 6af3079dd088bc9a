-- The order of checkpoints: properties of a function of listings.

local restarts = require "ckpt.adaptdl.restarts"

-- Numbers of our own, so that a failure can be repeated.
local state = 20260101
local function random(n)
  state = state * 48271 % 2147483647
  return state % n
end

local function entries_of(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = { name = name } end
  return list
end

describe("ckpt.restarts", function()
  it("without records is the order of the numbers, whatever the order of the listing", function()
    for _ = 1, 300 do
      local names, numbers = {}, {}
      for _ = 1, 1 + random(8) do
        local number = random(3) == 0 and random(2000) or random(12)
        if not numbers[number] then
          numbers[number] = true
          table.insert(names, 1 + random(#names + 1), restarts.name(number))
        end
      end
      local wanted = {}
      for number in pairs(numbers) do wanted[#wanted + 1] = number end
      table.sort(wanted, function(a, b) return a > b end)
      for i, number in ipairs(wanted) do wanted[i] = tostring(number) end
      local choice = restarts.choose(entries_of(names))
      assert.same(wanted, choice.order)
      assert.equal(wanted[1], choice.number)
    end
  end)

  it("is the order of the saves, whichever deletions were lost", function()
    for _ = 1, 300 do
      local there, order = {}, {} -- entries; numbers, the newest first
      for _ = 1, 1 + random(6) do
        local number = tostring(random(6))
        local name = restarts.name(number)
        local sequence = restarts.next_sequence(there)
        local record = restarts.decode(restarts.encode(sequence, there))
        assert.equal(sequence, record.sequence)
        local left, gone = {}, {}
        for _, outdated in ipairs(restarts.outdated(there, name, sequence)) do
          gone[outdated] = random(2) == 0 -- else the process died before it
        end
        for _, entry in ipairs(there) do
          if entry.name ~= name and not gone[entry.name] then left[#left + 1] = entry end
        end
        left[#left + 1] = { name = name, sequence = record.sequence, replaced = record.replaced }
        local now = { number }
        for _, old in ipairs(order) do
          if old ~= number and not gone[restarts.name(old)] then now[#now + 1] = old end
        end
        there, order = left, now
        assert.same(order, restarts.choose(there).order)
      end
    end
  end)

  it("puts what a record replaced behind it, and a greater number without one before it", function()
    local recorded = { name = "checkpoint-3", sequence = 7,
      replaced = { ["checkpoint-9"] = true } }
    local function order(...) return restarts.choose({ recorded, ... }).order end
    assert.same({ "3", "9" }, order { name = "checkpoint-9" })
    assert.same({ "4", "3", "9" }, order({ name = "checkpoint-9" }, { name = "checkpoint-4" }))
    assert.same({ "3", "2" }, order { name = "checkpoint-2" })
  end)

  it("never takes a save that came later for outdated", function()
    local list = { { name = "checkpoint-1", sequence = 4 }, { name = "checkpoint-2", sequence = 6 },
      { name = "checkpoint-3", sequence = 5 }, { name = "checkpoint-best" }, { name = "other" } }
    assert.same({ "checkpoint-1", "checkpoint-best" }, restarts.outdated(list, "checkpoint-5", 5))
  end)

  it("reads only numbers that are written plainly", function()
    local plain = { ["0"] = "0", ["7"] = "7", ["120"] = "120", ["-1"] = false, ["-0"] = "none",
      ["00"] = "none", ["07"] = "none", ["7 "] = "none", ["+7"] = "none", [""] = "none",
      ["7\n"] = "none", ["-"] = "none", ["--1"] = "none", ["1.0"] = "none" }
    for suffix, wanted in pairs(plain) do
      local number = restarts.number("checkpoint-" .. suffix)
      if wanted == "none" then wanted = nil end
      assert.equal(wanted, number, suffix)
    end
    assert.is_nil(restarts.number "checkpoint_1")
    assert.is_nil(restarts.number "7")
    assert.equal(("9"):rep(200), restarts.number("checkpoint-" .. ("9"):rep(200)))
  end)

  it("takes no text for a record that is none", function()
    for _ = 1, 500 do
      local text = restarts.encode(3, entries_of { "checkpoint-1", "checkpoint-x" })
      local cut = text:sub(1, random(#text))
      assert.is_nil(restarts.decode(cut), cut)
    end
    assert.is_nil(restarts.decode "null")
  end)
end)
