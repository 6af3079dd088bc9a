local support = require "support"
local digest = require "ckpt.prims.digest"
local fs = require "ckpt.prims.fs"

local BLOCK = 8 * 2 ^ 20

local function bytes_of(hex)
  return (hex:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
end

describe("digest", function()
  local dir

  setup(function() dir = support.directory() end)
  teardown(function() fs.remove_tree(dir) end)

  it("computes what sha256sum and xxhsum print", function()
    support.write(dir .. "/f", "some \0 bytes\n")
    local want = support.sh("sha256sum < " .. dir .. "/f"):match("^%x+")
    assert.are.equal(want, digest.sha256("some \0 bytes\n"))
    -- Known answers of XXH3-128, seed 0.
    assert.are.equal("99aa06d3014798d86001c324468d497f", digest.xxh3(""))
    assert.are.equal(digest.xxh3("ab"), digest.new("xxh3-128"):update("a"):update("b"):hex())
    assert.are.equal(digest.sha256("ab"), digest.new("sha256"):update("a"):update("b"):hex())
  end)

  it("digests a file by the digests of its blocks", function()
    local a, b = ("a"):rep(BLOCK), "rest"
    support.write(dir .. "/large", a .. b)
    assert.are.equal(digest.xxh3(bytes_of(digest.xxh3(a)) .. bytes_of(digest.xxh3(b))),
      digest.file(dir .. "/large"))
    assert.are.equal(digest.sha256(bytes_of(digest.sha256(a)) .. bytes_of(digest.sha256(b))),
      digest.file(dir .. "/large", "sha256"))
    support.write(dir .. "/even", a)
    assert.are.equal(digest.xxh3(bytes_of(digest.xxh3(a))), digest.file(dir .. "/even"))
    support.write(dir .. "/empty", "")
    assert.are.equal(digest.xxh3(""), digest.file(dir .. "/empty"))
  end)

  it("says what is wrong with a file", function()
    local hex, text, name = digest.file(dir .. "/none")
    assert.is_nil(hex)
    assert.are.equal("ENOENT", name)
    assert.is_truthy(text:find(dir .. "/none", 1, true))
    assert.are.equal("EINVAL", select(3, digest.file(dir)))
    os.execute("mkfifo " .. dir .. "/fifo")
    assert.are.equal("EINVAL", select(3, digest.file(dir .. "/fifo")))
  end)

  it("answers again after its end, and takes no more", function()
    local d = digest.new()
    d:update("x")
    local hex = d:hex()
    assert.are.equal(hex, d:hex())
    assert.has_error(function() d:update("y") end)
    assert.are.equal(digest.xxh3("x"), hex)
  end)

  it("raises for an unknown kind and for what is no text, in the caller's line", function()
    for _, wrong in ipairs {
      function() digest.new("md5") end,
      function() digest.file(dir, "md5") end,
      function() digest.new():update({}) end,
      function() digest.file({ path = "x" }) end,
      function() digest.xxh3(nil) end,
    } do
      local fine, text = pcall(wrong)
      assert.is_false(fine)
      assert.is_truthy(text:find("digest_spec.lua:", 1, true), text)
    end
  end)

  it("frees digests that are never ended", function()
    for _ = 1, 2000 do digest.new("sha256"):update("x") end
    collectgarbage()
    collectgarbage()
  end)
end)
