--- The shipped policies in the sandbox itself: the library there runs behind its own bounds.
local json = require "cjson"
local library = require "policy.rules"
local support = require "support"

local function little_endian(n)
  local out = {}
  for i = 1, 4 do
    out[i] = string.char(n % 256)
    n = math.floor(n / 256)
  end
  return table.concat(out)
end

--- Sends requests to a helper, one after the other; returns its answers.
local function talk(requests)
  local dir, frames = support.directory(), {}
  for i, request in ipairs(requests) do
    local text = json.encode(request)
    frames[i] = little_endian(#text) .. text
  end
  support.write(dir .. "/in", table.concat(frames))
  local helper = support.build .. "/libexec/ckpt-policy"
  -- Through a pipe: the helper may write no file.
  local said = support.sh(("'%s' <'%s/in' | cat >'%s/out'"):format(helper, dir, dir))
  local answers, out, at = {}, support.read(dir .. "/out"), 1
  os.execute("rm -rf '" .. dir .. "'")
  while out and at + 3 <= #out do
    local a, b, c, d = out:byte(at, at + 3)
    local size = a + b * 256 + c * 65536 + d * 16777216
    answers[#answers + 1] = json.decode(out:sub(at + 4, at + 3 + size))
    at = at + 4 + size
  end
  assert.equal(#requests, #answers, said)
  return answers
end

local function load_request(name, text)
  local chain = { { name = name, text = text } }
  return { op = "load", id = name, chain = chain, settings = {} }
end

describe("in the sandbox", function()
  local names = {}
  for path in io.popen("ls policies/*.lua"):lines() do
    names[#names + 1] = path:match "([^/]+)%.lua$"
  end

  it("each shipped policy loads, and says what it says outside", function()
    local requests = {}
    for i, name in ipairs(names) do
      requests[i] = load_request(name, support.read("policies/" .. name .. ".lua"))
    end
    assert.is_true(#names >= 5)
    for i, answer in ipairs(talk(requests)) do
      assert.is_true(answer.ok, answer.text)
      local _, data = library.shipped(names[i])
      assert.same(data.unit, answer.unit)
      assert.same(data.exclude, answer.exclude)
      assert.same(data.complete, answer.complete)
      assert.same(data.markers, answer.markers)
      assert.same(data.has, answer.has)
    end
  end)

  it("each policy of the guide loads", function()
    local requests = {}
    for block in support.read("docs/policies.md"):gmatch "\n```lua\n(.-)\n```" do
      local whole = block:find "^return" or block:find "\nreturn"
      local text = whole and block or "return { api = 1,\n" .. block .. "\n}"
      requests[#requests + 1] = load_request("guide" .. #requests, text)
    end
    for _, answer in ipairs(talk(requests)) do assert.is_true(answer.ok, answer.text) end
  end)

  it("ten thousand checkpoints are judged within the bounds", function()
    -- Sanitizers use up the time that the bounds give.
    local count = (os.getenv "SANITIZE" or "") == "" and 10000 or 2000
    local list = library.items(count, function(item, i)
      item.metrics.loss = (i * 7919) % 10007
    end)
    local rules = [[return { api = 1, keep = any {
      keep.last(3), keep.best("loss", 2, "min"), keep.daily(7), keep.every_steps(100000) } }]]
    local event = { event = "keep", now = 2e9, list = list }
    local answers = talk {
      load_request("mine", rules),
      { op = "ask", id = "mine", hook = "keep", event = event },
    }
    assert.is_true(answers[2].ok, answers[2].text)
    assert.equal(count, #answers[2].answer)
    assert.is_true(answers[2].answer[count].keep)
  end)

  it("a long file with many comments and brackets is looked at within the bounds", function()
    local text = ("-- keep.last(3) or x [[ ' \" \n"):rep(4000)
      .. ("local a = 1 or (2) or ('x')\n"):rep(100)
      .. "return { api = 1, keep = keep.last(2) or keep.all() }"
    local answer = talk({ load_request("mine", text) })[1]
    assert.equal("syntax", answer.kind, answer.text)
    assert.truthy(answer.text:find("mine.lua:4101:", 1, true), answer.text)
  end)
end)
