-- The annotations of lua/ckpt and of what policies see: a checker holds policies to them, and they
-- have what there is.

local library = require "policy.rules"
local support = require "support"

local server, code = support.sh "spec/types/emmylua.sh path"
server = code == 0 and server:match "%S+"

describe("make check-types", function()
  local dir
  support.with_directory(function(made) dir = made end)

  local function check(text)
    if not server then pending "EmmyLua's server is not there: spec/types/emmylua.sh install" end
    if text then support.write(dir .. "/mine.lua", text) end
    return support.sh(("python3 spec/types/check.py '%s' %s"):format(server,
      text and dir .. "/mine.lua" or ""))
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
      assert.is_truthy(text:find("mine.lua:" .. found, 1, true), found .. "\n" .. text)
    end
    assert.equal(6, #support.lines(text))
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
