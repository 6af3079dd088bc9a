-- A start looks at the processes of the machine once, not once for each checkpoint that it finds:
-- on a shared node others have thousands of them, and root sees all.

local support = require "support"
local CKPT, sh = support.runner, support.sh

local UNITS = 300

local dir

before_each(function() dir = sh("mktemp -d -p /var/tmp"):match("%S+") end)
after_each(function() sh("rm -rf '" .. dir .. "'") end)

describe("a start with many torn checkpoints", function()
  it("looks at all processes once for all of them", function()
    if sh("command -v strace") == "" then return pending("strace is not there") end
    sh(("cd '%s' && for i in $(seq %d); do mkdir -p out/checkpoint-$i; " ..
      "echo $i >out/checkpoint-$i/model.safetensors; done"):format(dir, UNITS))
    -- Somebody writes beside them, so no single answer does for all.
    local text = sh(("cd '%s' && { sleep 100 >out/notes & } && " ..
      "env ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 timeout 60 " ..
      "strace -f -qq --seccomp-bpf -e trace=openat -o trace '%s' sync --dir out --to store; " ..
      "kill $!"):format(dir, CKPT))
    local walks = tonumber(sh(("grep -cE '\"/proc\", ' '%s/trace'"):format(dir)):match("%d+"))
    assert.is_true(walks >= 1, text)
    assert.is_true(walks <= 20, walks .. " walks over /proc for " .. UNITS .. " checkpoints")
  end)

  it("counts warnings of one kind after the tenth, and tells the count", function()
    sh(("cd '%s' && for i in $(seq %d); do mkdir -p out/checkpoint-$i; " ..
      "echo $i >out/checkpoint-$i/model.safetensors; done"):format(dir, UNITS))
    local function lines(flags)
      local all, kinds = {}, { seen = 0, unsaved = 0 }
      local out = sh(("cd '%s' && '%s' sync --dir out --to store %s"):format(dir, CKPT, flags))
      for line in out:gmatch "[^\n]+" do
        all[#all + 1] = line
        if line:find "warning: checkpoint%-%d+ is not taken for a checkpoint: " then
          kinds.seen = kinds.seen + 1
        elseif line:find "warning: checkpoint%-%d+ %(step %d+%) was not saved: " then
          kinds.unsaved = kinds.unsaved + 1
        end
      end
      return all, kinds, out
    end
    local all, kinds, out = lines ""
    assert.are.same({ seen = 10, unsaved = 10 }, kinds, out)
    assert.is_truthy(out:find(
      "warning: and 290 more of this kind, for example: checkpoint%-%d+ is not taken"), out)
    assert.is_truthy(out:find(
      "warning: and 290 more of this kind, for example: checkpoint%-%d+ %(step %d+%) was not "),
      out)
    assert.is_true(#all <= 25, out)
    assert.is_truthy(all[#all]:find "300 not proven whole; NOT proven whole: checkpoint%-300 %(",
      out)
    -- Who asks for all of them gets them.
    all, kinds, out = lines "--verbose"
    assert.are.same({ seen = UNITS, unsaved = UNITS }, kinds, #all .. " lines")
    assert.is_nil(out:find("more of this kind", 1, true))
  end)
end)
