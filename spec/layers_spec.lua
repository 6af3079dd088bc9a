-- Guards spec/check_layers.lua: a checker that finds nothing must be one that could have.

describe("the layer checker", function()
  local dir

  before_each(function()
    dir = io.popen("mktemp -d"):read("*l")
    local layers = "%s/base %s/prims %s/store %s/core %s/runner %s/lua"
    os.execute("mkdir -p " .. layers:gsub("%%s", dir))
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

  it("finds a file name that is there twice", function()
    breaks({ ["core/fs.h"] = "" }, "prims/fs.h:1: the name is taken by core/fs.h")
  end)

  it("finds a folder that is no layer", function()
    os.execute("mkdir " .. dir .. "/util")
    breaks({ ["util/x.c"] = "" }, "util/x.c:1: its folder is no layer of LAYERS")
  end)

  it("finds a rule that it does not know", function()
    breaks({ LAYERS = rules .. "\nlayres x\n" }, "LAYERS:13: no such rule: layres x")
  end)
end)
