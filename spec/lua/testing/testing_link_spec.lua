-- ckpt.core.policy: the process in which policies run, for ckpt.testing.

local json = require "cjson"
local support = require "support"
require "ckpt"
local core = require "ckpt.core"

local LOAD = [[{"op":"load","id":"a","chain":[{"name":"p","text":"return { api = 1 }"}]}]]
local ASK = [[{"op":"ask","id":"a","hook":"sync","event":{},"memory":{}}]]

describe("the link to the policies' process", function()
  local link

  before_each(function() link = assert(core.policy.open()) end)
  after_each(function() link:close() end)

  local function kind(request)
    local text, why = link:call(request)
    local answer = json.decode(text or error(why))
    return answer.ok and "ok" or answer.kind
  end

  -- The numbers of the processes that this one has begun.
  local function helpers()
    local list, me = {}, support.sh "ps -o ppid= -p $$":match "%d+"
    for id in support.sh("pgrep -P " .. me .. " ckpt-policy"):gmatch "%d+" do
      list[#list + 1] = id
    end
    return list
  end

  it("answers each request with one answer", function()
    assert.equal("unknown", kind(ASK))
    assert.equal("ok", kind(LOAD))
    assert.equal("ok", kind(ASK))
    assert.equal("error", kind "no JSON")
    assert.equal("error", kind "")
    assert.equal("error", kind '{"op":"load","id":"a\0","chain":[]}')
    assert.equal("ok", kind(ASK))
  end)

  it("has a new process after one has died, which knows nothing", function()
    local before = #helpers()
    assert.equal("ok", kind(LOAD))
    support.sh(("kill -9 %s; for i in $(seq 100); do " -- it is gone, and ours to bury
      .. "ps -o stat= -p %s | grep -q Z && break; sleep 0.05; done")
      :gsub("%%s", helpers()[before + 1]))
    assert.equal("unknown", kind(ASK))
    assert.equal("ok", kind(LOAD))
  end)

  it("refuses what is no request, and what comes when it is closed", function()
    for _, wrong in ipairs { {}, 7, true } do
      assert.error_matches(function() link:call(wrong) end, "string expected")
    end
    assert.error_matches(function() link:call() end, "string expected")
    for _, wrong in ipairs { 7, { 7 }, { { name = {} } } } do
      assert.has_error(function() link:call(ASK, wrong) end)
    end
    local text, why, name = link:call(("x"):rep(65 * 2 ^ 20))
    assert.is_nil(text)
    assert.is_truthy(why:find "too long")
    assert.equal("ELIMIT", name)
    assert.error_matches(function() link.call(io.stdout, LOAD) end, "ckpt.policies expected")
    link:close()
    link:close()
    assert.error_matches(function() link:call(LOAD) end, "this link is closed")
  end)

  it("ends its process when nobody holds it any more", function()
    local before = #helpers()
    do
      local other = assert(core.policy.open())
      assert(other:call(LOAD))
      assert.equal(before + 1, #helpers())
    end
    collectgarbage()
    collectgarbage()
    assert.equal(before, #helpers())
  end)
end)
