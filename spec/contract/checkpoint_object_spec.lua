-- Checkpoint: what an object is (items 1-17).

local ckpt = require "ckpt"
local world = require "contract.checkpoint_world"

local fs = ckpt.fs

describe("Checkpoint, the object", function()
  local w

  before_each(function() w = world.open() end)
  after_each(function() w:close() end)

  local function refused(...)
    local made, text = pcall(ckpt.Checkpoint, ...)
    assert.is_false(made)
    return text
  end

  it("[1] keeps the metadata in a file .metadata.json in its directory", function()
    local checkpoint = ckpt.Checkpoint(w:tree("source", {}))
    assert(checkpoint:set_metadata { a = 1 })
    assert.are.same({ ".metadata.json" }, fs.list(checkpoint.path))
  end)

  it("[2] calls a directory that nobody named checkpoint_tmp_ and 32 lower-case digits", function()
    local checkpoint = w:local_checkpoint()
    local name = fs.base(assert(checkpoint:to_directory()))
    assert.is_truthy(name:match("^checkpoint_tmp_[0-9a-f]+$"))
    assert.are.equal(#"checkpoint_tmp_" + 32, #name)
  end)

  it("[3] is a path, as a text, and a filesystem, both to be seen", function()
    local path = setmetatable({}, { __tostring = function() return "/some/place" end })
    local checkpoint = ckpt.Checkpoint(path)
    assert.are.equal("/some/place", checkpoint.path)
    assert.are.equal("local", checkpoint.filesystem.type_name)
    assert.are.equal("rel/x", ckpt.Checkpoint.from_directory(setmetatable({}, {
      __tostring = function() return "rel/x" end,
    })).path)
    for _, wrong in ipairs { 7, true, {}, print } do
      assert.is_truthy(refused(wrong):find("give a text", 1, true))
    end
  end)

  it("[4] takes the filesystem from a URI, and the scheme off the path", function()
    local checkpoint = ckpt.Checkpoint("mem://bucket/a/b")
    assert.are.equal("mem", checkpoint.filesystem.type_name)
    assert.are.equal("bucket/a/b", checkpoint.path)
    checkpoint = w:remote()
    assert.are.equal("shelf", checkpoint.filesystem.type_name)
    assert.are.equal("at" .. w.dir .. "/remote", checkpoint.path)
    assert.are.equal("bucket/k", ckpt.Checkpoint("s3://bucket/k").path)
  end)

  it("[5] leaves the path alone if a filesystem is given with it", function()
    local filesystem = ckpt.Checkpoint("/abs/x").filesystem
    local checkpoint = ckpt.Checkpoint("file:///abs/x/", filesystem)
    assert.are.equal("file:///abs/x/", checkpoint.path)
    assert.are.equal(filesystem, checkpoint.filesystem)
    local done, _, name = checkpoint:to_directory(w.dir .. "/target")
    assert.is_nil(done)
    assert.are.equal("ENOENT", name)
    assert.is_truthy(refused("/abs", "local"):find("a filesystem is a table", 1, true))
  end)

  it("[6 G] refuses an empty path at once", function()
    assert.is_truthy(refused(""):find("the path is empty", 1, true))
    assert.is_truthy(refused("", ckpt.Checkpoint("/abs").filesystem):find("is empty", 1, true))
    assert.is_false(pcall(ckpt.Checkpoint.from_directory, ""))
    assert.is_false(pcall(ckpt.Checkpoint))
  end)

  it("[7] drops one slash at the end of a local path, and changes nothing else in it", function()
    local function path(text) return ckpt.Checkpoint(text).path end
    assert.are.equal("/abs/x", path("/abs/x"))
    assert.are.equal("/abs/x", path("/abs/x/"))
    assert.are.equal("/abs//x/../y", path("/abs//x/../y"))
    assert.are.equal("local", ckpt.Checkpoint("/abs/x").filesystem.type_name)
  end)

  it("[8] decodes a file URI, and no path; refuses a host in it", function()
    local checkpoint = ckpt.Checkpoint("file:///with%20pct/x/")
    assert.are.equal("/with pct/x", checkpoint.path)
    assert.are.equal("local", checkpoint.filesystem.type_name)
    assert.are.equal("/with%20pct", ckpt.Checkpoint("/with%20pct").path)
    assert.is_truthy(refused("file://host/x"):find("host", 1, true))
  end)

  it("[9] refuses a relative path and an unknown scheme at once, and knows the home", function()
    assert.is_truthy(refused("rel/x"):find("empty scheme", 1, true))
    assert.is_truthy(refused("s4://b/k"):find("s4", 1, true))
    assert.are.equal(w.home .. "/x", ckpt.Checkpoint("~/x").path)
    -- At the line of who made it.
    local _, text = pcall(function() return (ckpt.Checkpoint("rel/x")) end)
    assert.is_truthy(text:find("checkpoint_object_spec.lua:", 1, true))
  end)

  it("[10] from_directory means this machine, keeps the path, and does not look", function()
    local from = ckpt.Checkpoint.from_directory
    for _, path in ipairs { "rel/x", "~/x", "/no/such", "file:///x", "a//b/" } do
      assert.are.equal(path, from(path).path)
      assert.are.equal("local", from(path).filesystem.type_name)
    end
  end)

  it("[11] has one form as text", function()
    assert.are.equal("Checkpoint(filesystem=local, path=/abs/x)",
      tostring(ckpt.Checkpoint("/abs/x")))
    assert.are.equal("Checkpoint(filesystem=mem, path=b/k)", tostring(ckpt.Checkpoint("mem://b/k")))
  end)

  it("[12] draws an id of 128 bits once, which a serialised copy keeps", function()
    local one, other = ckpt.Checkpoint("mem://b/k"), ckpt.Checkpoint("mem://b/k")
    assert.is_truthy(one.id:match("^[0-9a-f]+$") and #one.id == 32)
    assert.are_not.equal(one.id, other.id)
    local copy = ckpt.Checkpoint.deserialize(one:serialize())
    assert.are.equal(one.id, copy.id)
    assert.are.equal(tostring(one), tostring(copy))
    local relative = ckpt.Checkpoint.from_directory("rel/x")
    assert.are.equal("rel/x", ckpt.Checkpoint.deserialize(relative:serialize()).path)
  end)

  it("needs the filesystem again for a copy of one that has no URI of its own", function()
    local mine = { type_name = "mine", uri = function(_, path) return "file://" .. path end }
    local text = ckpt.Checkpoint("/x", mine):serialize()
    local made, why = pcall(ckpt.Checkpoint.deserialize, text)
    assert.is_false(made)
    assert.is_truthy(why:find("second argument", 1, true))
    assert.are.equal(mine, ckpt.Checkpoint.deserialize(text, mine).filesystem)
    for _, wrong in ipairs { "", "{}", '{"id": "x", "path": "/x"}', "[1" } do
      assert.is_false(pcall(ckpt.Checkpoint.deserialize, wrong))
    end
  end)

  it("[13] is no path, and says what gives one", function()
    local checkpoint = ckpt.Checkpoint("/abs/x")
    for _, use in ipairs {
      function() return checkpoint .. "/file" end,
      function() return "cp " .. checkpoint end,
      function() return (ckpt.Checkpoint(checkpoint)) end,
      function() return (ckpt.Checkpoint.from_directory(checkpoint)) end,
      function() return (checkpoint:to_directory(checkpoint)) end,
      function() return (fs.read(checkpoint)) end,
      function() return (fs.join(checkpoint, "file")) end,
    } do
      local fine, text = pcall(use)
      assert.is_false(fine)
      assert.is_truthy(text:find("to_directory", 1, true), text)
      assert.is_truthy(text:find("as_directory", 1, true), text)
      assert.is_truthy(text:find("checkpoint_object_spec.lua:", 1, true), text)
    end
  end)

  -- What is said of a name that is not there.
  local function told(object, name)
    local fine, text = pcall(function() return object[name] end)
    assert.is_false(fine, name .. " is there")
    assert.is_truthy(text:find("checkpoint_object_spec.lua:", 1, true), text)
    assert.is_truthy(text:find("`" .. name .. "`", 1, true), text)
    return text
  end

  local DIRECTORIES = { "from_dict", "to_dict", "from_bytes", "to_bytes",
    "get_internal_representation" }
  local URIS = { "from_uri", "to_uri", "uri" }
  local PREPROCESSORS = { "get_preprocessor", "set_preprocessor" }

  it("[14] shows how a directory does what from_dict and its like did", function()
    for _, name in ipairs(DIRECTORIES) do
      local text = told(ckpt.Checkpoint, name)
      assert.is_truthy(text:find("Checkpoint.from_directory(dir)", 1, true))
      assert.is_truthy(text:find("as_directory(function(path)", 1, true))
    end
  end)

  it("[14] shows code that works", function()
    local text = told(ckpt.Checkpoint, "from_dict")
    local lines = {}
    for line in text:gmatch("[^\n]+") do
      if line:sub(1, 2) == "  " then lines[#lines + 1] = line end
    end
    lines[#lines + 1] = "return data.data"
    assert.are.equal("value", assert(loadstring(table.concat(lines, "\n")))())
  end)

  it("[15] points to the constructor and to an upload instead of from_uri and its like", function()
    for _, name in ipairs(URIS) do
      local text = told(ckpt.Checkpoint, name)
      assert.is_truthy(text:find("constructor", 1, true))
      assert.is_truthy(text:find('Checkpoint("s3://', 1, true))
      assert.is_truthy(text:find("client of your own", 1, true))
    end
  end)

  it("[16] points to the metadata instead of the preprocessor's methods", function()
    for _, name in ipairs(PREPROCESSORS) do
      assert.is_truthy(told(ckpt.Checkpoint, name):find("metadata", 1, true))
    end
  end)

  it("[17 G] says the same of an object, and refuses every unknown name", function()
    local checkpoint = ckpt.Checkpoint("/abs/x")
    for _, names in ipairs { DIRECTORIES, URIS, PREPROCESSORS } do
      for _, name in ipairs(names) do
        local function bare(text) return (text:gsub("^[^\n]-:%d+: ", "")) end
        assert.are.equal(bare(told(ckpt.Checkpoint, name)), bare(told(checkpoint, name)))
      end
    end
    assert.is_truthy(told(checkpoint, "nonsense"):find("has no `nonsense`", 1, true))
    assert.is_truthy(told(ckpt.Checkpoint, "nonsense"):find("has no `nonsense`", 1, true))
  end)

  it("can be extended, and then still refuses unknown names", function()
    local Mine = ckpt.Checkpoint:extend("Mine")
    function Mine:twice() return self.path .. self.path end
    local mine = Mine("/x")
    assert.are.equal("/x/x", mine:twice())
    assert.are.equal("Checkpoint(filesystem=local, path=/x)", tostring(mine))
    assert.is_true(ckpt.class.is(mine, ckpt.Checkpoint))
    assert.is_truthy(told(mine, "nonsense"))
    assert.is_truthy(told(mine, "to_uri"))
  end)

  it("tells a method that is called with a dot", function()
    for _, method in ipairs { "to_directory", "as_directory", "open_directory", "get_metadata",
      "set_metadata", "update_metadata", "serialize" } do
      local fine, text = pcall(ckpt.Checkpoint[method], {})
      assert.is_false(fine)
      assert.is_truthy(text:find("checkpoint:" .. method, 1, true), text)
    end
  end)
end)
