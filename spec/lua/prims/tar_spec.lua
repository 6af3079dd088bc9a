-- ckpt.tar: archives of directories, in files and in memory.

local ffi = require "ffi"
local ckpt = require "ckpt"
local support = require "support"

local fs, tar = ckpt.fs, ckpt.tar

ffi.cdef "int setenv(const char *, const char *, int);"

describe("ckpt.tar", function()
  local dir
  support.with_directory(function(made)
    dir = made
    assert(fs.mkdirs(dir .. "/src/deep/empty"))
    assert(fs.write(dir .. "/src/model.bin", ("weights"):rep(5000)))
    assert(fs.write(dir .. "/src/deep/run.sh", "#!/bin/sh\n"))
    assert(fs.chmod(dir .. "/src/deep/run.sh", tonumber("750", 8)))
    assert(fs.symlink("model.bin", dir .. "/src/latest"))
  end)

  local function tree(path)
    local lines = {}
    for i, entry in ipairs(assert(fs.walk(dir .. "/" .. path))) do
      lines[i] = ("%s %s %o %d %s"):format(entry.path, entry.type, entry.mode,
        entry.type == "file" and entry.size or 0, entry.target or "")
    end
    return lines
  end

  it("packs a directory into a file and brings it back, compressed or not", function()
    for _, ending in ipairs { "tar", "tar.gz", "tar.zst" } do
      local file, to = dir .. "/x." .. ending, dir .. "/" .. ending
      assert.is_true(assert(tar.pack(dir .. "/src", file)))
      assert.is_true(assert(tar.unpack(file, to)))
      assert.same(tree("src"), tree(ending))
    end
    assert.is_true(fs.stat(dir .. "/x.tar.gz").size < fs.stat(dir .. "/x.tar").size)
  end)

  it("[228] packs into a text and back, and leaves no file behind", function()
    -- A directory of our own: in the machine's others come and go.
    local temp, before = dir .. "/temp", fs.temp()
    assert(fs.mkdirs(temp))
    ffi.C.setenv("TMPDIR", temp, 1)
    local text = tar.pack_text(dir .. "/src")
    local done = tar.unpack_text(text, dir .. "/to")
    ffi.C.setenv("TMPDIR", before, 1)
    assert.equal("ustar", text:sub(258, 262))
    assert.is_true(done)
    assert.same(tree("src"), tree("to"))
    assert.same({}, fs.list(temp))
  end)

  it("refuses what is no archive, and one that is cut off", function()
    local _, text, name = tar.unpack_text(("no archive"):rep(1000), dir .. "/to")
    assert.equal("EFORMAT", name)
    assert.is_string(text)
    local packed = assert(tar.pack_text(dir .. "/src"))
    assert.is_nil((tar.unpack_text(packed:sub(1, 20000), dir .. "/to")))
    assert.is_false(fs.exists(dir .. "/to"))
  end)

  it("refuses what would leave the directory", function()
    os.execute(("cd '%s' && mkdir -p evil/sub && cd evil/sub && echo x > ../out && "
      .. "tar -P -cf ../../evil.tar ../out"):format(dir))
    local _, _, name = tar.unpack(dir .. "/evil.tar", dir .. "/to")
    assert.equal("EFORMAT", name)
    assert.is_false(fs.exists(dir .. "/out"))
  end)

  it("keeps to the limits that it is given", function()
    local file = dir .. "/x.tar"
    assert(tar.pack(dir .. "/src", file))
    assert.equal("ELIMIT", select(3, tar.unpack(file, dir .. "/to", { bytes_max = 1000 })))
    assert.equal("ELIMIT", select(3, tar.unpack(file, dir .. "/to", { entries_max = 2 })))
    assert.is_true(assert(tar.unpack(file, dir .. "/to", { bytes_max = 100000 })))
  end)

  it("does not unpack over what is there", function()
    local file = dir .. "/x.tar"
    assert(tar.pack(dir .. "/src", file))
    assert.is_nil((tar.unpack(file, dir .. "/src")))
    assert.equal("ENOENT", select(3, tar.pack(dir .. "/none", dir .. "/y.tar")))
    assert.equal("EEXISTS", select(3, tar.pack(dir .. "/src", file)))
    assert.error_matches(function() tar.pack(dir) end, "argument 2 is a nil, not a text")
  end)
end)
