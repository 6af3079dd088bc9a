-- What Ray 2.4.0 left out of one tree with ten lists of patterns, copied in three ways; and the
-- wildcards of Python on 556 texts. We have one rule for all ways (G 178, 183, 184, 221, 223, 225):
-- it is Ray's for copies on one node, and the others follow it.

local ckpt = require "ckpt"
local recording = require "recording"
local support = require "support"
local trial_transfer = require "ckpt.ray.sync.trial_transfer"
local fs, store, file_transfer = ckpt.fs, ckpt.store, ckpt.file_transfer

local recorded = recording.read "exclude_ray24"

-- The rule in other words than the library's: with the wildcards alone, which are tested here too.
local function left_out(patterns, path)
  local at = 0
  while at do
    at = path:find("/", at + 1, true)
    local part = path:sub(1, at and at - 1)
    for _, pattern in ipairs(patterns) do
      if fs.match(pattern, part) or fs.match(pattern, "./" .. part) then return true end
    end
  end
  return false
end

describe("recorded exclude lists", function()
  local dir

  setup(function()
    -- Ten trees of 556 names in three ways, each flushed: memory does not mind.
    local parent = fs.exists("/dev/shm") and "/dev/shm" or fs.temp()
    dir = assert(fs.temporary_directory(parent))
    for _, path in ipairs(recorded.dirs) do assert(fs.mkdirs(dir .. "/from/" .. path)) end
    for _, path in ipairs(recorded.files) do support.write(dir .. "/from/" .. path, path) end
  end)
  teardown(function() os.execute("rm -rf '" .. dir .. "'") end)

  local ways = {
    same_node_copy = function(exclude)
      assert(trial_transfer(dir .. "/from", dir .. "/to", exclude):wait())
    end,
    tar = function(exclude)
      assert(file_transfer.pack(dir .. "/from", dir .. "/t.tar", { exclude = exclude }):wait())
      assert(file_transfer.unpack(dir .. "/t.tar", dir .. "/to"):wait())
    end,
    upload = function(exclude)
      local syncer = ckpt.DefaultSyncer()
      syncer:sync_up(dir .. "/from", "mem://recorded/excludes", exclude)
      assert(syncer:wait())
      assert(assert(store.download { dir = dir .. "/to", uri = "mem://recorded/excludes" }):wait())
      assert(assert(store.delete { uri = "mem://recorded/excludes" }):wait())
    end,
  }

  -- Copies in one way with each list; returns how often we left out what Ray sent, and the other
  -- way round: of files, of directories.
  local function compare(way)
    local count = { files = { more = 0, less = 0 }, dirs = { more = 0, less = 0 } }
    for _, row in ipairs(recorded.decisions) do
      local exclude = #row.exclude > 0 and { unpack(row.exclude) } or nil
      ways[way](exclude)
      local there = {}
      for _, entry in ipairs(fs.walk(dir .. "/to")) do
        there[entry.path] = true
        if entry.type == "file" then
          assert.equal(entry.path, support.read(dir .. "/to/" .. entry.path))
        end
      end
      for kind, paths in pairs { files = recorded.files, dirs = recorded.dirs } do
        local missing_of_ray = {}
        for _, index in ipairs(row[way][kind .. "_missing"]) do missing_of_ray[index + 1] = true end
        for i, path in ipairs(paths) do
          local missing = not there[path]
          assert.equal(left_out(row.exclude, path), missing, path)
          if missing and not missing_of_ray[i] then count[kind].more = count[kind].more + 1 end
          if not missing and missing_of_ray[i] then count[kind].less = count[kind].less + 1 end
        end
      end
      fs.remove_tree(dir .. "/to")
    end
    return count
  end

  it("[222] agree with ours for copies on one node, in every file and directory", function()
    assert.same({ files = { more = 0, less = 0 }, dirs = { more = 0, less = 0 } },
      compare("same_node_copy"))
  end)

  it("[223, 225 G] differ for tarballs where a directory fits: all of it stays", function()
    assert.same({ files = { more = 518, less = 0 }, dirs = { more = 866, less = 0 } },
      compare("tar"))
  end)

  it("[178, 183, 184, 221 G] differ for uploads there, and in directories without files", function()
    assert.same({ files = { more = 518, less = 0 }, dirs = { more = 474, less = 69 } },
      compare("upload"))
  end)

  it("[220] matches as recorded, each pattern on each text", function()
    local pairs_compared = 0
    for pattern, matches in pairs(recorded.fnmatch_matches) do
      local wanted = {}
      for _, index in ipairs(matches) do wanted[index + 1] = true end
      for i, text in ipairs(recorded.fnmatch_candidates) do
        assert.equal(wanted[i] or false, fs.match(pattern, text), pattern .. " on " .. text)
        pairs_compared = pairs_compared + 1
      end
    end
    assert.equal(12 * 556, pairs_compared)
    assert.equal(10, #recorded.decisions)
    assert.same({ 300, 256 }, { #recorded.files, #recorded.dirs })
  end)

  it("[139] are led by the list of the node sync", function()
    assert.same({ unpack(recorded.default_exclude) }, ckpt.SyncerCallback.EXCLUDE)
  end)
end)
