-- An option of a run stands in one row: of engine/runner/cli/run_flags.c for the command line, of
-- engine/lua/ckpt/lua_engine.c for Lua. ckpt.h, annotations and docs/commands.md are held to them.

package.path = "./spec/?.lua;" .. package.path
local support = require "support"

local function each(text, pattern)
  local list = {}
  for a, b, c in text:gmatch(pattern) do list[#list + 1] = { a, b, c } end
  assert(#list > 10, pattern)
  return list
end

-- A member of ckpt_run_options as Lua calls it; a flag by its own name.
local function lua_name(member, bit)
  return member == "flags" and bit:match("CKPT_([%u_]+)"):lower() or (member:gsub("_s$", ""))
end

local header, rows, annotated, in_lua
local members = {}

setup(function()
  header = support.read("engine/ckpt.h"):match("typedef struct ckpt_run_options (%b{})")
  rows, annotated, in_lua = {}, {}, {}
  local source = support.read("engine/lua/ckpt/lua_engine.c"):match("run_options%[%] = (%b{})")
  for _, row in ipairs(each(source, "{\"([%w_]+)\", %u+, OF%(([%w_]+)%), ([%w_]+)}")) do
    in_lua[row[1]] = true
    assert.are.equal(row[1], lua_name(row[2], row[3]))
  end
  local class = support.read("lua/ckpt/init.lua"):match("@class ckpt%.RunOptions[^\n]*\n(.-)\n\n")
  for _, field in ipairs(each(class, "%-%-%-@field ([%w_]+)%??")) do annotated[field[1]] = true end
  local flags = support.read("engine/runner/cli/run_flags.c"):match("run_flags%[[%w_]*%] = (%b{})")
  for _, row in ipairs(each(flags, "\n    ({\"(.-)\",.-%.takers = [%w_| ]+})")) do
    local member, bit = row[1]:match("OF%(run%.([%w_]+)%)"), row[1]:match("%.bit = ([%w_]+)")
    rows[row[2]] = { member = member and lua_name(member, bit) }
  end
end)

describe("the options of a run", function()
  it("are in ckpt.h with what each means, and in Lua", function()
    local text, count = header:sub(2, -2):gsub("/%*.-%*/", "@"), 0
    for declared, comment in text:gmatch("([^;]+);%s*(@?)") do
      for member in declared:match("[%w_, ]+$"):gmatch("([%w_]+)%s*%f[,%z]") do
        count = count + 1
        if member ~= "size" then
          members[member] = true
          assert.are.equal("@", comment, member .. " has no comment in ckpt.h")
          assert.is_truthy(member == "flags" or in_lua[lua_name(member)],
            member .. " is not in Lua")
        end
      end
    end
    assert(count > 20)
  end)

  -- A member that nobody takes is an option that does nothing.
  it("are taken by the library, each", function()
    local source = support.read("engine/api/ckpt_run.c")
    for member in pairs(members) do
      assert.is_truthy(source:find("[>.]" .. member .. "%f[^%w_]"), member .. " is taken nowhere")
    end
  end)

  it("are annotated for editors, and no other is", function()
    assert.are.same(in_lua, annotated)
  end)

  it("are in Lua under the member's name, if the engine gets them from the command line", function()
    for name, row in pairs(rows) do
      assert.is_truthy(not row.member or in_lua[row.member], "--" .. name)
    end
  end)

  it("are in the table of docs/commands.md as the help has them", function()
    local help = support.sh("'" .. support.runner .. "' help run")
    local wanted = {}
    for _, line in ipairs(each(help, "\n  [-%w, ]+%-%-(%S+)( ?[^\n]-)  +([^\n]+)")) do
      local name, value, text = line[1], line[2]:match("^(.-) *$"), line[3]
      if rows[name] then
        local member = rows[name].member
        wanted[#wanted + 1] = ("| `--%s%s` | %s | %s |"):format(name, value:gsub("|", "\\|"),
          member and "`" .. member .. "`" or "-", (text:gsub("|", "\\|")))
      end
    end
    local page = support.read("docs/commands.md")
    local table_ = page:match("\n| option | Lua | what |\n|[-|]+|\n(.-)\n\n")
    assert.are.equal(table.concat(wanted, "\n"), table_)
  end)
end)
