-- What was recorded of Ray 1.0.0's function checkpoints and function runner, replayed on ours: all
-- operations on directories with the tree after each, and the recorded lives of runners.
--
-- Names are those of later releases (items 233, 237): `renamed` turns the recorded ones into them.
-- A temporary directory's digits are bound to ours when it first appears.

local ckpt = require "ckpt"
local functions = require "contract.function_support"
local peer_words = require "contract.peer_words"
local recording = require "recording"
local support = require "support"

local util, TrainableUtil, fs = ckpt.FuncCheckpointUtil, ckpt.TrainableUtil, ckpt.fs
local trial = functions.trial

local recorded = recording.read "func_checkpoint"

local function value(of)
  if of == recording.null then return nil end
  return of
end

-- A replay in a directory: translates what was recorded into what is expected of us.
local function translation(dir)
  local bound = {} -- recorded name of a temporary directory -> ours
  local self = {}

  -- checkpoint_7 -> checkpoint_000007
  function self.path(text)
    text = text:gsub("^%$L", dir):gsub("checkpoint_(%-?%d+)%f[/%z]", function(number)
      return ("checkpoint_%06d"):format(tonumber(number))
    end)
    return (text:gsub("checkpoint_tmp%x%x%x%x%x%x", function(name) return bound[name] or name end))
  end

  -- Binds the temporary name of a recorded result to that of ours.
  function self.bind(theirs, ours)
    theirs, ours = theirs:match "checkpoint_tmp%x%x%x%x%x%x", ours:match "checkpoint_tmp%x+"
    if theirs then bound[theirs] = ours end
  end

  function self.tree(list)
    local mine = {}
    for i, line in ipairs(list) do mine[i] = self.path(line) end
    table.sort(mine)
    return mine
  end
  return self
end

describe("the recorded operations on checkpoint directories", function()
  local operations = {
    null = function(dir) return util.mk_null_checkpoint_dir(dir) end,
    temp = function(dir) return util.mk_temp_checkpoint_dir(dir) end,
    is_null = function(_, path) return util.is_null_checkpoint(path) end,
    is_temp = function(_, path) return util.is_temp_checkpoint_dir(path) end,
    perm = function(dir, path, args) return util.create_perm_checkpoint(path, dir, args.step) end,
    find = function(_, path) return TrainableUtil.find_checkpoint_dir(path) end,
    rm = function(_, path) return fs.remove_tree(path) end,
    make = function(dir, _, args)
      return TrainableUtil.make_checkpoint_dir(dir, value(args.index), args.override)
    end,
  }

  -- Files f0, f1, ...: those with an even number in a/b, but only the first and third of them.
  function operations.fill(_, path, args, tree)
    local numbers, wanted = {}, args.n
    for _, line in ipairs(tree) do
      local inside, data = line:match("^" .. fs.base(path):gsub("%p", "%%%0") .. "/(.-f%d)=(.*)$")
      if inside then
        numbers[inside:match "%d$"] = true
        assert(fs.mkdirs(fs.parent(path .. "/" .. inside)))
        support.write(path .. "/" .. inside, data)
        args.n = args.n - 1
      end
    end
    for i = 0, wanted - 1 do assert(numbers[tostring(i)], "fill: no file f" .. i) end
  end

  local errors = { AssertionError = "raises", FileNotFoundError = "ENOENT" }

  local replayed, steps = 0, 0
  for _, case in ipairs(recorded.cases) do
    it(("[233 G] case %d"):format(case.id), trial(function(t)
      local mine = translation(t.dir)
      for number, step in ipairs(case.steps) do
        local where = ("case %d, step %d (%s)"):format(case.id, number, step.op)
        local path = step.args.path and mine.path(step.args.path)
        local tree = mine.tree(step.tree)
        local fine, got, _, name = pcall(operations[step.op], t.dir, path, step.args, tree)
        local failed = not fine and "raises" or got == nil and name or nil
        local wanted = value(step.error) and errors[step.error[1]]
        local is_said = not value(step.error)
        for _, each in ipairs(peer_words.of_step(step.op, step.args.path or "")) do
          is_said = is_said or table.concat(each, ": ") == table.concat(step.error, ": ")
        end
        assert(is_said, where)
        -- Nothing is there to be removed: the recorder's own rmtree failed, ours is done already.
        if step.op == "rm" then wanted, got = nil, nil end
        assert.equal(wanted, failed, where)
        if step.op == "temp" then
          mine.bind(step.ret, got)
          tree = mine.tree(step.tree)
        end
        local ret = value(step.ret)
        if type(ret) == "string" then ret = mine.path(ret) end
        if not failed and step.op ~= "fill" and step.op ~= "rm" then
          assert.equal(ret, got, where)
        end
        assert.same(tree, t.tree(), where)
        steps = steps + 1
      end
      replayed = replayed + 1
    end))
  end

  it("were all compared", function()
    assert.equal(24, replayed)
    assert.equal(157, steps)
  end)
end)

describe("the recorded lives of function runners", function()
  local lives, compared = {}, 0
  for _, life in ipairs(recorded.runner) do lives[life.name] = life end

  -- Walks through the events of a life: each call wants the next one to have this name, and the
  -- tree after it to be ours; it answers the recorded value.
  local function events_of(t, name)
    local events, at, mine = assert(lives[name], name).events, 0, translation(t.dir)
    local function path(text) return mine.path(text) end
    local function event(expected, ours)
      at = at + 1
      assert.equal(events[at][1], expected)
      local error_of = peer_words.EVENTS[expected]
      local told = value(events[at][2])
      -- A step after the error: it is told anew.
      if error_of then assert.same(told == "False" and told or error_of, told, expected) end
      for _, line in ipairs(events[at][3]) do
        local theirs = line:match "^checkpoint_tmp%x+"
        if theirs and ours then mine.bind(theirs, ours) end
      end
      -- Their table is a pickle, ours JSON.
      local tree = mine.tree(events[at][3])
      for i, line in ipairs(tree) do
        tree[i] = line:gsub("^(checkpoint_%d+/checkpoint)=.*$", '%1={"w": 1}')
      end
      table.sort(tree)
      assert.same(tree, t.tree(), name .. ": " .. expected)
      compared = compared + 1
      return value(events[at][2]), path
    end
    return event, function() assert.equal(#events, at) end
  end

  local function counting(_, reporter, checkpoint)
    local count = 0
    if checkpoint then count = tonumber(support.read(checkpoint .. "/c")) + 1 end
    while true do
      local dir = assert(reporter:make_checkpoint_dir(count))
      support.write(dir .. "/c", tostring(count))
      reporter:set_checkpoint(dir)
      reporter { x = count, checkpointed = true }
      count = count + 1
    end
  end

  local function class_of(fn)
    local Class = ckpt.FunctionRunner:extend "Recorded"
    function Class:_trainable_func(...) return fn(self.config, select(2, ...)) end
    return Class
  end

  it("[262, 263] null checkpoint", trial(function(t)
    local event, over = events_of(t, "null checkpoint")
    local function plain(_, reporter, checkpoint)
      for i = 0, 9 do reporter { x = i, restored = checkpoint ~= nil } end
    end
    local runner = t.make(class_of(plain))
    local saved = assert(runner:save())
    local theirs, path = event("save before any step")
    assert.equal(path(theirs), saved)
    local other = t.make(class_of(plain))
    assert(other:restore(saved))
    event "restored null"
    local result = assert(other:train())
    theirs = event "train"
    assert.same(theirs, { result.x, result.restored, result.training_iteration,
      result.should_checkpoint == true })
    saved = assert(other:save())
    assert.equal(path(event "save"), saved)
    over()
  end))

  it("[252, 266, 270, 273, 278] path checkpoints, object round trip, temporary to permanent",
    trial(function(t)
      local event, over = events_of(t, "path checkpoints, object round trip, temp to permanent")
      local runner = t.make(class_of(counting))
      for _ = 1, 3 do
        local result = assert(runner:train())
        assert.same((event "train"),
          { result.x, result.training_iteration, result.should_checkpoint })
      end
      local saved = assert(runner:save())
      local theirs, path = event "save"
      assert.equal(path(theirs), saved)
      local result = assert(runner:train())
      assert.same((event "train"), { result.x, result.should_checkpoint })
      local object = assert(runner:save_to_object())
      event "save_to_object"
      local files = {}
      local out = support.directory()
      assert(ckpt.tar.unpack_text(object.data, out .. "/out"))
      for i, entry in ipairs(assert(fs.walk(out .. "/out"))) do files[i] = entry.path end
      os.execute("rm -rf " .. out)
      assert.same((event "object"), { object.checkpoint_name, files })
      runner:stop()
      local other = t.make(class_of(counting))
      assert(other:restore_from_object(object))
      event("restored from object", other.temp_checkpoint_dir)
      saved = assert(other:save())
      assert.equal(path(event "save right after restore (temp becomes permanent)"), saved)
      result = assert(other:train())
      assert.same((event "train"), { result.x, result.training_iteration })
      assert.is_true(other:stop())
      event "stopped"
      local third = t.make(class_of(counting))
      assert(third:restore_from_object(object))
      result = assert(third:train())
      assert.same((event("train without save", third.temp_checkpoint_dir)),
        { result.x, result.training_iteration })
      assert.is_true(third:stop())
      event "stopped: temp removed"
      over()
    end))

  it("[261, 271] save with a path refused; restore is not a new checkpoint", trial(function(t)
    local event, over = events_of(t, "save with a path refused; restore is not a new checkpoint")
    local runner = t.make(class_of(counting))
    assert(runner:train())
    local saved = assert(runner:save())
    local theirs, path = event "save"
    assert.equal(path(theirs), saved)
    assert.is_false((pcall(runner.save, runner, t.dir .. "/x")))
    event "save(path)"
    local other = t.make(class_of(counting))
    assert(other:restore(saved))
    local result = assert(other:train())
    assert.same((event "train after restore"),
      { result.x, result.training_iteration, result.should_checkpoint })
    over()
  end))

  it("[260, 284] function returns: duplicate of last result", trial(function(t)
    local event, over = events_of(t, "function returns: duplicate of last result")
    local runner = t.wrap(function(_, reporter) reporter { x = 1 } end)
    local result = assert(runner:train())
    assert.same((event "train"), { result.x, result.__duplicate__ == true })
    result = assert(runner:train())
    local theirs = event "after return"
    assert.same({ theirs[1], value(theirs[2]), theirs[3] },
      { result.x, result.training_iteration, result.__duplicate__ })
    local saved = assert(runner:save())
    local wanted, path = event "save"
    assert.equal(path(wanted), saved)
    over()
  end))

  it("[259 G] exception surfaces only after results are drained; then again", trial(function(t)
    -- Recorded beside it: a further step started the function anew. Ours tells the error again.
    local event, over = events_of(t, "exception surfaces only after results are drained")
    local runner = t.wrap(function(_, reporter)
      reporter { x = 1 }
      error "boom"
    end)
    local result = assert(runner:train())
    assert.same((event "train"), { result.x })
    local none, text = runner:train()
    assert.is_nil(none)
    assert.is_truthy(text:find "boom")
    assert.equal("TuneError", (event "train2")[1])
    event "train2"
    assert.same({ none, text, "EINTERNAL" }, { runner:train() })
    over()
  end))

  it("[260] no report at all", trial(function(t)
    local event, over = events_of(t, "no report at all")
    local runner = t.wrap(function(_) end)
    local result = assert(runner:train())
    local keys = {}
    for key in pairs(result) do keys[#keys + 1] = key end
    table.sort(keys)
    local theirs = event "train"
    assert.same({ value(theirs[1]), theirs[2], theirs[3] },
      { result.training_iteration, result.__duplicate__, keys })
    over()
  end))

  it("[249, 250, 251, 265, 267] set_checkpoint rules", trial(function(t)
    local event, over = events_of(t, "set_checkpoint rules")
    local runner = t.wrap(function(_) end)
    local reporter = runner._status_reporter
    for _, path in ipairs { "/nope", t.dir } do
      assert.is_false((pcall(reporter.set_checkpoint, reporter, path)))
      event("set_checkpoint " .. (path == t.dir and "$L" or path))
    end
    reporter:set_checkpoint { w = 1 }
    assert.equal((event "fresh"), reporter:has_new_checkpoint())
    assert.same((event "get"), reporter:get_checkpoint())
    event "fresh after get"
    assert.is_false(reporter:has_new_checkpoint())
    local saved = assert(runner:save())
    local theirs, path = event "save dict"
    assert.equal(path(theirs), saved)
    reporter:set_checkpoint(7)
    assert.is_false((pcall(runner.save, runner)))
    event "save int"
    over()
  end))

  -- Lua has no default values, and no arguments by name: the nearest of each.
  -- luacheck: push ignore 212
  local SHAPES = {
    ["(config)"] = function(config) end,
    ["(config,checkpoint_dir)"] = function(config, checkpoint_dir) end,
    ["(config,checkpoint_dir=None)"] = function(config, checkpoint_dir) end,
    ["(config,reporter)"] = function(config, reporter) end,
    ["()"] = function() end,
    ["(config,x)"] = function(config, x) end,
    ["(x)"] = function(x) end,
    ["(config,x=1)"] = function(config, ...) end,
    ["(config,**kw)"] = function(config, ...) end,
    ["(*a)"] = function(...) end,
  }
  -- luacheck: pop

  it("[280] wrap", function()
    local count = 0
    for shape, fn in pairs(SHAPES) do
      local fine = pcall(ckpt.wrap_function, fn, { warn = false })
      local life = assert(lives["wrap " .. shape])
      assert.equal(life.ok, fine, shape)
      assert.same(peer_words.WRAP[life.name], life.error, shape)
      count = count + 1
    end
    assert.equal(10, count)
  end)

  it("were all compared", function()
    local count = 0
    for _, life in ipairs(recorded.runner) do count = count + #(life.events or {}) end
    assert.equal(17, #recorded.runner)
    assert.equal(count, compared)
  end)
end)
