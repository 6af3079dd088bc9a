-- What was recorded of Ray 1.0.0's DurableTrainable, through ours: each call of its client, the
-- tree after each step, the mapping of paths. Where we are better on purpose the row here says
-- which item of docs/contract.md it is, and what our answer is.
local ckpt = require "ckpt"
local json = require "cjson"
local support = require "support"

local recorded = json.decode(support.read(support.root .. "/spec/data/oracle/durable.json"))
local fs = ckpt.fs

-- A name of the later releases, as the recording has it (item 233 of docs/contract.md).
local function short(text) return (text:gsub("checkpoint_0+(%d)", "checkpoint_%1")) end

local function plain(value) return value ~= json.null and value or nil end

describe("the recorded DurableTrainable", function()
  local dir, log_dir, outside, client, mine

  before_each(function()
    dir = support.directory()
    log_dir, outside = dir .. "/log/", dir .. "/out"
    local Mine = ckpt.DurableTrainable:extend "Mine"
    function Mine.create_storage_client()
      local recorder = {}
      for _, method in ipairs { "sync_up", "sync_down", "delete", "wait" } do
        recorder[method] = function(_, ...)
          client[#client + 1] = { method, ... }
          return method ~= "wait" or nil
        end
      end
      return recorder
    end
    function Mine.save_checkpoint(_, directory)
      assert(fs.write(directory .. "/m", "m"))
      return directory .. "/m"
    end
    function Mine.load_checkpoint() end
    client = {}
    mine = Mine("s3://bkt/exp/trial", {}, { logdir = log_dir })
    mine.iteration = 1
  end)

  after_each(function() support.sh("rm -rf " .. dir) end)

  -- With the names of the recording for our directories.
  local function named(text)
    text = short(text):gsub("/+$", function(slashes) return slashes end)
    if text:sub(1, #log_dir) == log_dir then return "$L/" .. text:sub(#log_dir + 1) end
    if text:sub(1, #outside) == outside then return "$O" .. text:sub(#outside + 1) end
    return text
  end

  local function tree()
    local list = {}
    for _, entry in ipairs(assert(fs.walk(log_dir))) do
      list[#list + 1] = short(entry.path) .. (entry.type == "directory" and "/" or "")
    end
    table.sort(list)
    return list
  end

  local function outcome(fn, ...)
    client = {}
    local ok, result, text, name = pcall(fn, mine, ...)
    local calls = {}
    for i, call in ipairs(client) do
      calls[i] = {}
      for k, argument in ipairs(call) do calls[i][k] = named(argument) end
    end
    return {
      ret = ok and type(result) == "string" and named(result) or nil,
      error = not ok and result or name and text or nil,
      client = calls, tree = tree(),
    }
  end

  local function expected(row)
    local list = {}
    for i, entry in ipairs(row.tree) do list[i] = entry end
    table.sort(list)
    return { ret = plain(row.ret), error = nil, client = row.client, tree = list }
  end

  local function rows_of(name)
    for _, case in ipairs(recorded.cases) do
      if case.name == name then return case.rows end
    end
  end

  -- The log directory as it is with what a refused save would have left.
  local UPLOAD = { { "sync_up", "$L/", "s3://bkt/exp/trial" }, { "wait" } }

  it("[119, 121, 125, 127, 130, 132] is answered in the same order, row by row", function()
    local path = nil
    local compared, better = 0, 0
    local steps = {
      ["save()"] = function()
        local got = outcome(mine.save)
        path = fs.join(log_dir, "checkpoint_000001/m")
        return got
      end,
      ["save(logdir)"] = function() return outcome(mine.save, log_dir) end,
      ["save(logdir/sub)"] = function() return outcome(mine.save, log_dir .. "sub") end,
      ["save(outside)"] = function() return outcome(mine.save, outside) end,
      ["save('rel')"] = function() return outcome(mine.save, "relx") end,
      restore = function() return outcome(mine.restore, path) end,
      delete = function() return outcome(mine.delete_checkpoint, path) end,
      ["delete again"] = function() return outcome(mine.delete_checkpoint, path) end,
    }
    -- The items that make our answer another one, and that answer.
    local BETTER = {
      ["save(logdir)"] = function(row) -- 122
        return { ret = "$L/checkpoint_1/m", client = UPLOAD, tree = expected(row).tree }
      end,
      ["save(logdir/sub)"] = function(row) -- 122
        local list = expected(row).tree
        for _, entry in ipairs { "", "checkpoint_1/", "checkpoint_1/.is_checkpoint",
          "checkpoint_1/m", "checkpoint_1/m.tune_metadata" } do
          list[#list + 1] = "sub/" .. entry
        end
        table.sort(list)
        return { ret = "$L/sub/checkpoint_1/m", client = UPLOAD, tree = list }
      end,
      ["save(outside)"] = function(row) -- 122, 124
        return { error = "is not in the log directory", client = {}, tree = expected(row).tree }
      end,
      ["save('rel')"] = function(row) -- 123, 124
        return { error = "is not in the log directory", client = {}, tree = expected(row).tree }
      end,
      ["delete"] = function(row) -- 129: it waits
        local wanted = expected(row)
        wanted.client = { row.client[1], { "wait" } }
        return wanted
      end,
      ["delete again"] = function(row) -- 128: the remote twin is deleted all the same
        local wanted = expected(row)
        wanted.client = { { "delete", "s3://bkt/exp/trial/checkpoint_1" }, { "wait" } }
        return wanted
      end,
    }
    local _, restore_log = ckpt.testing.capture_log()
    for _, row in ipairs(rows_of "save dir rule, order of operations, delete") do
      local got = steps[row.step]()
      local wanted = (BETTER[row.step] or expected)(row)
      if wanted.error then
        assert.is_truthy(got.error:find(wanted.error, 1, true), row.step)
        got.error = wanted.error
      end
      assert.same(wanted, got, row.step)
      compared, better = compared + 1, better + (BETTER[row.step] and 1 or 0)
      -- What only we have saved does not count for the rows that follow.
      support.sh("rm -rf " .. log_dir .. "sub")
    end
    restore_log()
    assert.same({ 8, 6 }, { compared, better })
  end)

  it("[130, 132] maps paths in the log directory as the peer did", function()
    local compared = 0
    for _, row in ipairs(rows_of "_storage_path") do
      local inside = row.step:match("^_storage_path %$L/([^.].*)$")
      if inside then
        assert.equal(row.ret, (mine:storage_path(log_dir .. inside)), row.step)
        compared = compared + 1
      end
    end
    assert.equal(2, compared)
  end)

  it("[131 G] maps the log directory without a dot, and refuses what the peer let out", function()
    local compared = 0
    for _, row in ipairs(rows_of "_storage_path") do
      local path = row.step:match("^_storage_path (.*)$"):gsub("^%$L", dir .. "/log")
      local uri, _, name = mine:storage_path(path)
      if row.ret == "s3://bkt/exp/trial/." then
        assert.equal("s3://bkt/exp/trial", uri)
        compared = compared + 1
      elseif row.ret:find("/../", 1, true) then
        assert.is_nil(uri, row.step)
        assert.equal("EINVAL", name)
        compared = compared + 1
      end
    end
    assert.equal(3, compared)
  end)

  it("has, beside these rows, only what is about the programs aws and gsutil", function()
    local others = 0
    for _, case in ipairs(recorded.cases) do
      if not case.rows then
        assert.is_truthy(case.name:find("^client "), case.name) -- items 117, 118
        others = others + 1
      end
    end
    assert.same({ 9, 7 }, { #recorded.cases, others })
  end)
end)
