local library = require "policy.rules"

describe("policies/retention.lua", function()
  --- Two a day, the loss best in the middle.
  local function list(count)
    return library.items(count, function(item, i)
      item.time = 1700006400 + i * 43200
      item.metrics.eval_loss = math.abs(i - count / 2)
    end)
  end

  local function kept(settings, items)
    return (library.kept(library.shipped("retention", settings), items))
  end

  it("keeps the last, and one a day and a week", function()
    local names = kept({}, list(60))
    assert.truthy(names:find "c58 c59 c60$")
    local _, count = names:gsub("c", "")
    assert.is_true(count >= 3 + 5 and count <= 3 + 7 + 4, names)
  end)

  it("keeps what its options say, and nothing more", function()
    local only = { days = "0", weeks = "0", last = "2" }
    assert.equal("c9 c10", kept(only, list(10)))
    only.metric, only.best = "eval_loss", "1"
    assert.equal("c5 c9 c10", kept(only, list(10)))
    only.mode = "max"
    assert.equal("c9 c10", kept(only, list(10)))
    only.metric, only.every = "", "400"
    assert.equal("c4 c8 c9 c10", kept(only, list(10)))
  end)

  it("keeps everything while no checkpoint has the metric", function()
    local set = { days = "0", weeks = "0", last = "1", metric = "los" }
    assert.equal("c1 c2 c3 c4", kept(set, list(4)))
  end)

  it("keeps more with a larger number, never less", function()
    local items = list(40)
    for _, name in ipairs { "last", "days", "weeks" } do
      local before = {}
      for n = 1, 12 do
        local now = {}
        for c in kept({ [name] = tostring(n) }, items):gmatch "%S+" do now[c] = true end
        for c in pairs(before) do
          -- While places are left the oldest of all has one; later a newer one may take it.
          if c ~= "c1" then assert.is_true(now[c], name .. " " .. n .. " " .. c) end
        end
        before = now
      end
    end
  end)

  it("refuses settings that make no sense", function()
    for name, v in pairs { last = "0", mode = "low", days = "-1", best = "x" } do
      local ok, why = pcall(library.shipped, "retention", { [name] = v })
      assert.is_false(ok)
      assert.equal("setting", why.kind)
    end
  end)
end)
