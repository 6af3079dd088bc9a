-- The annotations of lua/ckpt and of what policies see: a checker holds policies to them, and they
-- have what there is.

local library = require "policy.rules"
local support = require "support"

local server, code = support.sh "spec/types/emmylua.sh path"
server = code == 0 and server:match "%S+"

describe("make check-types", function()
  local dir
  support.with_directory(function(made) dir = made end)

  -- Of what comes with us, or of these policies: 1.lua and so on.
  local function check(...)
    if not server then pending "EmmyLua's server is not there: spec/types/emmylua.sh install" end
    local files = ""
    for i, text in ipairs { ... } do
      support.write(("%s/%d.lua"):format(dir, i), text)
      files = ("%s '%s/%d.lua'"):format(files, dir, i)
    end
    return support.sh(("python3 spec/types/check.py '%s' %s"):format(server, files))
  end

  it("finds nothing in what comes with us, nor in the guide", function()
    local text, ended = check()
    assert.equal(0, ended, text)
    assert.is_truthy(tonumber(text:match "types: (%d+) policies") > 20)
  end)

  it("is red where a field, a rule or an argument is mistyped, with its line", function()
    local text, ended = check [[
return {
  api = 1,
  sync = function(e)
    return e.chekpoint.step == 1 or e.queue.wating > 3
  end,
  keep = keep.last("x"),
  keep_local = keep.lst(2),
  would_keep = keep.best("loss", 2, "least"),
  on_error = function(e) return wen and e.error.code end,
}
]]
    assert.equal(1, ended)
    for _, found in ipairs {
      "4: Undefined field `chekpoint`", "4: Undefined field `wating`", "6: expected `integer`",
      "7: Undefined field `lst`", "8: expected `ckpt.policy.Best`",
      "9: undefined global variable: wen",
    } do
      assert.is_truthy(text:find("1.lua:" .. found, 1, true), found .. "\n" .. text)
    end
    assert.equal(6, #support.lines(text))
  end)

  it("looks at a policy that is a local first, as at one that is returned at once", function()
    local policy = [[
local policy = {
  api = 1,
  sync = function(e) return e.reslt.loss < 1 end,
}

function policy.ready(e) return e.chekpoint end

return policy
]]
    local text, ended = check(policy, "---@type ckpt.Policy\n" .. policy)
    assert.equal(1, ended, text)
    for _, found in ipairs {
      "1.lua:3: Undefined field `reslt`", "1.lua:6: Undefined field `chekpoint`",
      "2.lua:4: Undefined field `reslt`", "2.lua:7: Undefined field `chekpoint`",
    } do
      assert.is_truthy(text:find(found, 1, true), text)
    end
    assert.equal(4, #support.lines(text))
  end)

  it("passes over a byte order mark", function()
    local text, ended = check("\239\187\191return { api = 1 }\n")
    assert.equal(0, ended, text)
  end)

  it("looks at a policy whose return is indented", function()
    local text, ended = check([[
  local least = 2
  return {
    api = 1,
    sync = function(e)
      return e.reslt.loss < least
    end,
  }
]], "  local policy = { api = 1, ready = function(e) return e.chekpoint end }\n  return policy\n")
    assert.equal(1, ended, text)
    for _, found in ipairs { "1.lua:5: Undefined field `reslt`", "2.lua:1: Undefined field `ch" } do
      assert.is_truthy(text:find(found, 1, true), text)
    end
    assert.equal(2, #support.lines(text), text)
  end)

  it("takes a file for a whole policy, also one that returns nothing", function()
    local text, ended = check("local policy = { api = 1 }\n", "keep = keep.last(3)\n", "")
    assert.equal(1, ended, text)
    for n = 1, 3 do
      assert.is_truthy(text:find(n .. ".lua:1: [^\n]*It returns nothing"), text)
    end
    assert.equal(3, #support.lines(text), text)
  end)

  it("is red where it cannot see what a policy returns", function()
    local text, ended = check("local meta = {}\nreturn setmetatable({ api = 1 }, meta)\n",
      "local made = make()\nreturn made\n", "local policy = { api = 1 }\nreturn\n  policy\n")
    assert.equal(1, ended, text)
    for _, at in ipairs { "1.lua:2: ", "2.lua:2: ", "3.lua:3: " } do
      assert.is_truthy(text:find(at .. "[^\n]*its types are not looked at"), text)
    end
    assert.equal(3, #support.lines(text))
  end)

  it("counts as one counts", function()
    local text, ended = check "return { api = 1 }\n"
    assert.equal(0, ended, text)
    assert.equal("types: 1 policy and the library's annotations fit together\n", text)
  end)

  -- What a server does that is not well, in Python: `answer` is called with each request.
  local function check_by(server_of, environment)
    support.write(dir .. "/server", "#!/usr/bin/env python3\n" .. [[
import json, sys, time
print("I am not well", file=sys.stderr, flush=True)
def read():
    size = int(sys.stdin.buffer.readline().split(b":")[1])
    sys.stdin.buffer.readline()
    return json.loads(sys.stdin.buffer.read(size))
def say(text):
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text.encode()))
    sys.stdout.flush()
]] .. server_of)
    support.write(dir .. "/mine.lua", "return { api = 1 }\n")
    return support.sh(("chmod +x '%s/server'; %s timeout 60 python3 spec/types/check.py "
      .. "'%s/server' '%s/mine.lua'"):format(dir, environment or "", dir, dir))
  end

  it("waits for a server that hangs for a while, and no longer", function()
    local text, ended = check_by("read(); time.sleep(1000)", "TYPES_PATIENCE=1")
    assert.equal(1, ended)
    assert.equal("check-types: the language server has not answered initialize for 1 s; "
      .. "it said last: I am not well\n", text)
  end)

  it("says why the server does not do what it is asked", function()
    local error_answer = [[
error = {"code": -32603, "message": "too much"}
say(json.dumps({"id": read()["id"], "error": error}))]]
    for server_of, said in pairs {
      [error_answer] = "refuses initialize: too much",
      ["read()"] = "has ended before it answered initialize; it said last: I am not well",
      ["read(); say('{')"] = "says to initialize what cannot be read: ",
    } do
      local text, ended = check_by(server_of)
      assert.equal(1, ended, text)
      assert.equal("check-types: the language server " .. said, text:sub(1, 33 + #said))
      assert.equal(1, #support.lines(text), text)
    end
    local text, ended = support.sh("python3 spec/types/check.py " .. dir .. "/none")
    assert.equal(1, ended)
    assert.is_truthy(text:find("check-types: the language server does not start: ", 1, true), text)
  end)

  it("is skipped without the checker, or red where it is needed", function()
    local make = "unset MAKEFLAGS MAKELEVEL; XDG_CACHE_HOME=" .. dir
      .. " make -s SETUP=no check-types"
    local text, ended = support.sh(make)
    assert.equal(0, ended, text)
    assert.is_truthy(text:find("types: skipped\n", 1, true), text)
    text, ended = support.sh(make .. " NEED_TYPES=yes")
    assert.is_true(ended ~= 0, text)
    assert.is_truthy(text:find("types: nothing was checked", 1, true), text)
  end)
end)

describe("the types of a policy", function()
  local page = support.read "lua/ckpt/types_policy.lua"

  -- The fields of a class, sorted.
  local function fields(class)
    local names = {}
    local begins = "@class [^\n]*" .. class .. "%f[^%w.][^\n]*\n(.-)\n[^%-]"
    local body = assert((page .. "\n"):match(begins), class)
    for name in ("\n" .. body):gmatch "\n%-%-%-@field ([%w_]+)" do names[#names + 1] = name end
    table.sort(names)
    return names
  end

  local function sorted(t)
    local names = {}
    for name in pairs(t) do names[#names + 1] = name end
    table.sort(names)
    return names
  end

  it("have each key and each rule, and no other", function()
    local M = library.one "return { api = 1 }"
    assert.same(sorted(M.keys), fields "ckpt%.Policy")
    for word, class in pairs { when = "When", keep = "Keep", done = "Done", from = "From",
      survives = "Survives" } do
      assert.same(sorted(M[word]), fields("ckpt%.policy%." .. class), word)
    end
  end)

  it("have what functions are handed, as `policy check` knows it", function()
    local known = support.read "lua/policy/library/watch.lua"
    for of, class in pairs { e = "Event", ['%["e%.checkpoint"%]'] = "Unit",
      ['%["e%.localtime"%]'] = "Clock", ['%["a checkpoint of the list"%]'] = "Checkpoint" } do
      local names = {}
      for name in known:match("\n  " .. of .. " = set_of [%[\"]+(.-)[%]\"]+,"):gmatch "%S+" do
        if name ~= "list" then names[#names + 1] = name end -- that is no field: it is an argument
      end
      table.sort(names)
      assert.same(names, fields("ckpt%.policy%." .. class), of)
    end
  end)
end)
