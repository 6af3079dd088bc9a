-- ckpt.store: what a URI names, open stores, stores written in Lua.

local ckpt = require "ckpt"
local support = require "support"
local table_store = require "lua.store.store_support"

local fs, store = ckpt.fs, ckpt.store

table_store.register()

describe("store.resolve", function()
  local function resolved(text)
    local filesystem, path = store.resolve(text)
    return filesystem and { filesystem.type_name, filesystem.is_local, path } or path
  end

  it("takes a path as it is, but for one slash at its end", function()
    assert.same({ "local", true, "/a/b" }, resolved("/a/b/"))
    assert.same({ "local", true, "/a//../b%20c" }, resolved("/a//../b%20c"))
    assert.same({ "local", true, "/" }, resolved("/"))
    assert.same({ "local", true, "/a/" }, resolved("/a//"))
    assert.same({ "local", true, fs.home and fs.home() or os.getenv("HOME") .. "/x" },
      resolved("~/x"))
  end)

  it("decodes a file URI, which has no host", function()
    assert.same({ "local", true, "/a b/%" }, resolved("file:///a%20b/%25"))
    assert.matches("host \"node1\" is not supported", resolved("file://node1/a"))
    assert.equal("EINVAL", select(3, store.resolve("file://node1/a")))
    assert.equal("EINVAL", select(3, store.resolve("file:///a%00b")))
  end)

  it("takes the scheme off others, and gives it back", function()
    assert.same({ "s3", false, "bucket/a/b" }, resolved("s3://bucket/a/b/"))
    assert.same({ "table", false, "x" }, resolved("TABLE://x"))
    local filesystem, path = store.resolve("s3://bucket/a")
    assert.equal("s3://bucket/a", filesystem:uri(path))
    assert.equal((store.resolve("s3://other")), filesystem)
  end)

  it("keeps the query of a bucket's URI apart from the path", function()
    local filesystem, path = store.resolve("s3://bucket/a?region=eu-west-1&scheme=http")
    assert.equal("bucket/a", path)
    assert.equal("s3://bucket/a/b?region=eu-west-1&scheme=http", filesystem:uri(path .. "/b"))
    assert.not_equal((store.resolve("s3://bucket/a")), filesystem)
    assert.same({ "s3", false, "bucket/what?/x" }, resolved("s3://bucket/what?/x"))
    assert.same({ "table", false, "x?a=b" }, resolved("table://x?a=b"))
  end)

  it("refuses the rest, and says why", function()
    assert.matches("empty scheme", resolved("a/b"))
    assert.matches("the path is empty", resolved(""))
    assert.matches("unrecognized scheme \"gopher\"; there are file, gs, mem, s3, table",
      resolved("gopher://x"))
    assert.equal("EUNSUPPORTED", select(3, store.resolve("gopher://x")))
    assert.matches("bucket or name is missing", resolved("s3:///x"))
    assert.error_matches(function() store.resolve(nil) end, "a path or URI is a text, not a nil")
  end)
end)

describe("store.register", function()
  it("makes URIs without a host, if the store type says so", function()
    local opened
    store.register("hostless", { no_host = true, open = function(uri)
      opened = uri
      return nil, "closed", "EIO"
    end })
    for uri, path in pairs {
      ["hostless:///a/b"] = "a/b", ["hostless://host/a/b/"] = "a/b", ["HostLess:///a"] = "a",
    } do
      local filesystem, found = store.resolve(uri)
      assert.same({ "hostless", false, path }, { filesystem.type_name, filesystem.is_local, found })
      assert.equal("hostless:///" .. path, filesystem:uri(found))
      assert.same({ nil, "closed", "EIO" }, { store.open(uri) })
      assert.equal("hostless:///" .. path, opened)
    end
    for _, uri in ipairs { "hostless://", "hostless:///", "hostless://host", "hostless:////a" } do
      local none, why, name = store.resolve(uri)
      assert.same({ nil, "EINVAL" }, { none, name })
      assert.matches("after hostless:/// a path is missing", why, 1, true)
    end
    assert.error_matches(function()
      store.register("x", { open = print, no_host = 1 })
    end, "`no_host` is a number")
  end)

  it("refuses what cannot be", function()
    assert.error_matches(function() store.register("a b", { open = print }) end, "a scheme is")
    assert.error_matches(function() store.register("s3", { open = print }) end, "engine's own")
    assert.error_matches(function() store.register("FILE", { open = print }) end, "engine's own")
    assert.error_matches(function() store.register("x", {}) end, "with a function `open`")
  end)

  it("hands on what an open says, and looks at what it gives", function()
    store.register("broken", {
      open = function(uri)
        if uri:match("no$") then return nil, "no such shelf", "ENOSTORE" end
        return { get = print }
      end,
    })
    assert.same({ nil, "no such shelf", "ENOSTORE" }, { store.open("broken://no") })
    assert.same({ nil, "no such shelf", "ENOSTORE" },
      { store.upload { dir = "/tmp", uri = "broken://no" } })
    assert.error_matches(function() store.open("broken://x") end, "has no function `put`")
  end)
end)

for _, kind in ipairs { "file", "mem", "table" } do
  describe("a store of " .. kind, function()
    local dir, place, uri
    before_each(function()
      dir = support.directory()
      uri = ({ file = dir .. "/place", mem = "mem://store-spec/a", table = "table://spec/a" })[kind]
      place = assert(store.open(uri))
    end)
    after_each(function()
      place:close()
      if kind == "mem" then store.delete { uri = uri }:wait() end
      table_store.places.spec = nil
      fs.remove_tree(dir)
    end)

    local function keys(...)
      local out = {}
      for i, object in ipairs(assert(place:list(...))) do
        out[i] = object.key .. (object.prefix and "/" or "")
      end
      return table.concat(out, " ")
    end

    it("gives back what was put", function()
      local data = "\0\1\255" .. ("x"):rep(70000)
      assert.is_true(place:put("a/b", data))
      assert.equal(data, place:get("a/b"))
      assert.is_true(place:put("a/b", ""))
      assert.equal("", place:get("a/b"))
      assert.equal("ENOENT", select(3, place:get("a/c")))
      assert.equal(0, place:head("a/b").size)
      assert.is_true(place:exists("a/b"))
      assert.is_false(place:exists("a/c"))
    end)

    it("lists what is there, and removes it", function()
      for _, key in ipairs { "a/b", "a/c/d", "e" } do assert(place:put(key, key)) end
      assert.equal("a/b a/c/d e", keys())
      assert.equal("a/b a/c/d", keys("a"))
      assert.equal("", keys("none"))
      assert.is_true(place:delete("e"))
      assert.is_true(place:delete("e"))
      assert.is_true(place:delete_prefix("a"))
      assert.equal("", keys())
    end)

    it("refuses what is no key", function()
      for _, key in ipairs { "", "/a", "a/", "a//b", "a/../b", "." } do
        assert.equal("EINVAL", select(3, place:put(key, "x")), key)
      end
      assert.error_matches(function() place:get(1) end, "the key is a number")
      assert.error_matches(function() place:put("a", nil) end, "the content is a nil")
    end)

    it("is of no use when it is closed", function()
      place:close()
      place:close()
      assert.error_matches(function() place:get("a") end, "is closed")
    end)

    if kind == "table" then
      it("has no more than it has", function()
        assert.equal("EUNSUPPORTED", select(3, place:put_if_absent("a", "1")))
        assert.equal("EUNSUPPORTED", select(3, place:get_tagged("a")))
        assert.same({ if_absent = false, publish = false, resume = false, tags = false },
          place:caps())
      end)
    else
      it("reads parts, and lists one level", function()
        assert(place:put("a/b", "0123456789"))
        assert.equal("234", place:get("a/b", 2, 3))
        assert.equal("89", place:get("a/b", 8, 100))
        assert.equal("", place:get("a/b", 10, 5))
        assert(place:put("c", "x"))
        assert.equal("a/ c", keys(nil, { delimited = true }))
        assert.equal(1, place:list()[2].size)
        assert.is_true(math.abs(place:list()[2].mtime - ckpt.clock.now()) < 100)
      end)

      it("lets one of several win", function()
        assert.is_true(place:put_if_absent("k", "1"))
        assert.equal("EEXISTS", select(3, place:put_if_absent("k", "2")))
        local data, tag = place:get_tagged("k")
        assert.equal("1", data)
        assert.is_true(place:replace_if("k", "2", tag))
        assert.equal("ECONFLICT", select(3, place:replace_if("k", "3", tag)))
        assert.equal("2", place:get("k"))
        assert.equal("ENOENT", select(3, place:replace_if("none", "3", tag)))
        assert.is_true(place:caps().tags)
        assert.is_true(place:caps().if_absent)
      end)
    end
  end)
end
