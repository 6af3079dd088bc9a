-- How often the disk is waited for: by what a command does, not by how many files it does it to.

local support = require "support"
local place = require "place"
local must = place.must_sh
local CKPT = support.runner

local dir

local function can_trace()
  local _, code = support.sh("strace -f -e trace=fsync -o /dev/null true")
  return code == 0
end

--- The calls that flush, of the command and of all that it starts.
local function flushes(args)
  must(("strace -f -qq -e trace=fsync,fdatasync,sync,syncfs,sync_file_range,msync -o calls " ..
    "'%s' %s"):format(CKPT, args))
  local calls, count = support.read(dir .. "/calls"), 0
  for _ in calls:gmatch("sync[%w_]*%(") do count = count + 1 end
  return count, calls
end

place.with_directory(function(made) dir = made end)

describe("unpack", function()
  it("flushes all of it at once, however many files there are", function()
    if support.sanitized or not can_trace() then return pending("needs strace, and ptrace") end
    must([[mkdir -p few/checkpoint-1 many/checkpoint-1/a/b/c; echo x >few/checkpoint-1/f
      for i in $(seq 200); do
        echo $i >many/checkpoint-1/f$i; echo $i >many/checkpoint-1/a/b/c/f$i
      done]])
    must(("'%s' pack few few.tar && '%s' pack many many.tar"):format(CKPT, CKPT))
    local one, first = flushes("unpack few.tar --dir one")
    local all, last = flushes("unpack many.tar --dir all")
    assert.is_true(one > 0, first) -- the file system, and the directory in which it appears
    assert.are.equal(one, all, last)
    assert.is_truthy(last:find("syncfs(", 1, true), last)
    must("diff -r many all")
  end)
end)
