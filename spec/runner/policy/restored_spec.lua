-- policy simulate: with what a trial goes on whose machine is gone: what a start of a run would put
-- into the empty directory, by its rules and by the policy's `restore`.

local place = require "place"
local support = require "support"
local ends, has = place.ends, place.has

local dir

place.with_directory(function(made) dir = made end)

local function policy(keys) support.write(dir .. "/p.lua", "return { api = 1, " .. keys .. " }") end

local function restored(lines, args)
  support.write(dir .. "/e.jsonl", table.concat(lines, "\n") .. "\n")
  local text = ends(0, "policy simulate e.jsonl --json " .. (args or "-p builtin"))
  local words = {}
  for _, row in ipairs(place.objects(text)) do
    if row.restored and #row.restored > 0 then
      words[#words + 1] = ("%s at %g"):format(table.concat(row.restored, "+"), row.t)
    end
  end
  return table.concat(words, ", ")
end

local function checkpoint(t, name, loss)
  return ([[{"t":%d,"event":"checkpoint","checkpoint":{"name":"%s","bytes":100,]]
    .. [["metrics":{"loss":%g}}}]]):format(t, name, loss or 1)
end

local LOST = { checkpoint(1, "c-1", 1), checkpoint(2, "c-2", 2), checkpoint(3, "c-3", 3),
  '{"t":4,"event":"crash"}', '{"t":9,"event":"start"}' }

describe("policy simulate", function()
  it("says with what a trial goes on whose machine is lost: the newest in the store", function()
    assert.equal("c-3 at 9", restored(LOST))
    assert.equal("c-1 at 9", restored(LOST, "-p builtin --bandwidth 40/s"))
    has(ends(0, "policy simulate e.jsonl -p builtin"), "restored c-3")
  end)

  it("brings back what `restore` names beside it, and the newest of each kind", function()
    policy "restore = keep.best('loss', 1, 'min')"
    assert.equal("c-1+c-3 at 9", restored(LOST, "-p ./p.lua"))
    policy "restore = function(list) return { list[2] } end"
    assert.equal("c-2+c-3 at 9", restored(LOST, "-p ./p.lua"))
    local two = { checkpoint(1, "c-1"), checkpoint(2, "best"), checkpoint(3, "best"),
      checkpoint(4, "c-2"), '{"t":5,"event":"crash"}', checkpoint(6, "c-3") }
    assert.equal("best+c-2 at 6", restored(two))
  end)

  it("brings back nothing that is there still, or was never saved", function()
    assert.equal("", restored { checkpoint(1, "c-1"), '{"t":2,"event":"error"}',
      '{"t":3,"event":"start"}' })
    assert.equal("", restored { '{"event":"start"}', '{"t":1,"event":"crash"}',
      '{"t":2,"event":"start"}' })
    assert.equal("", restored { checkpoint(1, "c-1"), '{"t":2,"event":"crash"}' })
  end)

  it("brings it back for a job that had ended before its machine was lost", function()
    assert.equal("c-1 at 4", restored { checkpoint(1, "c-1"), '{"t":2,"event":"complete"}',
      '{"t":3,"event":"crash"}', '{"t":4,"event":"start"}' })
  end)

  it("does so after a preemption, and after each failure that it makes up", function()
    assert.equal("c-1 at 99", restored { checkpoint(1, "c-1"),
      '{"t":2,"event":"preempt","grace":5}', '{"t":99,"event":"start"}' })
    local lines = {}
    for i = 1, 30 do lines[i] = checkpoint(100 * i, "c-" .. i) end
    local text = restored(lines, "-p builtin --failures mtbf=500s,seed=3")
    assert.is_true(select(2, text:gsub(" at ", "")) > 2, text)
  end)
end)
