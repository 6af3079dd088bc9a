-- repair: a log that 1.0 wrote, with groups and a save of several ranks (spec/data/format1), and
-- groups of today. 1.0 gives entries neither a sum nor the digest of the one before, and a
-- manifest no id; so what is concluded is concluded from numbers and names.
local place = require "place"
local support = require "support"

local sh, must, says, save = place.sh, place.must, place.says, place.save
local original = support.root .. "/spec/data/format1/store"

local function names(store)
  local list = {}
  for _, item in ipairs(place.objects(must("ls " .. store .. " --json"))) do
    list[#list + 1] = (item.group or "") .. "/" .. item.dir
  end
  table.sort(list)
  return table.concat(list, " ")
end

-- In the log of each group: the entries that are lost one at a time. Of the last one
-- of a log of 1.0 nothing tells that it was there.
local lost = {
  [""] = { 0, 1, 4, 5, 12, 14, 18, 19, 21, 23 },
  ["exp/T1/"] = { 0, 1, 2, 3, 4, 5, 6 },
  ["ranks/"] = { 0, 1, 2 },
}

describe("repair of what 1.0 wrote", function()
  local dir
  setup(function()
    dir = place.begin()
    sh("cp -r '" .. original .. "' original")
    must "restore original ranks/checkpoint-7 --dir expected"
    must "restore original exp/T1/checkpoint-10.~6 --dir expected"
  end)
  teardown(function() os.execute("rm -rf '" .. dir .. "'") end)

  for group, numbers in pairs(lost) do
    it(("mends one lost entry of \"%s\" for who says that no 1.0 runs"):format(group), function()
      for _, n in ipairs(numbers) do
        local what = ("%s entry %d"):format(group, n)
        sh "rm -rf store back && cp -a original store"
        assert(os.remove(("%s/store/%s.ckpt/log/%020d.json"):format(dir, group, n)))
        local text = says(11, "repair store")
        assert.truthy(text:find("knows nothing of repairs", 1, true), what .. "\n" .. text)
        assert.are.equal("", (sh("ls store/" .. group .. ".ckpt/epoch 2>/dev/null")), what)
        -- 3: what no entry names any more, or never did, is left.
        local mended, code = place.ckpt "repair store --take-over"
        assert.truthy(code == 0 or code == 3, what .. "\n" .. mended)
        assert.truthy(mended:find "a new log was made %(epoch 1%)", what .. "\n" .. mended)
        assert.are.equal(names "original", names "store", what)
        must "verify store"
        must "restore store ranks/checkpoint-7 --dir back"
        must "restore store exp/T1/checkpoint-10.~6 --dir back"
        assert.are.equal("", (sh "diff -r back expected"), what)
      end
    end)
  end

  it("is gone on with, and 1.0's saves stay", function()
    sh "rm -rf store && cp -a original store && rm store/.ckpt/log/00000000000000000005.json"
    place.ckpt "repair store --take-over"
    save("out", 90)
    must "sync out --to store --settle 0 --continue-run --trust"
    local there = names "store"
    assert.truthy(there:find("/checkpoint-90", 1, true), there)
    for name in names("original"):gmatch "%S+" do
      assert.truthy(there:find(name, 1, true), name .. "\n" .. there)
    end
    must "verify store"
  end)
end)

describe("repair of groups", function()
  local dir
  setup(function()
    dir = place.begin()
    for i = 1, 2 do
      for _, group in ipairs { "a", "b/c" } do save("out/" .. group, i) end
      save("out", i)
      must "sync out --to original --settle 0"
    end
  end)
  teardown(function() os.execute("rm -rf '" .. dir .. "'") end)

  it("mends each log that has lost entries, and leaves the others alone", function()
    for _, broken in ipairs { { "a/" }, { "b/c/", "a/" }, { "", "b/c/" } } do
      sh "rm -rf store back && cp -a original store"
      for _, group in ipairs(broken) do
        for _, n in ipairs { 3, 4 } do
          assert(os.remove(("%s/store/%s.ckpt/log/%020d.json"):format(dir, group, n)))
        end
      end
      must "repair store"
      assert.are.equal(names "original", names "store")
      must "verify store"
      must "restore store --dir back"
      assert.are.equal("", (sh "diff -r back/checkpoint-2 out/checkpoint-2"))
      for _, group in ipairs { "", "a/", "b/c/" } do
        local was = table.concat(broken, " "):find(group, 1, true) and group ~= "" or
          (group == "" and broken[1] == "")
        local epochs = sh(("ls store/%s.ckpt/epoch 2>/dev/null"):format(group)):gsub("%s", "")
        assert.are.equal(was and "1" or "", epochs, group)
      end
    end
  end)
end)
