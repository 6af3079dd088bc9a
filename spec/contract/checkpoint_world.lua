--- A little world for tests of Checkpoint: a directory with files, a temporary directory of its
--- own, a store, and a clock whose sleeps a test may use to do something while the tested call
--- waits.

local ffi = require "ffi"
local ckpt = require "ckpt"
local put = require("contract.files").put
local locks = require "ckpt.ray.checkpoint.checkpoint_locks"
local records = require "ckpt.ray.checkpoint.checkpoint_records"
local shelf = require "contract.shelf"
local source = require "ckpt.ray.checkpoint.checkpoint_source"
local support = require "support"

ffi.cdef "int setenv(const char *, const char *, int);"

local fs = ckpt.fs

local World = {}
World.__index = World

local FILES = { ["a.txt"] = "data:a", ["sub/b.txt"] = "data:b", ["sub/deep/c.bin"] = "data:c" }

local world = { files = FILES }

local function set(name, value) ffi.C.setenv(name, value, 1) end

--- Opens one; close() ends it.
function world.open()
  local self = setmetatable({ dir = fs.real(support.directory()) }, World)
  self.old = { TMPDIR = os.getenv("TMPDIR") or "", HOME = os.getenv("HOME") or "" }
  self.tmp, self.home = self.dir .. "/tmp", self.dir .. "/home"
  for _, path in ipairs { self.tmp, self.home } do assert(fs.mkdirs(path)) end
  set("TMPDIR", self.tmp)
  set("HOME", self.home)
  self.lines = {}
  self.sink = ckpt.log.use(function(level, text)
    table.insert(self.lines, level .. ": " .. text)
  end)
  return self
end

function World:close()
  ckpt.clock.use(nil)
  ckpt.log.use(self.sink)
  shelf.on_get = nil
  for name, value in pairs(self.old) do set(name, value) end
  assert(fs.remove_tree(self.dir))
end

--- Another directory for temporary files.
function World:set_tmp(path)
  assert(fs.mkdirs(path))
  self.tmp = path
  set("TMPDIR", path)
end

--- Writes files below a directory of the world; returns its path.
function World:tree(name, files)
  local root = self.dir .. "/" .. name
  assert(fs.mkdirs(root))
  for path, data in pairs(files or FILES) do put(root, path, data) end
  return root
end

function World:local_checkpoint(name) return ckpt.Checkpoint(self:tree(name or "source")) end

--- A checkpoint in the store.
function World:remote(name, files)
  return ckpt.Checkpoint("shelf://at" .. self:tree(name or "remote", files))
end

--- How often objects of a remote checkpoint were fetched.
function World:fetched(name)
  local text = fs.read(shelf.log(self.dir .. "/" .. (name or "remote"))) or ""
  local lines = support.lines(text)
  return #lines, lines
end

--- The files below a directory, by path; a directory as true.
function world.files_of(dir)
  local found = {}
  for _, entry in ipairs(fs.walk(dir) or {}) do
    if entry.type == "file" then found[entry.path] = fs.read(dir .. "/" .. entry.path) end
  end
  return found
end

--- What is in the temporary directory, but for the one of the locks.
function World:left()
  local names = {}
  for _, name in ipairs(fs.list(self.tmp)) do
    if not name:find("^ckpt%-%d+$") then names[#names + 1] = name end
  end
  return names
end

--- The lock files that are there.
function World:lock_files()
  local found = {}
  for _, entry in ipairs(fs.walk(self.tmp)) do
    if entry.path:find("%.lock$") then found[#found + 1] = entry.path end
  end
  return found
end

--- Calls a function at each sleep of the tested code, with the count. Time passes by itself.
function world.at_sleep(fn)
  local count, now = 0, 1000
  local function time()
    now = now + 0.001
    return now
  end
  ckpt.clock.use {
    now = time, monotonic = time,
    sleep = function(seconds)
      now, count = now + seconds, count + 1
      if count > 10000 then error("it waits for ever") end
      fn(count)
    end,
  }
end

--- Does what another process does that has fetched a checkpoint into a directory.
function World.fake_fetch(checkpoint, target, files)
  for path, data in pairs(files or FILES) do put(target, path, data) end
  local record = assert(records.of(target, {
    source = source.name(checkpoint), listing = source.listing(checkpoint), handed = true,
  }))
  assert(records.write(assert(locks.of(target)), record))
end

--- The lock files of a place.
function World.lock_names(target) return assert(locks.of(target)) end

--- Holds a lock of a place: "target", "copy" or "readers".
function World.hold(target, kind)
  return assert(ckpt.lock.take(assert(locks.of(target))[kind or "target"]))
end

--- Starts a script in a process of its own, with the store, `checkpoint` (a copy) and `support`.
--- Returns a function that waits for its end and gives what it printed, and its exit code.
function World:start(checkpoint, text)
  self.scripts = (self.scripts or 0) + 1
  local path = ("%s/script%d.lua"):format(self.dir, self.scripts)
  support.write(path, ([[
    package.path = "%s/spec/?.lua;" .. package.path
    local ckpt, support = require "ckpt", require "support"
    local shelf = require "contract.shelf"
    local checkpoint = ckpt.Checkpoint.deserialize(assert(support.read(%q)))
    local _ = ckpt, shelf, checkpoint
  ]]):format(support.root, path .. ".checkpoint"):gsub("\n%s*", " ") .. "\n" .. text)
  support.write(path .. ".checkpoint", checkpoint:serialize())
  local pipe = assert(io.popen(("cd '%s' && { CKPT_LUADIR='%s' CKPT_BUILD='%s' '%s' '%s' 2>&1; "
    .. "printf '\\n%%s' $?; }"):format(support.root, os.getenv("CKPT_LUADIR") or "lua",
      support.build, support.build .. "/libexec/ckpt-script", path)))
  return function()
    local out = pipe:read("*a")
    pipe:close()
    local said, code = out:match("^(.*)\n(%d+)$")
    return said, tonumber(code)
  end
end

--- Starts so many scripts at once, and waits for their ends, which have to be good. Returns what
--- each printed. NUMBER in the text is the script's own.
function World:together(count, checkpoint, text)
  local ends = {}
  for i = 1, count do ends[i] = self:start(checkpoint, (text:gsub("NUMBER", i))) end
  for i = 1, count do
    local said, code = ends[i]()
    assert(code == 0, said)
    ends[i] = said
  end
  return ends
end

return world
