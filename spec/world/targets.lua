-- What specs about several targets of one directory share: each test has a directory of its own,
-- with the checkpoints in out, and targets by name. They are beside it, or with S3_DATA (what the
-- bucket of a running server holds) in that bucket.

local assert = require "luassert"
local support = require "support"
local place = require "place"
local CKPT = support.runner

local targets = { has = place.has, lacks = place.lacks, must = place.must_sh }

local bucket = os.getenv("S3_DATA")
local dir, tag

--- Makes the test's directory, and returns it.
function targets.begin()
  dir = place.begin()
  tag = dir:match("[^/]+$")
  return dir
end

function targets.finish()
  os.execute("chmod -R u+w '" .. dir .. "'; rm -rf '" .. dir .. "'")
  if bucket then os.execute("rm -rf '" .. bucket .. "/" .. tag .. "'") end
end

--- What a target is called, and where its files are.
function targets.uri(name)
  return bucket and ("s3://ckpt-test/%s/%s"):format(tag, name) or "file://" .. dir .. "/" .. name
end

function targets.data(name) return (bucket and bucket .. "/" .. tag or dir) .. "/" .. name end

--- In the test's directory, as a shell of its own, which may exit.
function targets.sh(command) return place.sh("( " .. command .. "\n)") end

--- A command that has to work, with a target's data: DATA in the command.
function targets.change(name, command)
  return targets.must((command:gsub("DATA", (targets.data(name):gsub("%%", "%%%%")))))
end

--- All that ckpt-lua said, and how it ended.
function targets.ckpt(args, ...)
  return place.ckpt(args:format(...))
end

--- Complete checkpoints as a framework leaves them.
function targets.save(...)
  for _, n in ipairs { ... } do
    targets.must(("mkdir -p out/checkpoint-%d && cd out/checkpoint-%d && sleep 0.02 && " ..
      "head -c 20000 /dev/urandom >model.bin && echo '{\"n\":%d}' >trainer_state.json"):format(
      n, n, n))
  end
end

--- How many a command committed, by its last line, its code, and all that it said.
function targets.committed(args, ...)
  local text, code = targets.ckpt(args, ...)
  local made = text:match("(%d+) committed[,;]")
  assert.is_truthy(made, args .. " has no last line:\n" .. text)
  return tonumber(made), code, text
end

function targets.sync(to, more)
  return targets.committed("sync out --settle 0 --to '%s' %s", targets.uri(to), more or "")
end

--- The target itself has each of them, byte for byte.
function targets.must_hold(to, ...)
  for _, n in ipairs { ... } do
    local name = "checkpoint-" .. n
    targets.must(("rm -rf back; '%s' restore '%s' %s --dir back && diff -r back/%s out/%s"):format(
      CKPT, targets.uri(to), name, name, name))
  end
end

--- A sync commits so many, ends well, and then the target has these.
function targets.must_sync(to, count, ...)
  local made, code, text = targets.sync(to)
  assert.are.equal(count, made, text)
  assert.are.equal(0, code, text)
  targets.must_hold(to, ...)
end

return targets
