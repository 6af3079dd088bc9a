-- ckpt.json: what is written, what is read, and that nothing is lost between the two.

local ckpt = require "ckpt"
local ffi = require "ffi"

local json = ckpt.json

describe("ckpt.json", function()
  it("writes values in their shortest exact form", function()
    for text, value in pairs {
      ["1"] = 1, ["-7"] = -7, ["0.1"] = 0.1, ["1.5"] = 1.5, ["1e+22"] = 1e22, ["-0.0"] = -0.0,
      ["9007199254740991"] = 2 ^ 53 - 1, ["9.0071992547409936e+15"] = nil,
      ["0.30000000000000004"] = 0.1 + 0.2, ["true"] = true, ["false"] = false,
      ["9007199254740993"] = ffi.new("int64_t", 9007199254740993LL),
      ["18446744073709551615"] = 18446744073709551615ULL,
      ['"a\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u007f/"'] = 'a"\\\b\f\n\r\t\0\127/',
      ['"\\u00e9\\u20ac\\ud83d\\ude00"'] = "é€😀", ["null"] = json.null,
      ["[]"] = json.list {}, ["{}"] = {}, ['[1, [2], {"a": 3}]'] = { 1, { 2 }, { a = 3 } },
      ['{"1": 1, "3": 3}'] = { [1] = 1, [3] = 3 },
    } do
      assert.are.equal(text, json.encode(value))
    end
  end)

  it("says what it cannot write", function()
    local loop = {}
    loop[1] = { loop }
    for part, value in pairs {
      ["a function"] = print, ["a userdata"] = io.stdout, ["contains itself"] = loop,
      ["not UTF-8"] = "\255", ["cannot be a key"] = { [{}] = 1 },
      ["both"] = { 1, ["1"] = 2, x = 3 },
      ["a cdata"] = ffi.new("int[2]"), ["a thread"] = coroutine.create(print),
    } do
      local text, problem = json.encode(value)
      assert.is_nil(text)
      assert.is_truthy(problem:find(part, 1, true), problem)
    end
    for _, bytes in ipairs { "\128", "\192\128", "\224\128\128", "\240\128\128\128",
      "\244\144\128\128", "\195", "\226\130", "\255", "a\195b" } do
      assert.is_nil((json.encode(bytes)))
    end
  end)

  it("tells where a text is no JSON", function()
    for text, problem in pairs {
      [""] = "Expecting value: line 1 column 1 (char 0)",
      ["[1,\n 2,]"] = "Expecting value: line 2 column 4 (char 7)",
      ["{x"] = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
      ['{"a" 1}'] = "Expecting ':' delimiter: line 1 column 6 (char 5)",
      ["[1 2]"] = "Expecting ',' delimiter: line 1 column 4 (char 3)",
      ["1 2"] = "Extra data: line 1 column 3 (char 2)",
      ['"abc'] = "Unterminated string starting at: line 1 column 1 (char 0)",
      ['"a\nb"'] = "Invalid control character at: line 1 column 3 (char 2)",
      ['"\\x"'] = "Invalid \\escape: line 1 column 2 (char 1)",
      ['"\\u12g4"'] = "Invalid \\uXXXX escape: line 1 column 2 (char 1)",
      ["01"] = "Extra data: line 1 column 2 (char 1)",
      [".5"] = "Expecting value: line 1 column 1 (char 0)",
      ["nul"] = "Expecting value: line 1 column 1 (char 0)",
    } do
      local value, why = json.decode(text)
      assert.is_nil(value)
      assert.are.equal(problem, why)
    end
    local value, why = json.decode(("["):rep(100000))
    assert.is_nil(value)
    assert.is_truthy(why:find("Nested too deeply", 1, true), why)
  end)

  it("reads what others write", function()
    assert.are.same({ a = { 1, 2.5, -3e2 }, b = json.null, c = true, d = "é/😀" },
      json.decode('\t{"a":[1,2.5,-3E+2],"b":null ,"c":true,"d":"\\u00e9\\/\\uD83D\\uDE00"}\r\n'))
    assert.are.equal("\127", json.decode('"\127"'))
    assert.are.equal(math.huge, json.decode("Infinity"))
    assert.are.equal(json.null, require("cjson").null)
  end)

  it("keeps order, empty lists and the digits of numbers", function()
    for _, text in ipairs {
      '{"z": 1, "a": {"y": [], "b": {}}}', "[]", "{}", '["\\ud800"]',
    } do
      assert.are.equal(text, json.encode((json.decode(text))))
    end
    for _, text in ipairs { '{"n": 12345678901234567890, "f": 1.10, "e": 1E5}', "0.30" } do
      assert.are.equal(text, json.encode((json.decode(text, true))))
    end
    local object = json.decode('{"b": 1, "a": 2, "b": 3}')
    object.c, object.a = 4, nil
    assert.are.equal('{"b": 3, "c": 4}', json.encode(object))
  end)

  it("comes back as it was, whatever it is made of", function()
    math.randomseed(20211121)
    local function text()
      local bytes = {}
      for i = 1, math.random(0, 6) do
        bytes[i] = ({ "a", '"', "\\", "\n", "\1", "\127", "é", "€", "😀", "/" })[math.random(10)]
      end
      return table.concat(bytes)
    end
    local function value(depth)
      local kind = math.random(depth < 4 and 7 or 5)
      if kind == 1 then return text() end
      if kind == 2 then return math.random(-1000, 1000) end
      if kind == 3 then return math.random() * 10 ^ math.random(-300, 300) end
      if kind == 4 then return math.random(2) == 1 end
      if kind == 5 then return json.null end
      local out = {}
      for i = 1, math.random(0, 4) do out[kind == 6 and i or text()] = value(depth + 1) end
      return kind == 6 and json.list(out) or out
    end
    for _ = 1, 500 do
      local it = value(1)
      local written = assert(json.encode(it))
      local back, problem = json.decode(written)
      assert.is_nil(problem)
      assert.are.same(it, back)
      assert.are.equal(written, json.encode(back))
    end
  end)

  it("tells objects from lists, and refuses to mark what is no table", function()
    assert.is_true(json.is_object {})
    assert.is_true(json.is_object(json.decode("{}")))
    for _, other in ipairs { json.list {}, { 1 }, 5, "x", json.null, json.decode("5", true) } do
      assert.is_false(json.is_object(other))
    end
    assert.is_false(pcall(json.list, 5))
    assert.is_false(pcall(json.order, {}, 5))
    assert.is_false(pcall(json.decode, nil))
  end)

  -- In a process of its own: what a tree of them would take stays with a process.
  it("makes no tree of a small text that would be a huge one", function()
    local support = require "support"
    for _, part in ipairs { "{},", "[],", '"",', "0," } do
      local out = support.sh(([[python3 -c '
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print("measured", code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)' \
        '%s' exec /dev/stdin <<'END'
local part = '%s'
local text = "[" .. part:rep(math.floor(15 * 2 ^ 20 / #part)) .. "0]"
local value, problem = require "ckpt".json.decode(text)
print(value, problem)
END]]):format(support.runner, part))
      local code, mib = out:match "measured (%d+) (%d+)"
      assert.is_truthy(out:find("more values than such a document may have", 1, true), out)
      assert.are.equal("0", code, out)
      if not support.sanitized then assert.is_true(tonumber(mib) < 120, out) end
    end
  end)
end)
