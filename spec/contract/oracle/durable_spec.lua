-- What was recorded of Ray 1.0.0's DurableTrainable, through ours: each call of its client, the
-- tree after each step, the mapping of paths. Where we are better on purpose the row here says
-- which item of docs/contract.md it is, what our answer is, and what the contract says of Ray's,
-- which the record has to have.
local ckpt = require "ckpt"
local recording = require "recording"
local support = require "support"

local recorded = recording.read "durable"
local fs = ckpt.fs

-- A name of the later releases, as the recording has it (item 233 of docs/contract.md).
local function short(text) return (text:gsub("checkpoint_0+(%d)", "checkpoint_%1")) end

local function plain(value) return value ~= recording.null and value or nil end

describe("the recorded DurableTrainable", function()
  local dir, log_dir, outside, client, mine

  support.with_directory(function(made)
    dir = made
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
  local DELETE = { "delete", "s3://bkt/exp/trial/checkpoint_1" }
  -- The log directory after the first save.
  local SAVED = {
    "checkpoint_1/", "checkpoint_1/.is_checkpoint", "checkpoint_1/m",
    "checkpoint_1/m.tune_metadata",
  }

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
    -- The items that make our answer another one: our answer, and what Ray's is.
    local INSIDE = { error = { "ValueError",
      "`checkpoint_dir` must be `self.logdir`, or a sub-directory." }, client = {}, tree = SAVED }
    local function saved_at(place) return { ret = place, client = UPLOAD, tree = SAVED } end
    local BETTER = {
      ["save(logdir)"] = function(row) -- 122
        return { ret = "$L/checkpoint_1/m", client = UPLOAD, tree = expected(row).tree }, INSIDE
      end,
      ["save(logdir/sub)"] = function(row) -- 122
        local list = expected(row).tree
        for _, entry in ipairs { "", "checkpoint_1/", "checkpoint_1/.is_checkpoint",
          "checkpoint_1/m", "checkpoint_1/m.tune_metadata" } do
          list[#list + 1] = "sub/" .. entry
        end
        table.sort(list)
        return { ret = "$L/sub/checkpoint_1/m", client = UPLOAD, tree = list }, INSIDE
      end,
      ["save(outside)"] = function(row) -- 122, 124
        return { error = "is not in the log directory", client = {}, tree = expected(row).tree },
          saved_at "$O/checkpoint_1/m"
      end,
      ["save('rel')"] = function(row) -- 123, 124
        return { error = "is not in the log directory", client = {}, tree = expected(row).tree },
          saved_at "relx/checkpoint_1/m"
      end,
      ["delete"] = function(row) -- 129: it waits
        local wanted = expected(row)
        wanted.client = { row.client[1], { "wait" } }
        return wanted, { client = { DELETE }, tree = {} }
      end,
      ["delete again"] = function(row) -- 128: the remote twin is deleted all the same
        local wanted = expected(row)
        wanted.client = { DELETE, { "wait" } }
        return wanted, { client = {}, tree = {} }
      end,
    }
    local _, restore_log = ckpt.testing.capture_log()
    for _, row in ipairs(rows_of "save dir rule, order of operations, delete") do
      local got = steps[row.step]()
      local wanted, peer = (BETTER[row.step] or expected)(row)
      if peer then
        local recorded_one = expected(row)
        recorded_one.error = plain(row.error)
        assert.same(peer, recorded_one, row.step)
      else
        assert.is_nil(plain(row.error), row.step)
      end
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

  -- os.path.relpath() of Python, from the log directory /L.
  local function relative(path)
    local rest = path:gsub("^%$L", "/L"):gsub("/+$", "")
    if rest == "/L" then return "." end
    if rest:sub(1, 6) == "/L/../" then return "../" .. rest:sub(7) end
    if rest:sub(1, 3) == "/L/" then return rest:sub(4) end
    return "../../" .. rest:sub(2) -- it stood two levels deep when it was recorded
  end

  it("[130, 131 G, 132] maps each path as the peer did, or refuses it", function()
    local compared = { same = 0, better = 0 }
    for _, row in ipairs(rows_of "_storage_path") do
      local path = row.step:match "^_storage_path (.*)$"
      assert.same({ ret = "s3://bkt/exp/trial/" .. relative(path), client = {}, tree = {} },
        expected(row), row.step)
      assert.is_nil(plain(row.error), row.step)
      local uri, _, name = mine:storage_path((path:gsub("^%$L", dir .. "/log")))
      if path == "$L" then -- without a dot
        assert.equal("s3://bkt/exp/trial", uri)
      elseif relative(path):find("..", 1, true) then
        assert.same({ nil, "EINVAL" }, { uri, name })
      else
        assert.equal(row.ret, uri, row.step)
      end
      local is_same = uri == row.ret
      compared[is_same and "same" or "better"] = compared[is_same and "same" or "better"] + 1
    end
    assert.same({ same = 2, better = 3 }, compared)
  end)

  -- Items 117, 118: of the programs aws and gsutil, which are not here. A trial's client is any
  -- store's, and takes what the store takes.
  it("has, beside these rows, only what is about the programs aws and gsutil", function()
    local COMMANDS = {
      ["s3://b/p"] = { "aws s3 sync {source} {target} --only-show-errors",
        "aws s3 rm {target} --recursive --only-show-errors" },
      ["gs://b/p"] = { "gsutil rsync -r {source} {target}", "gsutil rm -r {target}" },
    }
    local REFUSAL = { "ValueError", "Upload uri must start with one of: ('s3://', 'gs://')" }
    local others = 0
    for _, case in ipairs(recorded.cases) do
      local uri = case.name:match "^client (.*)$"
      if uri then
        local wanted = { name = case.name, ok = COMMANDS[uri],
          error = not COMMANDS[uri] and REFUSAL or nil }
        assert.same(wanted, case)
        others = others + 1
      end
    end
    assert.same({ 9, 7 }, { #recorded.cases, others })
  end)
end)
