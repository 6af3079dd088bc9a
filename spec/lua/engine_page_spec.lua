-- docs/library/engine.md against the engine's own calls: each name that is there is on the page and
-- in the annotations, and the other way round. The programs on it are run by pages_spec.

local ckpt = require "ckpt"
local support = require "support"

describe("the page of the engine", function()
  local page = support.read "docs/library/engine.md"
  local init = support.read "lua/ckpt/init.lua"
  local c = support.read "engine/lua/ckpt/lua_ckpt.c" .. support.read "engine/lua/ckpt/lua_engine.c"

  -- The names in backquotes of the first column of a table; `pattern` is what each begins with.
  local function on_page(title, pattern)
    local body = page:match("\n| " .. title .. " | what[^\n]*|\n|[-|]+|\n(.-)\n\n")
      or page:match("\n| " .. title .. " | what[^\n]*|\n|[-|]+|\n(.-)\n$")
    assert(body, "no table with the head: " .. title)
    local names = {}
    for line in (body .. "\n"):gmatch("([^\n]*)\n") do
      for name in line:match("^| (.-) |"):gmatch("`" .. (pattern or "") .. "([%w_]+)") do
        names[name] = true
      end
    end
    return names
  end

  -- The quoted names in the first block behind such a text in the C sources.
  local function in_c(begin)
    local _, at = c:find(begin, 1, true)
    local body, names = c:match("^.-(%b{})", assert(at, begin)), {}
    for name in body:gmatch '"([%w_]+)"' do names[name] = true end
    return names
  end

  -- What a function sets in the table that it makes.
  local function set_in_c(begin, name)
    local at = assert(c:find(begin .. "(%b())%s*{", 1), begin)
    local body, names = c:match("^.-%b()%s*(%b{})", at), {}
    for _, pattern in ipairs { 'l_ckpt_set_%a+%(L, "([%w_]+)"', 'setfield%(L, %-%d, "([%w_]+)"' } do
      for member in body:gmatch(pattern) do names[member] = true end
    end
    assert(next(names), name)
    return names
  end

  local function fields_of(class)
    local body = init:match("\n%-%-%-@class " .. class .. "%f[%s:][^\n]*\n(.-)\n[^-]")
    local names = {}
    assert(body, class)
    for name in ("\n" .. body):gmatch("\n%-%-%-@field ([%w_]+)") do names[name] = true end
    return names
  end

  local function union(...)
    local all = {}
    for _, names in ipairs { ... } do
      for name in pairs(names) do all[name] = true end
    end
    return all
  end

  it("has each function, and they are there", function()
    local listed = on_page("function", "ckpt%.")
    assert.same(union(in_c "luaL_Reg functions[]", { open = true }), listed)
    local fields = fields_of "ckpt"
    for name in pairs(listed) do
      assert.equal("function", type(ckpt[name]), name)
      assert.is_true(fields[name], name)
    end
  end)

  it("has the methods of engines and runs", function()
    local methods = {}
    for head, body in page:gmatch("\n| (method) | what it does |\n|[-|]+|\n(.-)\n\n") do
      local names = {}
      for name in ("\n" .. body):gmatch("\n| `([%w_]+)") do names[name] = true end
      methods[#methods + 1] = head and names
    end
    for i, kind in ipairs { "engine", "run" } do
      local there = in_c("luaL_Reg " .. kind .. "[]")
      assert.same(there, methods[i])
      assert.same(there, fields_of(kind == "engine" and "ckpt.Engine" or "ckpt.Run"))
    end
  end)

  it("has each option, and no other is taken", function()
    local engine = assert(ckpt.open())
    finally(function() engine:close() end)
    local run = assert(engine:run { dir = support.directory(), to = "mem://page" })
    for name, call in pairs {
      restore = ckpt.restore, remove = ckpt.remove, why = ckpt.why, open = ckpt.open,
      prepare = function(options) return run:prepare(options) end,
    } do
      local listed = on_page("option of `" .. name .. "`")
      local source = name == "prepare" and "l_prepare" or "l_" .. name
      assert.same(in_c(("static int %s(lua_State *L) {\n  static const char *const keys[]")
        :format(source)), listed)
      for option in pairs(listed) do
        local fine, why = pcall(call, { [option] = {} })
        assert.is_false(fine, name .. ": " .. option)
        assert.is_nil(why:find("unknown option", 1, true), option)
      end
      local _, why = pcall(call, { nonsense = 1 })
      assert.is_truthy(why:find("unknown option nonsense", 1, true), why)
    end
    os.execute(("rm -rf '%s' '%s.ckpt'"):format(run:place().dir, run:place().dir))
  end)

  it("has each option of a reload, and no other is taken", function()
    local listed = on_page "option of `reload`"
    local keys = "static int l_reload(lua_State *L) {\n  static const char *const keys[]"
    assert.same(in_c(keys), listed)
    assert.same(fields_of "ckpt.ReloadOptions", listed)
    assert.same(fields_of "ckpt.Reloaded", on_page "member of `reloaded`")
  end)

  it("has each option of a run, here or in the table of the command's options", function()
    local elsewhere = {}
    local rows = support.read("docs/commands.md")
      :match("\n| option | Lua | what |\n|[-|]+|\n(.-)\n\n")
    for name in rows:gmatch("\n?| `[^|]-` | `([%w_]+)` |") do elsewhere[name] = true end
    for name in rows:gmatch("\n?| `[^|]-\\|[^|]-` | `([%w_]+)` |") do elsewhere[name] = true end
    assert.same(fields_of "ckpt.RunOptions", union(elsewhere, on_page "option of `run`"))
  end)

  it("has the members of what is returned, and of an event", function()
    local item = set_in_c("static void l_push_item", "item")
    assert.same(item, on_page "member")
    assert.same(item, fields_of "ckpt.Item")
    for class, source in pairs {
      Prepared = { "static int l_prepare", "result of `prepare`" },
      RunStatus = { "static int l_status", "member of `status`" },
      Evict = { "static int l_evict", "member of `evict`" },
    } do
      local there = set_in_c(source[1], class)
      assert.same(there, on_page(source[2]))
      assert.same(there, fields_of("ckpt." .. class))
    end
    local event = in_c "static int l_notify(lua_State *L) {\n  static const char *const keys[]"
    assert.same(event, on_page "member of an event")
    assert.same(event, fields_of "ckpt.Event")
    for name in pairs(in_c "*const kinds[]") do
      assert.is_truthy(page:find('`"' .. name .. '"`', 1, true), name)
    end
    -- These are named in sentences.
    for class, source in pairs {
      Verified = "static void l_push_verified", Finding = "void l_ckpt_push_finding",
      Place = "static int l_place",
    } do
      local there = set_in_c(source, class)
      for name in pairs(there) do
        assert.is_truthy(page:find("`" .. name .. "`", 1, true), class .. ": " .. name)
      end
      if class ~= "Place" then assert.same(there, fields_of("ckpt." .. class)) end
    end
  end)

  it("has completions, and each kind of them", function()
    local there = set_in_c("static int l_next", "completion")
    local body = page:match("### A completion\n| member | what |\n|[-|]+|\n(.-)\n\n")
    local listed = {}
    for column in ("\n" .. body):gmatch("\n| (.-) |") do
      for name in column:gmatch("`([%w_]+)`") do listed[name] = true end
    end
    assert.same(there, listed)
    assert.same(there, fields_of "ckpt.Completion")
    assert.same(in_c "kind_name(uint32_t kind) {\n  static", on_page "kind")
  end)
end)
