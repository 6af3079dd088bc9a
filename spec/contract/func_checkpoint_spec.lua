-- ckpt.FuncCheckpointUtil: null and temporary checkpoints, and how a temporary one is made to stay.

local ckpt = require "ckpt"
local functions = require "contract.function_support"
local support = require "support"

local util, fs = ckpt.FuncCheckpointUtil, ckpt.fs
local trial = functions.trial

-- A temporary checkpoint with a model in it.
local function temporary(t)
  local path = assert(util.mk_temp_checkpoint_dir(t.dir))
  support.write(path .. "/model", "m")
  return path
end

describe("ckpt.FuncCheckpointUtil", function()
  it("[232] marks with empty files in the checkpoint directory", trial(function(t)
    local null = assert(util.mk_null_checkpoint_dir(t.dir))
    assert.equal("", support.read(null .. "/.null_marker"))
    local temp = assert(util.mk_temp_checkpoint_dir(t.dir))
    assert.equal("", support.read(temp .. "/.temp_marker"))
    assert.same({ ".null_marker", ".temp_marker" }, { util.NULL_MARKER, util.TEMP_MARKER })
  end))

  it("[237 G] has one null checkpoint, named as in later releases, made afresh each time",
    trial(function(t)
      local path = assert(util.mk_null_checkpoint_dir(t.dir))
      assert.equal(t.dir .. "/checkpoint_-00001", path)
      support.write(path .. "/left", "x")
      assert.equal(path, (util.mk_null_checkpoint_dir(t.dir)))
      assert.same({
        "checkpoint_-00001/", "checkpoint_-00001/.is_checkpoint=",
        "checkpoint_-00001/.null_marker=",
      }, t.tree())
    end))

  it("[237 G] replaces a null checkpoint that an older release has left", trial(function(t)
    assert(fs.mkdirs(t.dir .. "/checkpoint_-1"))
    support.write(t.dir .. "/checkpoint_-1/.null_marker", "")
    assert.is_true(util.is_null_checkpoint(t.dir .. "/checkpoint_-1"))
    assert(util.mk_null_checkpoint_dir(t.dir))
    assert.is_false(fs.exists(t.dir .. "/checkpoint_-1"))
  end))

  it("[238 G] is left out of what is synced, by the name that the exclude list has",
    trial(function(t)
      local path = assert(util.mk_null_checkpoint_dir(t.dir))
      assert.is_true(fs.excluded({ "./checkpoint_-00001" }, path:sub(#t.dir + 2)))
    end))

  it("[239] names temporary checkpoints by six hex digits", trial(function(t)
    local seen = {}
    for _ = 1, 20 do
      local path = assert(util.mk_temp_checkpoint_dir(t.dir))
      local digits = path:match("^" .. t.dir:gsub("%p", "%%%0") .. "/checkpoint_tmp(.*)$")
      assert.is_truthy(digits and digits:find "^%x%x%x%x%x%x$" and digits == digits:lower())
      assert.is_nil(seen[path])
      seen[path] = true
      assert.same({ ".is_checkpoint=", ".temp_marker=" }, functions.tree(path))
      assert.is_true(fs.excluded({ "./checkpoint_tmp*" }, path:sub(#t.dir + 2)))
    end
  end))

  it("[240] tells them by the marker alone", trial(function(t)
    local null, temp = util.mk_null_checkpoint_dir(t.dir), util.mk_temp_checkpoint_dir(t.dir)
    assert.is_true(util.is_null_checkpoint(null))
    assert.is_false(util.is_temp_checkpoint_dir(null))
    assert.is_false(util.is_null_checkpoint(temp))
    assert.is_true(util.is_temp_checkpoint_dir(temp))
    assert(fs.mkdirs(t.dir .. "/any"))
    support.write(t.dir .. "/any/.null_marker", "")
    assert.is_true(util.is_null_checkpoint(t.dir .. "/any"))
    assert.is_false(util.is_null_checkpoint(t.dir .. "/gone"))
    assert.is_false(util.is_temp_checkpoint_dir(t.dir .. "/gone"))
    assert.error_matches(function() util.is_null_checkpoint { x = 1 } end, "is a table, not a path")
  end))

  it("[241 G] copies a temporary checkpoint to the permanent one of a step", trial(function(t)
    local temp = temporary(t)
    assert(fs.mkdirs(t.dir .. "/checkpoint_000004"))
    support.write(t.dir .. "/checkpoint_000004/old", "o")
    local path = assert(util.create_perm_checkpoint(temp, t.dir, 4))
    assert.equal(t.dir .. "/checkpoint_000004", path)
    assert.same({ ".is_checkpoint=", "model=m" }, functions.tree(path))
    assert.is_false(util.is_temp_checkpoint_dir(path))
  end))

  it("[241 G] refuses a permanent one", trial(function(t)
    local path = assert(ckpt.TrainableUtil.make_checkpoint_dir(t.dir, 1))
    for _, wrong in ipairs { path, t.dir .. "/gone" } do
      assert.error_matches(function() util.create_perm_checkpoint(wrong, t.dir, 2) end,
        "no temporary checkpoint")
    end
    assert.same({ "checkpoint_000001/", "checkpoint_000001/.is_checkpoint=" }, t.tree())
  end))

  it("[241 G] wants the number of the step", trial(function(t)
    assert.error_matches(function() util.create_perm_checkpoint(temporary(t), t.dir) end,
      "`step` is a nil")
  end))

  it("[241 G] takes a path below the working directory", trial(function(t)
    local temp = temporary(t)
    local up = ("../"):rep(select(2, fs.cwd():gsub("/[^/]", ""))) .. temp:sub(2)
    assert.equal("m", support.read(assert(util.create_perm_checkpoint(up, t.dir, 3)) .. "/model"))
  end))

  it("[241 G] has one directory for a step, also beside an older release", trial(function(t)
    assert(ckpt.fs.mkdirs(t.dir .. "/checkpoint_5"))
    local path = assert(util.create_perm_checkpoint(temporary(t), t.dir, 5))
    assert.equal(t.dir .. "/checkpoint_000005", path)
    assert.is_false(fs.exists(t.dir .. "/checkpoint_5"))
  end))

  it("[242] leaves the source without its marker: it is converted once", trial(function(t)
    local temp = temporary(t)
    assert(util.create_perm_checkpoint(temp, t.dir, 1))
    assert.same({ ".is_checkpoint=", "model=m" }, functions.tree(temp))
    assert.error_matches(function() util.create_perm_checkpoint(temp, t.dir, 1) end,
      "no temporary checkpoint")
  end))

  -- The file system as it was at each of its calls is what a crash there would have left.
  it("[243 G] has no half checkpoint under a permanent name, and no temporary one that looks "
    .. "permanent before its copy is there, at any step", trial(function(t)
      local temp = temporary(t)
      assert(ckpt.TrainableUtil.make_checkpoint_dir(t.dir, 6))
      support.write(t.dir .. "/checkpoint_000006/old", "o")
      local looks = 0
      local originals = {}
      local function look()
        looks = looks + 1
        local tree = table.concat(functions.tree(t.dir .. "/checkpoint_000006"), " ")
        assert(tree == ".is_checkpoint= old=o" or tree == ".is_checkpoint= model=m", tree)
        assert(util.is_temp_checkpoint_dir(temp) or tree == ".is_checkpoint= model=m", tree)
      end
      for _, name in ipairs { "mkdirs", "copy_tree", "replace_tree", "remove", "remove_tree" } do
        originals[name] = fs[name]
        fs[name] = function(...)
          look()
          local a, b, c = originals[name](...)
          look()
          return a, b, c
        end
      end
      local fine, why = pcall(util.create_perm_checkpoint, temp, t.dir, 6)
      for name, fn in pairs(originals) do fs[name] = fn end
      assert(fine, why)
      assert.is_true(looks >= 6)
      assert.same({ ".is_checkpoint=", "model=m" }, functions.tree(t.dir .. "/checkpoint_000006"))
    end))

  it("[243 G] leaves nothing that looks like a checkpoint when it is killed after the copy",
    trial(function(t)
      local temp = temporary(t)
      local copy_tree = fs.copy_tree
      fs.copy_tree = function(...)
        assert(copy_tree(...))
        error "killed"
      end
      local fine = pcall(util.create_perm_checkpoint, temp, t.dir, 6)
      fs.copy_tree = copy_tree
      assert.is_false(fine)
      assert.is_true(util.is_temp_checkpoint_dir(temp))
      for _, dir in ipairs(fs.glob(t.dir .. "/checkpoint_*")) do
        assert(dir == temp or not fs.exists(dir .. "/.is_checkpoint"), dir)
      end
    end))

  it("[243 G] keeps all that was there when the copy fails", trial(function(t)
    local temp = temporary(t)
    assert(ckpt.TrainableUtil.make_checkpoint_dir(t.dir, 6))
    assert(fs.symlink("/no/such/file", temp .. "/dangling")) -- what it leads to cannot be copied
    local before = #assert(fs.walk(t.dir))
    local path, text, name = util.create_perm_checkpoint(temp, t.dir, 6)
    assert.is_nil(path)
    assert.is_string(text)
    assert.is_string(name)
    assert.equal(before, #assert(fs.walk(t.dir)))
    assert.is_true(util.is_temp_checkpoint_dir(temp))
  end))

  it("[244] follows links, keeps modes and times", trial(function(t)
    local temp = temporary(t)
    support.write(t.dir .. "/outside", "o")
    assert(fs.symlink(t.dir .. "/outside", temp .. "/link"))
    assert(fs.chmod(temp .. "/model", 384 + 64)) -- 0700
    assert(fs.utime(temp .. "/model", 1000000000.5))
    local path = assert(util.create_perm_checkpoint(temp, t.dir, 1))
    assert.equal("file", fs.lstat(path .. "/link").type)
    assert.equal("o", support.read(path .. "/link"))
    assert.equal(448, fs.stat(path .. "/model").mode)
    assert.equal(1000000000.5, fs.stat(path .. "/model").mtime)
  end))
end)
