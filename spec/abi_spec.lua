-- engine/ckpt.h is an ABI: LuaJIT's FFI takes it as it stands, sees the same structs as a C
-- compiler, and finds in libckpt.so and in libckpt.a what the header promises, and nothing else.

local ffi = require("ffi")

local support = require "support"

local BUILD, SANITIZED = support.build, support.sanitized
local LIBRARY = BUILD .. "/libckpt.so"

-- A command that must succeed.
local function sh(command)
  local text, code = support.sh(command)
  assert(code == 0, command .. ": " .. text)
  return text
end

local function header()
  local text = support.read("engine/ckpt.h"):gsub("/%*.-%*/", " ")
  text = text:gsub('#ifdef __cplusplus\n.-#endif\n', "")
  return (text:gsub("\n#[^\n]*", "\n"):gsub("^#[^\n]*", ""))
end

-- { name = { "field", ... } } of all structs with a body.
local function structs(text)
  local found = {}
  for body, name in text:gmatch("typedef struct [%w_]+ (%b{}) ([%w_]+);") do
    local fields = {}
    for member in body:sub(2, -2):gmatch("([^;]+);") do
      for part in (member .. ","):gmatch("([^,]+),") do
        fields[#fields + 1] = part:match("([%w_]+)%s*$")
      end
    end
    found[name] = fields
  end
  return found
end

local function functions(text)
  local found = {}
  text = text:gsub("typedef[^;{]-;", ""):gsub("%b{}", "")
  for name in text:gmatch("(ckpt_[%w_]+)%(") do found[#found + 1] = name end
  table.sort(found)
  return found
end

-- What `nm` tells of a library with these options, without what a sanitizer adds.
local function defined(options, library)
  local found = {}
  for name in sh(("nm --defined-only %s '%s'"):format(options, library)):gmatch("%x+ %a (%S+)") do
    if not name:find("^__odr_asan") then found[#found + 1] = name end
  end
  table.sort(found)
  return found
end

-- What a C compiler says: one line "struct size", and one "struct.field offset" for each field.
local function measured(all)
  local lines = {}
  for name, fields in pairs(all) do
    lines[#lines + 1] = ('P("%s", sizeof(%s));'):format(name, name)
    for _, field in ipairs(fields) do
      lines[#lines + 1] = ('P("%s.%s", offsetof(%s, %s));'):format(name, field, name, field)
    end
  end
  local dir = sh("mktemp -d"):match("%S+")
  local f = assert(io.open(dir .. "/sizes.c", "w"))
  f:write('#include "ckpt.h"\n#include <stddef.h>\n#include <stdio.h>\n',
    '#define P(name, n) printf("%s %zu\\n", name, (size_t)(n))\n',
    "int main(void) {\n", table.concat(lines, "\n"), "\nreturn 0;\n}\n")
  f:close()
  local text = sh(("cc -std=c11 -Iengine -o '%s/sizes' '%s/sizes.c' && '%s/sizes'")
    :format(dir, dir, dir))
  os.execute(("rm -rf '%s'"):format(dir))
  local found = {}
  for key, n in text:gmatch("(%S+) (%d+)") do found[key] = tonumber(n) end
  return found
end

describe("ckpt.h", function()
  local text = header()
  local all = structs(text)

  setup(function() ffi.cdef(text) end)

  it("has no macro and no include but of two standard headers", function()
    local f = assert(io.open("engine/ckpt.h"))
    local raw = f:read("*a")
    f:close()
    local includes = {}
    for name in raw:gmatch("#include ([^\n]+)") do includes[#includes + 1] = name end
    assert.are.same({ "<stddef.h>", "<stdint.h>" }, includes)
    local macros = {}
    for name in raw:gmatch("#define ([%w_]+)") do macros[#macros + 1] = name end
    assert.are.same({ "CKPT_H" }, macros)
  end)

  it("gives each struct the size and the offsets that a C compiler gives it", function()
    local count = 0
    local c = measured(all)
    for name, fields in pairs(all) do
      assert.are.equal(c[name], ffi.sizeof(name), name)
      for _, field in ipairs(fields) do
        count = count + 1
        local key = name .. "." .. field
        assert.are.equal(c[key], ffi.offsetof(name, field), key)
      end
    end
    assert.is_true(count > 80, count .. " fields")
  end)

  it("begins each struct that crosses with its size", function()
    local names = 0
    for name, fields in pairs(all) do
      names = names + 1
      assert.are.equal("size", fields[1], name)
    end
    assert.is_true(names >= 12, names .. " structs")
  end)

  it("is C++, too", function()
    sh("echo '#include \"ckpt.h\"' | clang++ -x c++ -std=c++11 -Wall -Werror -fsyntax-only " ..
      "-Iengine -")
  end)

  it("has its status codes in the order of their numbers, without a gap", function()
    local last = 1
    for n in text:gmatch("CKPT_E[%u_]+ = (%-%d+)") do
      if last == 1 then last = 0 end
      assert.are.equal(last - 1, tonumber(n))
      last = last - 1
    end
    assert.is_true(last <= -21)
  end)
end)

describe("libckpt.so", function()
  local promised = functions(header())

  it("exports what the header declares, and nothing else", function()
    assert.is_true(#promised > 20)
    assert.are.same(promised, defined("-D", LIBRARY))
  end)

  it("resolves through the FFI", function()
    if SANITIZED then return pending("a sanitized library cannot be loaded by LuaJIT") end
    local lib = ffi.load(LIBRARY)
    for _, name in ipairs(promised) do
      assert.is_true(lib[name] ~= nil, name)
    end
    assert.are.equal("0.1.0", ffi.string(lib.ckpt_version()))
    assert.are.equal("NOENT", ffi.string(lib.ckpt_status_name(-4)))
    local engine = ffi.new("ckpt *[1]")
    local options = ffi.new("ckpt_options", { size = ffi.sizeof("ckpt_options") })
    assert.are.equal(0, lib.ckpt_open(engine, options))
    assert.are.equal(0, lib.ckpt_dispatch(engine[0], 0))
    lib.ckpt_close(engine[0])
  end)

  it("links no Lua", function()
    local needed = sh("readelf -d " .. LIBRARY):lower()
    assert.is_truthy(needed:find("libc.so", 1, true))
    assert.is_nil(needed:find("lua", 1, true))
    assert.is_nil(sh("nm -D --undefined-only " .. LIBRARY):find("lua", 1, true))
  end)

  it("has a name of its own for the loader, with the number of its ABI", function()
    assert.is_truthy(sh("readelf -d " .. LIBRARY):find("soname: %[libckpt%.so%.0%]"))
  end)
end)

describe("libckpt.a", function()
  local archive = BUILD .. "/libckpt.a"

  it("defines what the header declares for others, and nothing else", function()
    assert.are.same(functions(header()), defined("-g", archive))
  end)

  it("goes with a program that has functions of all the names that are ours within", function()
    if SANITIZED then return pending("the plain build runs this one") end
    local lines, count = {}, 0
    for _, name in ipairs(defined("-g", BUILD .. "/engine.a")) do
      if not name:find("^ckpt_") then
        count = count + 1
        lines[#lines + 1] = ("void %s(void) { abort(); }"):format(name)
      end
    end
    assert.is_true(count > 500, count .. " names")
    local dir = support.directory()
    support.write(dir .. "/host.c", [[
#include <stdio.h>
#include <stdlib.h>
#include "ckpt.h"
]] .. table.concat(lines, "\n") .. [[

static int show(void *ctx, const ckpt_item *item) {
  (void)ctx;
  puts(item->name);
  return 0;
}
int main(int argc, char **argv) {
  ckpt *engine;
  int rc = ckpt_open(&engine, NULL);
  if (rc == 0 && argc == 2) rc = ckpt_list(engine, argv[1], show, NULL);
  if (rc < 0) puts(ckpt_error(engine));
  ckpt_close(engine);
  return rc < 0;
}
]])
    sh(("cc -fno-builtin -Iengine -o '%s/host' '%s/host.c' '%s' $(pkg-config --libs jansson "
      .. "libxxhash libcrypto libcurl expat) -lpthread"):format(dir, dir, archive))
    assert.are.equal("last.pt\nlast.pt\ncheckpoint-2\n",
      sh(("'%s/host' 'file://%s/spec/data/format0/store'"):format(dir, support.root)))
    os.execute(("rm -rf '%s'"):format(dir))
  end)
end)
