-- Saving states in processes that are killed, or that save side by side: items 87, 91, 95, 97.

local ckpt = require "ckpt"
local states = require "contract.state_support"
local support = require "support"

local rooted = states.rooted

-- A job that saves over and over: two states with one number, which never may differ. Its
-- arguments: how many numbers of restarts it uses, and a file that makes it stop.
local JOB = [[
  local ckpt = require "ckpt"
  local Count = ckpt.State:extend("Count")
  local n = 0
  function Count:save(file) return file:write(n, (" "):rep(n % 7 * 3000)) end
  local a, b = Count("a"), Count("b")
  local ffi = require "ffi"
  ffi.cdef "int setenv(const char *, const char *, int);"
  while true do
    n = n + 1
    ffi.C.setenv("ADAPTDL_NUM_RESTARTS", tostring(n * 5 % tonumber(arg[1])), 1)
    local path, text, name = ckpt.save_all_states()
    if not path then error(text) end
    io.stdout:write(n, "\n")
    io.stdout:flush()
    if io.open(arg[2]) then os.exit(0, true) end
  end]]

describe("saving states", function()
  local job = os.tmpname()
  support.write(job, JOB)
  teardown(function() os.remove(job) end)

  local function command(root, restarts)
    return ("env ADAPTDL_CHECKPOINT_PATH='%s' CKPT_LUADIR='%s/lua' '%s/libexec/ckpt-script' " ..
      "'%s' %d '%s.stop'"):format(root, support.root, support.build, job, restarts, root)
  end

  -- How long a job takes here and now until it has saved once, in seconds; so many times that.
  local function moments(count)
    local root = support.directory()
    support.write(root .. ".stop", "")
    local begin = ckpt.clock.monotonic()
    support.sh(command(root, 1))
    local took = ckpt.clock.monotonic() - begin
    os.execute(("rm -rf '%s' '%s.stop'"):format(root, root))
    return took * count
  end

  -- Starts jobs side by side and kills them; returns what they printed.
  local function killed(root, restarts, seconds, count)
    return support.sh(("for i in $(seq %d); do timeout -s KILL %.2f %s 2>&1 & done; wait")
      :format(count or 1, seconds, command(root, restarts)))
  end

  -- What the two states hold; nil: nothing was saved.
  local function load(root)
    states.job(root, 1)
    local registry = ckpt.Registry()
    local values = {}
    for i, name in ipairs { "a", "b" } do
      local state = states.Text(name, "", registry)
      if registry:load_state(state) then values[i] = assert(tonumber(state.value)) end
    end
    registry:close()
    return values[1], values[2]
  end

  it("[87] a kill at any moment leaves a whole checkpoint, the one told of or newer",
    rooted(function(root)
      local last = 0
      for round = 1, 8 do
        local out = killed(root, round % 2 == 0 and 3 or 1, moments(0.5 + round / 2))
        local told = 0
        for line in out:gmatch "[^\n]+" do told = math.max(told, tonumber(line) or 0) end
        local a, b = load(root)
        assert.equal(a, b)
        if told > 0 then
          assert.truthy(a == told or a == told + 1, ("told %d, loaded %s"):format(told, a))
        end
        last = last + told
      end
      assert.is_true(last > 0)
    end))

  it("[97 G] what the killed have left is removed by the next save", rooted(function(root)
    for _ = 1, 3 do
      killed(root, 2, moments(2))
    end
    states.lay(root, { ["_checkpoint.abcdef/states/x"] = "left", ["_checkpoint.ghijkl/"] = true,
      ["_checkpoint.ghijkl/lock"] = "", ["_checkpoint.mnopqr/"] = true })
    -- A directory of somebody's own is none of that.
    states.lay(root, { ["_checkpoint.bak/model"] = "kept" })
    local registry = ckpt.Registry()
    states.Text("only", "1", registry)
    states.job(root, 7)
    assert.equal(root, registry:save_all_states())
    assert.same({ ["checkpoint-7/"] = true, ["checkpoint-7/only"] = "1",
      ["_checkpoint.?/"] = true, ["_checkpoint.?/model"] = "kept" }, states.tree(root))
    registry:close()
  end))

  it("[95 G] processes that save side by side never mix, whatever numbers they have",
    rooted(function(root)
      local out = killed(root, 2, moments(8), 3)
      assert.is_nil(out:find("error", 1, true), out)
      local a, b = load(root)
      assert.truthy(a)
      assert.equal(a, b)
      local registry = ckpt.Registry()
      states.Text("a", "5", registry)
      states.Text("b", "5", registry)
      states.job(root, 3)
      assert.equal(root, registry:save_all_states())
      assert.same({ ["checkpoint-3/"] = true, ["checkpoint-3/a"] = "5",
        ["checkpoint-3/b"] = "5" }, states.tree(root))
      registry:close()
    end))

  it("[111] a state is found at any moment while another replica saves", rooted(function(root)
    local saver = io.popen(("timeout -s KILL 60 %s 2>&1"):format(command(root, 4)))
    assert.equal("1", saver:read "*l")
    for _ = 1, 100 do
      local a, b = load(root)
      assert.truthy(a and b)
      assert.is_true(b >= a)
    end
    support.write(root .. ".stop", "")
    saver:close()
    os.remove(root .. ".stop")
  end))
end)
