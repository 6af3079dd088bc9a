-- Real runs whose job moves whole directories of checkpoints about, faster than the run looks. Each
-- checkpoint lies in a directory of its own: of one directory only the newest has to be saved.
local support = require "support"

-- What each job begins with: `mk` makes a whole checkpoint, `exchange A B` swaps two names at once.
local opening = [[
set -e
mk() { mkdir -p "$1"; echo "data of $1, $RANDOM" >"$1/model.bin"; echo >"$1/DONE"; }
exchange() {
  luajit -e 'local ffi = require "ffi"
    ffi.cdef "int renameat2(int, const char *, int, const char *, unsigned);"
    assert(ffi.C.renameat2(-100, arg[1], -100, arg[2], 2) == 0, "RENAME_EXCHANGE")' - "$1" "$2"
}
mkdir -p away
for i in a b c; do mk out/run1/$i/checkpoint-1; done
sleep 0.7
]]

local closing = "sleep 0.4; mk out/run1/e/checkpoint-9; echo over >over\n"

local patterns = {
  {
    name = "moves a run out and back, time and again",
    job = [[
for i in 1 2 3 4 5; do mv out/run1 away/run1; mv away/run1 out/run1; sleep 0.15; done
]],
    kept = { "a/checkpoint-1", "b/checkpoint-1", "c/checkpoint-1", "e/checkpoint-9" },
  },
  {
    name = "swaps a run with a link",
    job = [[
ln -s /nowhere away/link
for i in 1 2 3 4 5 6; do exchange out/run1 away/link; sleep 0.01; done
]],
    kept = { "a/checkpoint-1", "b/checkpoint-1", "c/checkpoint-1", "e/checkpoint-9" },
  },
  {
    name = "puts another directory into a run's place",
    job = [[
for k in 1 2 3; do
  for i in a b c d; do mk stage/$i/checkpoint-1; done
  mv out/run1 away/$k; mv stage out/run1; sleep 0.2
done
]],
    kept = { "a/checkpoint-1", "c/checkpoint-1", "d/checkpoint-1", "e/checkpoint-9" },
  },
  {
    name = "moves a run out and writes it anew at once",
    job = [[
for k in 1 2 3; do
  mv out/run1 away/$k
  for i in a b c d; do mk out/run1/$i/checkpoint-1; done; sleep 0.2
done
]],
    kept = { "a/checkpoint-1", "c/checkpoint-1", "d/checkpoint-1", "e/checkpoint-9" },
  },
}

describe("a job that", function()
  for _, pattern in ipairs(patterns) do
    it(pattern.name .. " goes on, and all that is complete is saved", function()
      local run = "cd %s && mkdir out && timeout 60 %s run --dir out --to %s/store --marker DONE -q"
      local dir = support.directory()
      support.write(dir .. "/job.sh", opening .. pattern.job .. closing)
      local out, status = support.sh((run .. " -- bash job.sh"):format(dir, support.runner, dir))
      assert.equal(0, status, out)
      assert.equal("over\n", support.read(dir .. "/over"))
      local ending = support.read(dir .. "/out.ckpt/exit.json") or "no exit.json"
      assert.is_truthy(ending:find('"exit_code":%s*0'), ending)
      local verified, sound = support.sh(("%s verify %s/store"):format(support.runner, dir))
      assert.equal(0, sound, verified)
      for _, name in ipairs(pattern.kept) do
        local listed = verified:find("run1/" .. name, 1, true)
        assert.is_truthy(listed, name .. " is not in:\n" .. verified)
        assert.is_truthy(support.read(("%s/store/run1/%s/model.bin"):format(dir, name)), name)
      end
      support.sh("rm -rf " .. dir)
    end)
  end
end)
