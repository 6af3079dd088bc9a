-- Who names a wrong place, a home directory or a whole disk, learns it soon: it is not walked to
-- its end. What lies beside the runs of a place does not hide them.

local place = require "place"
local support = require "support"
local sh, sh_ends = place.sh, place.sh_ends
local CKPT = support.runner

-- Directories `count` x 40 x 50 below `top`, with a file in each of the last ones.
local function forest(top, count)
  sh(([[python3 -c '
import os
for i in range(%d * 2000):
    place = "%s/a%%d/b%%d/c%%d" %% (i // 2000, i // 50 %% 40, i %% 50)
    os.makedirs(place)
    open(place + "/notes.txt", "w").close()']]):format(count, top))
end

-- What the runner says, its exit code, and how many listings it read for that.
local function traced(args)
  local out, code = sh(("env ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 timeout 120 " ..
    "strace -f -qq --seccomp-bpf -e trace=getdents64 -o trace '%s' %s"):format(CKPT, args))
  return out, code, tonumber(sh "grep -c ' = 0$' trace":match "%d+")
end

describe("a place that is no target", function()
  support.with_directory(nil, place.begin_in_memory)

  it("is not walked to its end", function()
    if support.sh "command -v strace" == "" then return pending "strace is not there" end
    forest("wrong", 6)
    for _, verb in ipairs { "ls wrong", "gc wrong -n" } do
      local out, code, listed = traced(verb)
      assert(code == 4 and out:find("wrong: no run was found in the first 5000 dir", 1, true), out)
      assert(out:find("name the target itself", 1, true), out)
      -- Each is listed twice; there are 12,247.
      assert(listed > 5000 and listed < 15000,
        ("%s read %d listings: %s"):format(verb, listed, out))
    end
  end)

  it("is searched as far as it takes where it is small", function()
    sh "mkdir -p place/a/b/c/d/e; echo x >place/a/notes"
    local out = sh_ends(4, ("'%s' ls place"):format(CKPT))
    assert.is_truthy(out:find("holds no run: nothing was ever committed there", 1, true), out)
  end)

  it("shows its runs where much else lies beside them, and says where it stopped", function()
    sh("mkdir -p out/checkpoint-1 && echo x >out/checkpoint-1/model.bin && " ..
      "echo '{}' >out/checkpoint-1/trainer_state.json")
    for _, target in ipairs { "place", "place/exp/b", "place/exp/a" } do
      sh_ends(0, ("'%s' sync out --to %s --settle 0 --state state/$(basename %s)")
        :format(CKPT, target, target))
    end
    forest("place/foreign", 3)
    local out = sh_ends(0, ("'%s' ls place"):format(CKPT))
    for _, name in ipairs { "exp/a/checkpoint%-1", "exp/b/checkpoint%-1", "\ncheckpoint%-1" } do
      assert.is_truthy(("\n" .. out):find(name), name .. ": " .. out)
    end
    assert.is_truthy(out:find("warning: foreign/a", 1, true), out)
  end)
end)
