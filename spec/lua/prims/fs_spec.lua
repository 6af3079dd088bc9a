local support = require "support"
local fs = require "ckpt.prims.fs"

local function octal(text) return tonumber(text, 8) end

describe("fs", function()
  local dir

  support.with_directory(function(made) dir = made end)

  local function at(name) return dir .. "/" .. name end

  -- t/{a,b/c/f,b/empty/,link -> a}
  local function make_tree()
    assert(fs.mkdirs(at("t/b/c")))
    assert(fs.mkdirs(at("t/b/empty")))
    assert(fs.write(at("t/a"), "first", octal("640")))
    assert(fs.write(at("t/b/c/f"), "deep"))
    assert(fs.symlink("a", at("t/link")))
    assert(fs.utime(at("t/a"), 1234.5))
  end

  local function names(entries)
    local list = {}
    for i, entry in ipairs(entries) do list[i] = entry.path end
    return table.concat(list, " ")
  end

  describe("files", function()
    it("are written and read as any bytes", function()
      local data = "a\0b\255\r\n" .. ("x"):rep(1e6)
      assert.is_true(fs.write(at("f"), data))
      assert.are.equal(data, fs.read(at("f")))
      assert.is_true(fs.write(at("f"), ""))
      assert.are.equal("", fs.read(at("f")))
      assert.are.same({ "f" }, fs.list(dir))
    end)

    it("are read up to a limit, which is an error and not a cut", function()
      assert(fs.write(at("f"), "12345"))
      assert.are.equal("12345", fs.read(at("f"), 5))
      local data, text, name = fs.read(at("f"), 4)
      assert.is_nil(data)
      assert.are.equal("ELIMIT", name)
      assert.is_truthy(text:find(at("f"), 1, true))
      os.execute("truncate -s 65M " .. at("large"))
      assert.are.equal("ELIMIT", select(3, fs.read(at("large"))))
      assert.has_error(function() fs.read(at("f"), -1) end)
    end)

    it("of another kind are refused without waiting for them", function()
      os.execute("mkfifo " .. at("fifo"))
      assert.are.equal("EINVAL", select(3, fs.read(at("fifo"))))
      assert.are.equal("EINVAL", select(3, fs.read(dir)))
      assert.are.equal("EINVAL", select(3, fs.read("/dev/zero")))
      assert.are.equal("ENOENT", select(3, fs.read(at("none"))))
    end)

    it("that are new replace nothing", function()
      assert.is_true(fs.write_new(at("f"), "mine", octal("600")))
      local done, _, name = fs.write_new(at("f"), "other")
      assert.is_nil(done)
      assert.are.equal("EEXISTS", name)
      assert.are.equal("mine", fs.read(at("f")))
      assert.are.equal(octal("600"), fs.stat(at("f")).mode)
      assert(fs.symlink("nowhere", at("dangling")))
      assert.are.equal("EEXISTS", select(3, fs.write_new(at("dangling"), "x")))
      assert.are.equal("ENOENT", select(3, fs.write_new(at("no/where"), "x")))
      assert.are.same({ "dangling", "f" }, fs.list(dir))
    end)

    it("are replaced whole: a reader never sees a part", function()
      local a, b = ("a"):rep(3e5), ("b"):rep(3e5)
      assert(fs.write(at("f"), a))
      support.write(at("writer.lua"), ([[
        local fs = require "ckpt".fs
        local a, b = ("a"):rep(3e5), ("b"):rep(3e5)
        for i = 1, 60 do assert(fs.write(%q, i %% 2 == 0 and a or b)) end
        fs.write(%q, "x")]]):format(at("f"), at("end")))
      os.execute(("'%s/libexec/ckpt-script' '%s' &"):format(support.build, at("writer.lua")))
      local reads = 0
      repeat
        local data = assert(fs.read(at("f")))
        assert.is_true(data == a or data == b)
        reads = reads + 1
      until fs.exists(at("end"))
      assert.is_true(reads > 1)
    end)

    it("have one winner when many processes make them", function()
      local command = {}
      support.write(at("one.lua"), ([[
        local fs = require "ckpt".fs
        local done, _, name = fs.write_new(%q, arg[1])
        assert(done or name == "EEXISTS")
        if done then assert(fs.write(%q .. arg[1], "")) end]]):format(at("won"), at("winner-")))
      for i = 1, 12 do
        command[i] = ("'%s/libexec/ckpt-script' '%s' %d &"):format(support.build, at("one.lua"), i)
      end
      local out = support.sh(table.concat(command, "\n") .. "\nwait")
      assert.are.equal("", out)
      local winners = fs.glob(at("winner-*"))
      assert.are.equal(1, #winners)
      assert.are.equal(at("winner-") .. fs.read(at("won")), winners[1])
      assert.are.equal(0, #fs.glob(at("*.tmp")))
    end)

    it("are removed one at a time", function()
      assert(fs.write(at("f"), ""))
      assert.is_true(fs.remove(at("f")))
      assert.are.equal("ENOENT", select(3, fs.remove(at("f"))))
      assert(fs.mkdirs(at("d")))
      assert.is_nil((fs.remove(at("d"))))
      assert.is_true(fs.exists(at("d")))
    end)

    it("tell what they are, through links or not", function()
      make_tree()
      local st = assert(fs.stat(at("t/link")))
      assert.are.equal("file", st.type)
      assert.are.equal(5, st.size)
      assert.are.equal(1234.5, st.mtime)
      assert.are.equal(octal("640"), st.mode)
      assert.are.equal(fs.stat(at("t/a")).inode, st.inode)
      assert.are.equal("link", fs.lstat(at("t/link")).type)
      assert.are.equal("directory", fs.stat(at("t")).type)
      assert.are.equal("other", fs.stat("/dev/null").type)
      assert.are.equal("ENOENT", select(3, fs.stat(at("none"))))
      assert.is_nil(select(2, fs.exists(at("none"))))
      assert(fs.symlink("none", at("dangling")))
      assert.is_false(fs.exists(at("dangling")))
      assert.are.equal("none", fs.readlink(at("dangling")))
      assert.are.equal("EINVAL", select(3, fs.readlink(at("t"))))
    end)

    it("get modes and times", function()
      assert(fs.write(at("f"), ""))
      assert.is_true(fs.chmod(at("f"), octal("400")))
      assert.are.equal(octal("400"), fs.stat(at("f")).mode)
      assert.is_true(fs.utime(at("f"), -1.25))
      assert.are.equal(-1.25, fs.stat(at("f")).mtime)
      assert.has_error(function() fs.chmod(at("f"), 99999) end)
      assert.has_error(function() fs.chmod(at("f")) end)
      assert.has_error(function() fs.utime(at("f"), 0 / 0) end)
      assert.are.equal("ENOENT", select(3, fs.utime(at("none"), 1)))
    end)
  end)

  describe("paths", function()
    it("with a NUL byte, and values that are no text, are refused", function()
      for name, fn in pairs(fs) do
        if name ~= "temp" and name ~= "cwd" and name ~= "temporary_directory" then
          for _, wrong in ipairs { "a\0b", {}, 5, false } do
            local fine, text
            if name == "excluded" then
              fine, text = pcall(fn, {}, wrong)
            else
              fine, text = pcall(fn, wrong, "x", "x")
            end
            assert.is_false(fine, name .. " takes " .. tostring(wrong))
            assert.is_truthy(text)
          end
        end
      end
    end)

    it("that are a Checkpoint lead to its functions", function()
      for _, fn in ipairs { fs.read, fs.list, fs.copy_tree, fs.join, fs.parent } do
        local _, text = pcall(fn, { path = "x" }, "y")
        assert.is_truthy(text:find("to_directory() or as_directory", 1, true), text)
      end
    end)

    it("of any other bytes are kept as they are", function()
      for _, name in ipairs { "\255\254", "new\nline", "sp ace", "[x]*?", "é", "-rf", "~" } do
        assert.is_true(fs.write(at(name), name))
        assert.are.equal(name, fs.read(at(name)))
        assert.are.same({ name }, fs.list(dir))
        assert.is_true(fs.remove(at(name)))
      end
    end)

    it("that are too long are an error", function()
      assert.is_nil((fs.write(at(("x"):rep(300)), "")))
      assert.is_nil((fs.write(at(("x/"):rep(3000)), "")))
      assert.are.equal("ELIMIT", select(3, fs.list(("x/"):rep(3000))))
      assert.is_nil((fs.mkdirs(("x/"):rep(3000))))
      assert.is_nil((fs.temporary_directory(dir, ("x"):rep(250))))
      assert.are.same({}, fs.list(dir))
    end)

    it("are joined, cut and made short", function()
      assert.are.equal("a/b/c", fs.join("a", "b/", "", "c"))
      assert.are.equal("/c/d", fs.join("a", "/c", "d"))
      assert.are.equal("a", fs.join("", "a"))
      assert.are.equal("a", fs.join("a", ""))
      for text, parts in pairs {
        ["/a/b"] = { "b", "/a" }, ["a"] = { "a", "." }, ["/a"] = { "a", "/" }, ["/"] = { "/", "/" },
        ["a/b//"] = { "b", "a" }, ["//a//b"] = { "b", "//a" }, [""] = { "", "." },
      } do
        assert.are.equal(parts[1], fs.base(text))
        assert.are.equal(parts[2], fs.parent(text))
      end
      for text, short in pairs {
        ["a//b/./c/"] = "a/b/c", ["/../a/../.."] = "/", ["../../a"] = "../../a", [""] = ".",
        ["a/../.."] = "..", ["/"] = "/", ["a/.."] = ".",
      } do
        assert.are.equal(short, fs.normalize(text))
      end
      assert.are.equal(fs.cwd() .. "/x", fs.absolute("y/../x"))
      assert.are.equal("/x", fs.absolute("//x/"))
    end)

    it("begin at home where they say so", function()
      local home = os.getenv("HOME")
      assert.are.equal(home .. "/x", fs.expand("~/x"))
      assert.are.equal(support.sh("echo ~root"):match("%S+") .. "/x", fs.expand("~root/x"))
      assert.are.equal("~nobody-has-this-name", fs.expand("~nobody-has-this-name"))
      assert.are.equal("a/~", fs.expand("a/~"))
      support.write(at("home.lua"), [[
        local fs = require "ckpt".fs
        print(fs.expand("~"), fs.expand("~/a/"))]])
      for given, out in pairs { ["/x/"] = "/x\t/x/a/\n", ["/"] = "/\t/a/\n" } do
        assert.are.equal(out, (support.sh(("HOME=%s '%s/libexec/ckpt-script' '%s'"):format(given,
          support.build, at("home.lua")))))
      end
    end)

    it("are resolved through links", function()
      make_tree()
      assert.are.equal(fs.real(at("t/a")), fs.real(at("t/link")))
      assert.are.equal("ENOENT", select(3, fs.real(at("none"))))
    end)

    it("are found by patterns, in which a slash is only a slash", function()
      make_tree()
      assert(fs.write(at(".hidden"), ""))
      assert(fs.mkdirs(at("[x]")))
      assert(fs.write(at("[x]/a"), ""))
      assert.are.same({ at("t/a") }, fs.glob(at("t/a")))
      assert.are.same({ at("t/a"), at("t/b"), at("t/link") }, fs.glob(at("t/*")))
      assert.are.same({ at("[x]/a"), at("t/a") }, fs.glob(at("*/a")))
      assert.are.same({ at("[x]") }, fs.glob(at("[[]x]")))
      assert.are.same({ at(".hidden") }, fs.glob(at(".h*")))
      assert.are.same({ at("[x]"), at("t") }, fs.glob(at("*")))
      assert.are.same({}, fs.glob(at("none/*")))
      assert.are.same({ "/" }, fs.glob("/"))
      assert.are.same({}, fs.glob(at("t/a/*")))
    end)
  end)

  describe("directories", function()
    it("are made with all above them", function()
      assert.is_true(fs.mkdirs(at("a/b/c")))
      assert.is_true(fs.mkdirs(at("a/b/c")))
      assert(fs.write(at("f"), ""))
      assert.are.equal("EEXISTS", select(3, fs.mkdirs(at("f"))))
    end)

    it("are listed in byte order, also through a link", function()
      for _, name in ipairs { "b", "B", "a", ".x", "é" } do assert(fs.write(at(name), "")) end
      assert.are.same({ ".x", "B", "a", "b", "é" }, fs.list(dir))
      assert(fs.symlink(".", at("self")))
      assert.are.equal(6, #fs.list(at("self")))
      assert.are.equal("ENOENT", select(3, fs.list(at("none"))))
      assert.are.equal("EINVAL", select(3, fs.list(at("a"))))
    end)

    it("are walked with what each entry is, links as links", function()
      make_tree()
      local entries = assert(fs.walk(at("t")))
      assert.are.equal("a b b/c b/c/f b/empty link", names(entries))
      assert.are.equal(5, entries[1].size)
      assert.are.equal("directory", entries[2].type)
      assert.are.equal("a", entries[6].target)
      assert.is_nil(entries[1].target)
      assert.are.equal("ENOENT", select(3, fs.walk(at("none"))))
    end)

    it("are walked past what a function does not want", function()
      make_tree()
      local seen = {}
      local kept = fs.walk(at("t"), function(entry)
        seen[#seen + 1] = entry.path
        return entry.path == "b" and "skip" or nil
      end)
      assert.are.same({ "a", "b", "link" }, seen)
      assert.are.equal("a b link", names(kept))
      local fine, text = pcall(fs.walk, at("t"), function() error("stop", 0) end)
      assert.is_false(fine)
      assert.are.equal("stop", text)
    end)

    it("for a while have names of their own, and are private", function()
      local a, b = fs.temporary_directory(dir, "x-"), fs.temporary_directory(dir, "x-")
      assert.are_not.equal(a, b)
      assert.are.equal(octal("700"), fs.stat(a).mode)
      assert.are.equal(dir, fs.parent(a))
      assert.are.equal("x-", fs.base(a):sub(1, 2))
      local c = assert(fs.temporary_directory())
      assert.are.equal(fs.temp(), fs.parent(c))
      assert(fs.remove_tree(c))
      assert.are.equal("ENOENT", select(3, fs.temporary_directory(at("none"))))
    end)
  end)

  describe("trees", function()
    it("are copied with modes, times, links and empty directories", function()
      make_tree()
      assert(fs.utime(at("t/b"), 99))
      assert.is_true(fs.copy_tree(at("t"), at("u"), { flush = true }))
      local from, to = fs.walk(at("t")), fs.walk(at("u"))
      assert.are.equal(names(from), names(to))
      for i, entry in ipairs(from) do
        for _, key in ipairs { "type", "mode", "target", "mtime" } do
          assert.are.equal(entry[key], to[i][key], entry.path .. " " .. key)
        end
      end
      assert.are.equal("EEXISTS", select(3, fs.copy_tree(at("t"), at("u"))))
      assert.are.equal("ENOENT", select(3, fs.copy_tree(at("none"), at("v"))))
    end)

    it("are copied without what patterns leave out", function()
      make_tree()
      assert(fs.copy_tree(at("t"), at("u"), { exclude = { "./b" } }))
      assert.are.equal("a link", names(fs.walk(at("u"))))
      assert(fs.copy_tree(at("t"), at("v"), { exclude = { "*/f", "link" } }))
      assert.are.equal("a b b/c b/empty", names(fs.walk(at("v"))))
      assert.has_error(function() fs.copy_tree(at("t"), at("w"), { excludes = {} }) end)
      assert.has_error(function() fs.copy_tree(at("t"), at("w"), { exclude = { 5 } }) end)
      assert.is_false(fs.exists(at("w")))
    end)

    it("are copied with what links lead to", function()
      make_tree()
      assert(fs.copy_tree(at("t"), at("u"), { follow = true }))
      assert.are.equal("file", fs.lstat(at("u/link")).type)
      assert.are.equal("first", fs.read(at("u/link")))
      assert(fs.symlink("..", at("t/b/up")))
      assert.are.equal("EINVAL", select(3, fs.copy_tree(at("t"), at("v"), { follow = true })))
      assert.is_false(fs.exists(at("v")))
    end)

    it("of one file are copied too", function()
      make_tree()
      assert.is_true(fs.copy_file(at("t/a"), at("a"), { flush = true }))
      assert.are.equal("first", fs.read(at("a")))
      assert.are.equal("EEXISTS", select(3, fs.copy_file(at("t/a"), at("a"))))
      assert.are.equal("EINVAL", select(3, fs.copy_file(at("t"), at("x"))))
    end)

    it("are published once", function()
      make_tree()
      assert.is_true(fs.publish(at("t"), at("u")))
      make_tree()
      assert.are.equal("EEXISTS", select(3, fs.publish(at("t"), at("u"))))
      assert.is_true(fs.exists(at("t/a")))
    end)

    it("take the place of others, in one step where that can be", function()
      make_tree()
      local done, how = fs.replace_tree(at("t"), at("u"))
      assert.is_true(done)
      assert.are.equal("published", how)
      assert(fs.mkdirs(at("new")))
      done, how = fs.replace_tree(at("new"), at("u"))
      assert.is_true(done)
      assert.is_truthy(how == "exchanged" or how == "stepped aside")
      assert.are.same({ "u" }, fs.list(dir))
      assert.are.same({}, fs.list(at("u")))
    end)

    it("are renamed over an empty one", function()
      make_tree()
      assert(fs.mkdirs(at("u")))
      assert.is_true(fs.rename(at("t"), at("u")))
      assert.is_true(fs.exists(at("u/a")))
      assert.are.equal("ENOENT", select(3, fs.rename(at("t"), at("v"))))
    end)

    it("are flushed, and removed with all modes", function()
      make_tree()
      assert.is_true(fs.sync(at("t/a")))
      assert.is_true(fs.sync(at("t")))
      assert.is_true(fs.sync_tree(at("t")))
      assert.are.equal("ENOENT", select(3, fs.sync_tree(at("none"))))
      assert(fs.chmod(at("t/b"), octal("500")))
      assert.is_true(fs.remove_tree(at("t")))
      assert.is_true(fs.remove_tree(at("t")))
      assert.are.equal("EINVAL", select(3, fs.remove_tree("/")))
      assert.are.equal("EINVAL", select(3, fs.remove_tree(at(".."))))
    end)
  end)

  it("tells the space of a file system", function()
    local space = assert(fs.space(dir))
    assert.is_true(space.total >= space.free and space.free >= space.available)
    assert.are.equal("ENOENT", select(3, fs.space(at("none"))))
  end)

  it("matches as Python's fnmatchcase", function()
    assert.is_true(fs.match("a*c", "a/b/c"))
    assert.is_false(fs.match("A*", "a"))
    assert.is_true(fs.match("[!b]?", "aé"))
    assert.is_false(fs.match("**/x", "x"))
    assert.is_false(fs.match("!a", "b"))
  end)

  it("excludes by one rule", function()
    assert.is_true(fs.excluded({ "x", "./rank_*" }, "rank_0/f"))
    assert.is_true(fs.excluded({ "./rank_*" }, "./rank_0"))
    assert.is_false(fs.excluded({ "./rank_*" }, "a/rank_0"))
    assert.is_true(fs.excluded({ "*.png" }, "a/b.png"))
    assert.is_false(fs.excluded({}, "a"))
    assert.has_error(function() fs.excluded("x", "a") end)
  end)
end)
