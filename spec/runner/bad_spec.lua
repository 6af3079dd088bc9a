--- A failed start counts against a checkpoint only if the job opened it.
local cjson = require "cjson"
local place = require "place"
local support = require "support"
local must = place.must

describe("a start that fails", function()
  local dir

  before_each(function()
    dir = place.begin()
    place.save("out", 1, 2)
    must "sync out --to store --settle 0"
  end)
  after_each(function() os.execute("rm -rf '" .. dir .. "'") end)

  local function start(job, code)
    local _, err = place.ends(code,
      ("run --dir out --to store --continue-run --settle 0 -- sh -c '%s'"):format(job))
    return err
  end

  local function shown(name) return cjson.decode(must("show store " .. name .. " --json")) end

  it("is held against the checkpoint that was read, and its last lines are kept", function()
    for i = 1, 3 do
      local err = start('cat "$CKPT_RESUME/model.bin"; echo >&2; echo "size mismatch" >&2; exit 3',
        3)
      if i < 3 then assert.matches("suspect", err, 1, true) end
    end
    assert.is_nil(shown("checkpoint-2").bad)
    assert.matches("checkpoint%-1", (start("echo $CKPT_RESUME >&2", 0)))
    local bad = shown "checkpoint-2"
    assert.is_true(bad.bad)
    assert.matches("the job said last: size mismatch", bad.bad_reason, 1, true)
    assert.matches("size mismatch", bad.bad_lines, 1, true)
    assert.is_nil(bad.bad_lines:find "ckpt%-lua: ")
    assert.matches("\nit said    [^\n]+\n", (must "show store checkpoint-2"))
  end)

  it("is not held against one that nobody opened", function()
    for _ = 1, 5 do
      local err = start('ls -l "$CKPT_RESUME" >/dev/null; echo "no module named x" >&2; exit 1', 1)
      assert.matches("never opened a file of", err, 1, true)
      assert.matches("no module named x", err, 1, true)
    end
    assert.is_nil(shown("checkpoint-2").bad)
    assert.matches("checkpoint%-2", (start("echo $CKPT_RESUME >&2", 0)))
    assert.is_nil(support.read(dir .. "/out.ckpt/starts.json"))
  end)
end)
