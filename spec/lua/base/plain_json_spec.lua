-- ckpt.base.plain_json: JSON by lua-cjson, whose settings in the host stay the host's.

local cjson = require "cjson"
local json = require "ckpt.base.json"
local plain_json = require "ckpt.base.plain_json"

describe("plain JSON", function()
  it("comes back as it was", function()
    for _, value in ipairs {
      { a = { 1, 2, { b = true } }, c = "é/\n\0\127", d = plain_json.null, e = 99999999999999 },
      { [1] = "x", [3] = "y" }, 7, "text", false,
    } do
      local text = plain_json.encode(value)
      local back = plain_json.decode(text)
      if type(value) == "table" and value[3] then
        assert.same({ ["1"] = "x", ["3"] = "y" }, back) -- a list with holes is an object
      else
        assert.same(value, back)
      end
    end
    assert.equal('{"uri":"s3://b/k"}', plain_json.encode { uri = "s3://b/k" })
    assert.equal(json.null, plain_json.decode "null")
  end)

  it("reads the digits of a number that Python wrote, and what is no number", function()
    for text, value in pairs {
      ["0.30000000000000004"] = 0.1 + 0.2, ["9007199254740991"] = 2 ^ 53 - 1, ["-0.0"] = 0,
      ["1e-300"] = 1e-300, Infinity = math.huge, ["-Infinity"] = -math.huge,
    } do
      assert.equal(value, plain_json.decode(text))
    end
    local list = plain_json.decode "[NaN]"
    assert.is_true(list[1] ~= list[1])
  end)

  it("says what is no JSON, and tells objects from lists by their text", function()
    for _, text in ipairs { "", "{", "[1,]", "nul", "1 2", '"\\x"', ("["):rep(100000) } do
      local value, problem = plain_json.decode(text)
      assert.is_nil(value)
      assert.is_truthy(#problem > 5, text)
    end
    assert.is_true(plain_json.is_object ' \n{"a":1}')
    assert.is_false(plain_json.is_object "[{}]")
  end)

  it("asks nothing of the settings of the host's cjson, and changes none", function()
    local depth, invalid, precision = cjson.decode_max_depth(), cjson.decode_invalid_numbers(),
      cjson.encode_number_precision()
    cjson.decode_max_depth(1)
    cjson.decode_invalid_numbers(false)
    cjson.encode_number_precision(3)
    local fine, why = pcall(function()
      assert.same({ { { 1 / 0 } } }, plain_json.decode "[[[Infinity]]]")
      assert.equal("[123456]", plain_json.encode { 123456 })
      assert.equal(1, cjson.decode_max_depth())
      assert.equal(false, cjson.decode_invalid_numbers())
      assert.equal(3, cjson.encode_number_precision())
    end)
    cjson.decode_max_depth(depth)
    cjson.decode_invalid_numbers(invalid)
    cjson.encode_number_precision(precision)
    assert(fine, why)
    -- A list with holes is refused there, as it was.
    assert.is_false((pcall(cjson.encode, { [1] = 1, [100] = 2 })))
  end)

  it("reads a record of a hundred thousand files, and no bomb in its place", function()
    local entries = {}
    for i = 1, 100000 do
      entries["some/directory/file-" .. i] = {
        type = "file", mode = 420, mtime = 1700000000000000000, size = i, digest = ("0"):rep(32),
      }
    end
    local text = json.encode { format = 1, entries = entries }
    local read = assert(plain_json.decode(text, plain_json.ENTRIES_MAX))
    assert.are.equal(7, read.entries["some/directory/file-7"].size)
    local value, problem = plain_json.decode("[" .. ("{},"):rep(2 ^ 20) .. "0]",
      plain_json.ENTRIES_MAX)
    assert.is_nil(value)
    assert.is_truthy(problem:find("more values", 1, true), problem)
  end)
end)
