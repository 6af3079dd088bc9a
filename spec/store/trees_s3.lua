-- Run by trees_s3_spec.sh against an S3 server: trees of files in a bucket. Prints TAP.

local ckpt = require "ckpt"

local fs, store = ckpt.fs, ckpt.store
local count = 0

local function check(what, ok, ...)
  count = count + 1
  print(("%s %d - %s"):format(ok and "ok" or "not ok", count, what))
  if not ok then print("# " .. tostring((...))) end
end

local dir = assert(fs.temporary_directory())
local uri = "s3://ckpt-test/trees/one"
local MIB = 2 ^ 20

assert(fs.mkdirs(dir .. "/src/empty"))
assert(fs.mkdirs(dir .. "/src/sub"))
assert(fs.write(dir .. "/src/large", ("x"):rep(20 * MIB)))
assert(fs.write(dir .. "/src/sub/odd \255 name", "b"))
assert(fs.symlink("large", dir .. "/src/link"))

local function up() return assert(store.upload { dir = dir .. "/src", uri = uri }):wait() end
local function down(to, merge)
  return assert(store.download { uri = uri, dir = dir .. "/" .. to, merge = merge }):wait()
end

local moved, text = up()
check("a tree is sent, a large file in parts", moved and moved.bytes == 20 * MIB + 1, text)
moved, text = up()
check("and not again", moved and moved.bytes == 0, text)
assert(fs.write(dir .. "/src/large", ("y"):rep(20 * MIB)))
moved, text = up()
check("what changed replaces what was there", moved and moved.bytes == 20 * MIB, text)

moved, text = down("to")
check("it comes back", moved and moved.bytes == 20 * MIB + 1, text)
check("with its content", fs.read(dir .. "/to/large") == fs.read(dir .. "/src/large"))
check("with odd names", fs.read(dir .. "/to/sub/odd \255 name") == "b")
check("with links and empty directories",
  fs.readlink(dir .. "/to/link") == "large" and fs.exists(dir .. "/to/empty"))

local place = assert(store.open(uri))
assert(place:put("sub/odd \255 name", "B"))
local _, _, name = down("to2")
check("what was changed there is found out", name == "ECORRUPT", name)
check("and nothing of it is shown", not fs.exists(dir .. "/to2"))

local job = assert(store.upload { dir = dir .. "/src", uri = "s3://ckpt-test/trees/two" })
job:cancel()
check("an upload can be cancelled", select(3, job:wait()) == "ECANCELED")

local data, tag
assert(place:put("lease", "1"))
data, tag = place:get_tagged("lease")
check("who saw it last replaces an object", data == "1" and place:replace_if("lease", "2", tag))
check("and nobody else", select(3, place:replace_if("lease", "3", tag)) == "ECONFLICT")

moved, text = store.delete { uri = uri }:wait()
check("a tree is removed whole", moved and #place:list() == 0, text)
place:close()
check("and is not there then", select(3, down("to3")) == "ENOENT")
_, _, name = store.upload { dir = dir .. "/src", uri = "s3://no-such-bucket-here/x" }:wait()
check("a bucket that is not there is told", name == "ENOSTORE", name)

fs.remove_tree(dir)
print("1.." .. count)
