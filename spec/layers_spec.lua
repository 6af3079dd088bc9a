-- Guards spec/check_layers.lua: a checker that finds nothing must be one that could have.

describe("the layer checker", function()
  local dir

  before_each(function()
    dir = io.popen("mktemp -d"):read("*l")
    local layers = "base prims store core plan job/save job/keep runner lua"
    os.execute("mkdir -p " .. layers:gsub("%S+", dir .. "/%0"))
  end)
  after_each(function() os.execute("rm -rf " .. dir) end)

  local function file(name, text)
    local f = assert(io.open(dir .. "/" .. name, "w"))
    f:write(text)
    f:close()
  end

  local function check()
    local pipe = io.popen("luajit spec/check_layers.lua " .. dir .. " 2>&1; echo status $?")
    local text = pipe:read("*a"):gsub(dir:gsub("%p", "%%%0") .. "/", "")
    pipe:close()
    local out, status = text:match("^(.*)status (%d+)\n$")
    return out, tonumber(status)
  end

  local rules = table.concat({
    "layer base # the lowest",
    "layer prims strangers",
    "layer store strangers xml.h",
    "layer core",
    "layer .",
    "layer lua only base/ ckpt.h",
    "layer runner only ckpt.h",
    "public ckpt.h",
    "foreign jansson.h base/json.h",
    "foreign openssl/* prims/hash.c",
    "calls rename open in base/io.c runner/",
    "system stdio.h sys/*",
  }, "\n")

  -- Rooms within a folder, a door, and a room that does nothing.
  local rooms = table.concat({
    (rules:gsub("layer %.\n", "layer plan\nlayer job/save\nlayer job/keep\n%0")),
    "door core job.h",
    "door job/save save.h save_many.h",
    "pure plan base/io.h store/",
  }, "\n")

  local function tree(files)
    file("LAYERS", rules)
    file("base/err.h", "#include <stdio.h>\n")
    file("prims/fs.h", "#include \"base/err.h\"\n")
    file("store/store.h", "")
    file("core/job.h", "")
    file("ckpt.h", "#include <stdio.h>\n")
    for name, text in pairs(files) do file(name, text) end
  end

  local function breaks(files, message)
    tree(files)
    local out, status = check()
    assert.equal(message .. "\n", out)
    assert.equal(1, status)
  end

  it("passes a good tree", function()
    tree {
      ["base/json.h"] = "#include <jansson.h>\n#include \"err.h\"\n",
      ["prims/fs.c"] = "#include \"fs.h\"\n#include <sys/stat.h>\n",
      ["prims/hash.c"] = "#include <openssl/evp.h>\n",
      ["prims/fs_tree.c"] = "#include \"fs.h\"\n",
      ["store/xml.h"] = "",
      ["store/store_s3.c"] = "#include \"xml.h\"\n",
      ["store/store_mem.c"] = "#include \"store.h\"\n#include \"prims/fs.h\"\n",
      ["ckpt.c"] = "#include \"ckpt.h\"\n#include \"core/job.h\"\n",
      ["runner/main.c"] = "#include \"ckpt.h\"\n#include \"report.h\"\n",
      ["runner/report.h"] = "",
      ["lua/host.c"] = "#include \"base/err.h\"\n#include \"ckpt.h\"\n",
      ["base/io.c"] = "int f(void) { return rename(a, b); }\n",
      ["core/x.c"] = "io->open(x); v.open(y); my_open(z); int (*open)(int);\n" ..
        "/* open( */ s = \"open(\"; // open(\n",
    }
    local out, status = check()
    assert.equal("", out)
    assert.equal(0, status)
  end)

  it("names file and line of an include from a layer below", function()
    breaks({ ["prims/fs.c"] = "\n#include \"fs.h\"\n# include \"core/job.h\"\n" },
      'prims/fs.c:3: layer prims may not include layer core: "core/job.h"')
  end)

  it("holds base to itself", function()
    breaks({ ["base/buf.c"] = "#include \"prims/fs.h\"\n" },
      'base/buf.c:1: layer base may not include layer prims: "prims/fs.h"')
  end)

  it("keeps strangers apart", function()
    breaks({ ["prims/lock.c"] = "#include \"fs.h\"\n" },
      'prims/lock.c:1: the files of prims/ are strangers: "fs.h"')
    breaks({ ["prims/lock.c"] = "#include \"prims/fs.h\"\n" },
      'prims/lock.c:1: the files of prims/ are strangers: "prims/fs.h"')
  end)

  it("keeps the stores apart", function()
    breaks({ ["store/store_file.c"] = "#include \"store_mem.h\"\n", ["store/store_mem.h"] = "" },
      'store/store_file.c:1: the files of store/ are strangers: "store_mem.h"')
  end)

  it("lets the runner see the public header alone", function()
    breaks({ ["runner/main.c"] = "#include \"base/err.h\"\n" },
      'runner/main.c:1: runner/ may not include "base/err.h"')
  end)

  it("lets a layer see the folders that its rule names, and no other", function()
    breaks({ ["lua/host.c"] = "#include \"core/job.h\"\n" },
      'lua/host.c:1: lua/ may not include "core/job.h"')
  end)

  it("keeps the public header free of ours", function()
    breaks({ ["ckpt.h"] = "#include \"base/err.h\"\n" },
      'ckpt.h:1: a public header includes nothing of ours: "base/err.h"')
  end)

  it("keeps foreign headers at home", function()
    breaks({ ["core/x.c"] = "#include <jansson.h>\n" },
      "core/x.c:1: <jansson.h> belongs to base/json.h")
    breaks({ ["core/x.c"] = "#include <openssl/sha.h>\n" },
      "core/x.c:1: <openssl/sha.h> belongs to prims/hash.c")
  end)

  it("asks for a home of a header that it does not know", function()
    breaks({ ["core/x.c"] = "#include <curl/curl.h>\n" },
      "core/x.c:1: <curl/curl.h> has no home: name one in LAYERS")
  end)

  it("finds a header that is not there", function()
    breaks({ ["core/x.c"] = "#include \"../base/err.h\"\n" },
      'core/x.c:1: no such header in the engine: "../base/err.h"')
  end)

  it("finds a call around io, whatever comments and strings stand before it", function()
    breaks({ ["core/x.c"] = "/* \"\n */ char c = '\"'; // '\nint n = a / b; rename(\"//\", x);\n" },
      "core/x.c:3: rename() is for base/io.c, runner/")
    breaks({ ["core/x.c"] = "if (rename(x) < 0 && !io->open(x)) return;\n" },
      "core/x.c:1: rename() is for base/io.c, runner/")
    breaks({ ["core/x.c"] = 's = "\\"/*"; rename(a);\n' },
      "core/x.c:1: rename() is for base/io.c, runner/")
  end)

  local function breaks_room(files, message)
    local all = {
      LAYERS = rooms,
      ["base/io.h"] = "",
      ["plan/plan.h"] = "",
      ["core/job_impl.h"] = "",
      ["job/save/save.h"] = "#include \"core/job.h\"\n",
      ["job/save/save_many.h"] = "",
      ["job/save/save_impl.h"] = "",
    }
    for name, text in pairs(files) do all[name] = text end
    breaks(all, message)
  end

  it("passes rooms within a folder, doors in use, and a pure room that only thinks", function()
    tree {
      LAYERS = rooms,
      ["base/io.h"] = "",
      ["core/job_impl.h"] = "#include \"job.h\"\n",
      ["plan/plan.h"] = "#include \"core/job.h\"\n#include <stdio.h>\n",
      ["plan/plan.c"] = "#include \"plan.h\"\n/* io->open(x) */ int x = g(\"x->y(\");\n",
      ["job/save/save.h"] = "#include \"core/job.h\"\n",
      ["job/save/save_many.h"] = "#include \"save.h\"\n",
      ["job/save/save_impl.h"] = "",
      ["job/save/save.c"] = "#include \"save_impl.h\"\n#include \"job/save/save_many.h\"\n",
      ["job/keep/keep.c"] = "#include \"job/save/save.h\"\n#include \"plan/plan.h\"\n",
      ["ckpt.c"] = "#include \"job/save/save_many.h\"\n",
    }
    local out, status = check()
    assert.equal("", out)
    assert.equal(0, status)
  end)

  it("lets other rooms in by a door alone", function()
    breaks_room({ ["ckpt.c"] = "#include \"core/job_impl.h\"\n" },
      'ckpt.c:1: core/ is entered by job.h alone: "core/job_impl.h"')
    breaks_room({ ["ckpt.c"] = "\n#include \"job/save/save_impl.h\"\n" },
      'ckpt.c:2: job/save/ is entered by save.h, save_many.h alone: "job/save/save_impl.h"')
  end)

  it("holds rooms within a folder to their order", function()
    breaks_room(
      { ["job/save/save.c"] = "#include \"job/keep/keep.h\"\n", ["job/keep/keep.h"] = "" },
      'job/save/save.c:1: layer job/save may not include layer job/keep: "job/keep/keep.h"')
    breaks_room({ ["job/save/save.c"] = "", ["job/x.c"] = "" },
      "job/x.c:1: its folder is no layer of LAYERS")
  end)

  it("keeps a pure room from what it may not know", function()
    breaks_room({ ["plan/plan.c"] = "#include \"plan.h\"\n#include \"store/store.h\"\n" },
      'plan/plan.c:2: plan/ is pure: "store/store.h"')
    breaks_room({ ["plan/plan.c"] = "#include \"base/io.h\"\n" },
      'plan/plan.c:1: plan/ is pure: "base/io.h"')
  end)

  it("keeps a pure room from calling what it saw through another header", function()
    breaks_room({ ["plan/plan.c"] = "x = store_open(y);\n" },
      "plan/plan.c:1: plan/ is pure, and calls no store_open()")
    breaks_room({ ["plan/plan.c"] = "if (io_nonce(y)) z();\n" },
      "plan/plan.c:1: plan/ is pure, and calls no io_nonce()")
  end)

  it("keeps a member to the one file that sets it", function()
    local one = rooms .. "\nwrites core u->phase core/units.c"
    local with = function(text) return {
      LAYERS = one, ["core/units.c"] = "u->phase = to;\n", ["core/x.c"] = text,
    } end
    breaks_room(with "  u->phase = UNIT_OPEN;\n",
      "core/x.c:1: u->phase is set by core/units.c alone")
    tree(with "if (u->phase == UNIT_OPEN) menu->phase = u->phase;\n")
    local out, status = check()
    assert.equal("", out)
    assert.equal(0, status)
    breaks_room({ LAYERS = rooms .. "\nwrites core u->held core/gone.c" },
      "LAYERS:19: no such file: core/gone.c")
  end)

  it("takes a function for that of the header with the longer name", function()
    tree {
      LAYERS = rooms:gsub("(pure plan base/io.h) store/", "%1 store/store.h"),
      ["job/save/save.h"] = "",
      ["job/save/save_many.h"] = "",
      ["store/store_key.h"] = "",
      ["plan/plan.c"] = "#include \"store/store_key.h\"\nx = store_key_check(y);\n",
    }
    local out, status = check()
    assert.equal("", out)
    assert.equal(0, status)
  end)

  it("keeps a pure room from the system, and from methods", function()
    breaks_room({ LAYERS = rooms:gsub("base/io.c runner/", "%0 plan/"),
      ["plan/plan.c"] = "rename(a, b);\n" },
      "plan/plan.c:1: plan/ is pure, and calls no rename()")
    breaks_room({ ["plan/plan.c"] = "rc = ops->put(s);\n" },
      "plan/plan.c:1: plan/ is pure, and calls nothing through a pointer: put()")
    breaks_room({ ["plan/plan.c"] = "rc = x.read(s);\n" },
      "plan/plan.c:1: plan/ is pure, and calls nothing through a pointer: read()")
  end)

  it("finds a door that is walled up, and a door or a pure room that is no layer", function()
    breaks_room({ LAYERS = rooms .. "\ndoor plan plan.h plans.h" },
      "LAYERS:19: no such file in plan/: plans.h")
    breaks_room({ LAYERS = rooms .. "\ndoor saves save.h" }, "LAYERS:19: no such layer: saves")
    breaks_room({ LAYERS = rooms .. "\npure saves store/" }, "LAYERS:19: no such layer: saves")
  end)

  it("finds a file name that is there twice", function()
    breaks({ ["core/fs.h"] = "" }, "prims/fs.h:1: the name is taken by core/fs.h")
  end)

  it("finds a folder with more files than may be", function()
    tree { ["core/a.c"] = "", LAYERS = rules .. "\nmost 2" }
    assert.are.equal(0, select(2, check()))
    file("core/b.c", "")
    assert.matches("^LAYERS:13: core/ has 3 files", (check()))
  end)

  it("finds a folder that is no layer", function()
    os.execute("mkdir " .. dir .. "/util")
    breaks({ ["util/x.c"] = "" }, "util/x.c:1: its folder is no layer of LAYERS")
  end)

  it("finds a rule that it does not know", function()
    breaks({ LAYERS = rules .. "\nlayres x\n" }, "LAYERS:13: no such rule: layres x")
  end)

  -- The same rules hold modules of Lua, whose folder and name `require` says.
  local modules = table.concat({
    "layer ckpt/base",
    "layer ckpt/prims strangers shown.lua",
    "layer policy only policy/",
    "layer ckpt/job",
    "layer ckpt",
    "door ckpt/job job.lua",
    "foreign ckpt.core ckpt/prims/",
    "system ffi bit",
  }, "\n")

  local function modules_with(files)
    os.execute(("cd %s && mkdir -p policy ckpt/base ckpt/prims ckpt/job"):format(dir))
    file("LAYERS", modules)
    file("ckpt/init.lua", 'local names = { job = "ckpt.job.job" }\n')
    file("ckpt/base/class.lua", 'local ffi = require("ffi")\n')
    file("ckpt/prims/fs.lua", "local core = require 'ckpt.core'\nrequire \"ckpt.prims.shown\"\n")
    file("ckpt/prims/shown.lua", 'return "ckpt", "a.b", "ckpt.none"\n')
    file("ckpt/job/job.lua", 'require "ckpt.job.loop"\npcall(require, "ckpt.prims.fs")\n')
    file("ckpt/job/loop.lua", 'require "ckpt.base.class"\n')
    file("policy/when.lua", "")
    for name, text in pairs(files) do file(name, text) end
    return check()
  end

  local function breaks_modules(files, message)
    local out, status = modules_with(files)
    assert.equal(message .. "\n", out)
    assert.equal(1, status)
  end

  it("passes a good tree of modules, where two may have one name", function()
    local out, status = modules_with {
      ["ckpt/job/class.lua"] = '--[[ require "ckpt.job.job"\n]] -- require "ckpt"\n' ..
        '--- require "none"\nlocal s = [[require "none"]] .. "require \\"none\\"" - 1\n',
      ["policy/class.lua"] = "return t[s[1]], 'x'\n",
    }
    assert.equal("", out)
    assert.equal(0, status)
  end)

  it("names file and line of a require from a layer below", function()
    breaks_modules(
      { ["ckpt/base/class.lua"] = '--[[\n]]\nx = [==[\n]]]==]\nrequire "ckpt.prims.fs"' },
      'ckpt/base/class.lua:5: layer ckpt/base may not require layer ckpt/prims: "ckpt.prims.fs"')
    breaks_modules({ ["ckpt/base/class.lua"] = "pcall(require, 'ckpt')" },
      "ckpt/base/class.lua:1: layer ckpt/base may not require layer ckpt: \"ckpt\"")
  end)

  it("takes the name of a module in a table for a require that comes later", function()
    breaks_modules({ ["ckpt/base/class.lua"] = '\nlocal late = { fs = "ckpt.prims.fs" }' },
      'ckpt/base/class.lua:2: layer ckpt/base may not require layer ckpt/prims: "ckpt.prims.fs"')
  end)

  it("keeps modules that are strangers apart, and lets others in by a door alone", function()
    breaks_modules({ ["ckpt/prims/tar.lua"] = 'require "ckpt.prims.fs"' },
      'ckpt/prims/tar.lua:1: the files of ckpt/prims/ are strangers: "ckpt.prims.fs"')
    breaks_modules({ ["ckpt/prims/tar.lua"] = "", ["ckpt/init.lua"] = 'require "ckpt.job.loop"' },
      'ckpt/init.lua:1: ckpt/job/ is entered by job.lua alone: "ckpt.job.loop"')
  end)

  it("keeps the untrusted world by itself", function()
    breaks_modules({ ["policy/when.lua"] = 'require "ckpt.base.class"' },
      'policy/when.lua:1: policy/ may not require "ckpt.base.class"')
  end)

  it("keeps foreign modules at home, and asks for a home of one that it does not know", function()
    breaks_modules({ ["ckpt/job/loop.lua"] = 'require "ckpt.core"' },
      'ckpt/job/loop.lua:1: "ckpt.core" belongs to ckpt/prims/')
    breaks_modules({ ["ckpt/job/loop.lua"] = 'require "cjson"' },
      'ckpt/job/loop.lua:1: "cjson" has no home: name one in LAYERS')
  end)
end)
