-- Training functions and programs whose checkpoints are in a store before `save` returns.

local ckpt = require "ckpt"
local support = require "support"

local fs = ckpt.fs

describe("a durable training function", function()
  local dir, uri, options

  support.with_directory(function(made)
    dir = made
    uri = "file://" .. dir .. "/store"
    options = { logdir = dir .. "/log" }
  end)

  local function count(config, checkpoint_dir)
    local n = checkpoint_dir and tonumber(fs.read(checkpoint_dir .. "/n")) or 0
    while n < config.to do
      n = n + 1
      assert(ckpt.session.checkpoint_dir(n, function(at)
        assert(fs.write(at .. "/n", tostring(n)))
      end))
      ckpt.session.report { n = n }
    end
  end

  local function stored()
    local list = {}
    for _, entry in ipairs(fs.walk(dir .. "/store") or {}) do
      if entry.path:find "/n$" then list[#list + 1] = entry.path end
    end
    return list
  end

  local function lose_the_machine() assert(fs.remove_tree(dir .. "/log")) end

  it("goes on from the store after its machine was lost", function()
    local Count = ckpt.wrap_function(count, { durable = true, name = "Count" })
    local first = Count(uri, { to = 5 }, options)
    assert.is_true(first.uses_cloud_checkpointing)
    assert.equal(1, first:train().n)
    assert.equal(2, first:train().n)
    local path = assert(first:save())
    assert.same({ "checkpoint_000001/n", "checkpoint_000002/n" }, stored())
    assert.equal(3, first:train().n) -- nobody saves this one
    assert(first:stop())
    lose_the_machine()

    local second = Count(uri, { to = 5 }, options)
    assert(second:restore(path))
    assert.same({ 2, 3 }, { second.iteration, second:train().n })
    assert.is_true(second:delete_checkpoint(path))
    assert.same({ "checkpoint_000001/n" }, stored())
    assert(second:stop())
  end)

  it("leaves nothing of an object in the store", function()
    local Count = ckpt.wrap_function(count, { durable = true })
    local runner = Count(uri, { to = 5 }, options)
    runner:train()
    local object = assert(runner:save_to_object())
    assert.same({}, stored())
    local other = Count(uri, { to = 5 }, { logdir = dir .. "/other" })
    assert(other:restore_from_object(object))
    assert.equal(2, other:train().n)
    assert(other:save()) -- while the temporary checkpoint of the object is there
    assert.same({ "checkpoint_000002/n" }, stored())
    assert(other:stop())
    assert(runner:stop())
  end)

  it("says that its checkpoint is not saved if the store has not got it", function()
    local Refusing = ckpt.wrap_function(count, { durable = true, mixins = { {
      create_storage_client = function()
        return { sync_up = function() return true end, sync_down = function() return true end,
          delete = function() return true end, wait = function() return nil, "no route", "EIO" end }
      end,
    } } })
    local runner = Refusing(uri, { to = 2 }, options)
    runner:train()
    assert.same({ nil, "no route", "EIO" }, { runner:save() })
    assert(runner:stop())
  end)

  it("may be a program", function()
    local Train = ckpt.wrap_command({ "sh", "-c", ([[
      n=0
      [ -z "$CKPT_RESUME" ] || n=$(cat $CKPT_RESUME/n)
      while [ $n -lt 4 ]; do
        n=$((n + 1)); mkdir -p $CKPT_DIR/step$n; echo $n >$CKPT_DIR/step$n/n
        %s notify n=$n checkpoint=step$n || exit 0
      done]]):format(support.runner .. "") }, { durable = true, output = false })
    local first = Train(uri, {}, options)
    assert.equal(1, assert(first:train()).n)
    local path = assert(first:save())
    assert(first:stop())
    lose_the_machine()
    local second = Train(uri, {}, options)
    assert(second:restore(path))
    assert.equal(2, assert(second:train()).n)
    assert(second:stop())
  end)

  it("is asked for by the option, which is all that it takes", function()
    local function refusal(...)
      local fine, why = pcall(...)
      assert.is_false(fine)
      return why
    end
    assert.matches("the option `durable`",
      refusal(ckpt.wrap_function, count, { mixins = { ckpt.DurableTrainable } }))
    assert.matches("`durable` is true or false",
      refusal(ckpt.wrap_function, count, { durable = uri }))
    assert.matches("the first argument is the URI of the remote directory",
      refusal(ckpt.wrap_function(count, { durable = true }), { to = 5 }, options))
  end)
end)
