local library = require "policy.rules"

describe("policies/excludes.lua", function()
  local _, data = library.shipped "excludes"
  local listed = {}
  for _, glob in ipairs(data.exclude) do listed[glob] = true end

  it("has what Ray's node sync leaves out", function()
    for _, glob in ipairs {
      "./checkpoint_-00001",
      "./checkpoint_tmp*",
      "./save_to_object*",
      "./rank_*",
      "./.lazy_checkpoint_marker",
    } do
      assert.is_true(listed[glob], glob)
    end
  end)

  it("never leaves out all that begins with a dot, or all there is", function()
    for _, glob in ipairs { ".*", "*", "**", ".metadata", "*.json" } do
      assert.is_nil(listed[glob])
    end
  end)

  it("is put together with those of other policies", function()
    local text = "return { api = 1, exclude = 'mine' }"
    local file = assert(io.open "policies/excludes.lua"):read "*a"
    local _, both = library.load { { "mine", text }, { "excludes", file } }
    assert.equal("mine", both.exclude[1])
    assert.equal(#data.exclude + 1, #both.exclude)
  end)
end)
