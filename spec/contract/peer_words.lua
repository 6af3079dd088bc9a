--- What the recorded Ray says where the library says it in other words: texts of its errors, by the
--- rows of its recordings. The specs hold the recordings to this.

local assert = require "luassert"

local words = {}

local GONE = [[The new `ray.train.Checkpoint` class does not support `%s()`. ]]

-- Ray's help for names that are gone; texts were recorded up to 300 characters.
local CUT = 300
local HELP = {
  ["from_dict to_dict from_bytes to_bytes get_internal_representation"] =
    "Instead, only directories are supported.\n\nExample to store a dictionary in a checkpoint:"
    .. "\n\nimport os, tempfile\nimport ray.cloudpickle as pickle\nfrom ray import train\n"
    .. "from ray.train import Checkpoint\n\nwith tempfile.TemporaryDirectory()",
  ["from_uri to_uri uri"] =
    "To create a checkpoint from remote storage, create a `Checkpoint` using its constructor "
    .. "instead of `from_directory`.\nExample: `Checkpoint(path=\"s3://a/b/c\")`.\n"
    .. "Then, access the contents of the checkpoint with `checkpoint.as_directory()` /",
  ["get_preprocessor set_preprocessor"] =
    "To include preprocessor information in checkpoints, pass it as metadata in the "
    .. "<Framework>Trainer constructor.\nExample: `TorchTrainer(..., metadata={...})`.\n"
    .. "After training, access it in the checkpoint via `checkpoint.get_met",
}

-- By the row; a text that begins with "^" is a pattern.
local CHECKPOINT = {
  ["construct 'rel/x'"] = { "ArrowInvalid", "URI has empty scheme: 'rel/x'" },
  ["construct 'memory://x'"] = {
    "ArrowInvalid", "Unrecognized filesystem type in URI: memory://x" },
  ["construct 's4://b/k'"] = { "ArrowInvalid", "Unrecognized filesystem type in URI: s4://b/k" },
  ["construct 'file://host/x'"] = {
    "ArrowInvalid", "Unsupported hostname in non-Windows local URI: 'file://host/x'" },
  ["repr of empty path"] = {
    "AttributeError", "'NoneType' object has no attribute 'type_name'" },
  fspath = { "TypeError", "You cannot use `Checkpoint` objects directly as paths. Use "
    .. "`Checkpoint.to_directory()` or `Checkpoint.as_directory()` instead." },
  ["class attribute nonsense"] = {
    "AttributeError", "type object 'Checkpoint' has no attribute 'nonsense'" },
  ["metadata file is garbage"] = { "JSONDecodeError",
    "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)" },
  ["metadata file is empty"] = {
    "JSONDecodeError", "Expecting value: line 1 column 1 (char 0)" },
  ["update when stored metadata is a list"] = {
    "AttributeError", "'list' object has no attribute 'update'" },
  ["set_metadata on a missing dir"] = { "FileNotFoundError", "[Errno 2] Failed to open local "
    .. "file '$B/none/.metadata.json'. Detail: [errno 2] No such file or directory" },
  ["metadata path is a directory"] = { "OSError",
    "^Cannot open for reading: path '%$B/src%w+/%.metadata%.json' is a directory$" },
  ["checkpoint path is a file"] = { "IsADirectoryError",
    "[Errno 21] Failed to open local file '$B/t8'. Detail: [errno 21] Is a directory" },
  ["target is a file"] = { "FileExistsError", "[Errno 17] File exists: '$B/t9'" },
}

for names, help in pairs(HELP) do
  for name in names:gmatch "%S+" do
    CHECKPOINT["class attribute " .. name] = {
      "AttributeError", (GONE:format(name) .. help):sub(1, CUT) }
    CHECKPOINT["instance attribute " .. name] = {
      "AttributeError", ("'Checkpoint' object has no attribute '%s'"):format(name) }
  end
end
CHECKPOINT["instance attribute nonsense"] = {
  "AttributeError", "'Checkpoint' object has no attribute 'nonsense'" }

-- Readers that find their mark gone say so; nobody else does.
local MARK = "^Could not remove %$B/tmp/checkpoint_tmp_%x+%.del_lock_%d+ deletion file lock%. "
  .. "Traceback:$"
local LOGS = {
  ["nested as_directory in one process: inner exit removes the dir the outer still uses"] = true,
  ["... and the outer exit logs a warning"] = true,
  ["lock removed by the user inside: warning, dir still removed"] = true,
}

--- Holds an error of train_checkpoint_2.10.0 to what Ray says, and its log.
---@param row table
function words.check_checkpoint(row)
  local wanted = CHECKPOINT[row.name]
  assert.equal(wanted ~= nil, row.error ~= nil, row.name)
  if wanted then
    local error_type, text = wanted[1], wanted[2]
    if text:sub(1, 1) == "^" and row.error[2]:find(text) then text = row.error[2] end
    assert.same({ error_type, text }, { unpack(row.error) }, row.name)
  end
  assert.equal(LOGS[row.name] and 1 or 0, #row.log, row.name)
  for _, line in ipairs(row.log) do
    assert.same({ 2, "WARNING" }, { #line, line[1] }, row.name)
    assert.truthy(line[2]:find(MARK), line[2])
  end
end

local UPLOADS_NOWHERE = "`upload_dir` enables syncing to cloud storage, but `syncer=None` disables "
  .. "syncing. Either remove the `upload_dir`, or set `syncer` to 'auto' or a cust"
local UNKNOWN = "Unknown syncer type passed in SyncConfig: <class '%s'>. Note that custom sync "
  .. "functions and templates have been deprecated. Instead you can implement"

--- The error of a row of syncconfig; nil: none.
---@param upload_dir? string
---@param syncer any "SYNCER": one of the user's; false: none
function words.of_sync_config(upload_dir, syncer)
  local uploads = upload_dir ~= nil and upload_dir ~= ""
  if uploads and syncer == false then return { "ValueError", UPLOADS_NOWHERE } end
  if not uploads and syncer == "SYNCER" then
    return { "ValueError", "Must specify an `upload_dir` to use a custom `syncer`." }
  end
  if uploads and syncer ~= "auto" and syncer ~= "SYNCER" then
    return { "ValueError", UNKNOWN:format(type(syncer) == "string" and "str" or "int") }
  end
end

local WRAP = "Unknown argument found in the Trainable function. The function args must include a "
  .. "'config' positional parameter. Any other args must be 'checkpoint_dir'. Found: "

words.WRAP = {
  ["wrap ()"] = { "ValueError", WRAP .. "[]" },
  ["wrap (config,x)"] = { "ValueError", WRAP .. "['config', 'x']" },
}

-- Errors in the events of func_checkpoint's lives, by life and event.
words.EVENTS = {
  ["save(path)"] = { "ValueError", "Checkpoint path should not be used with function API." },
  train2 = { "TuneError", "Trial raised an exception. Traceback:" },
  ["set_checkpoint /nope"] = { "FileNotFoundError" },
  ["set_checkpoint $L"] = { "FileNotFoundError" },
  ["save int"] = { "ValueError", "Provided checkpoint was expected to have type (str, dict). "
    .. "Got <class 'int'>." },
}

--- The errors that a step of func_checkpoint may have, by what it does with which path.
---@param op string
---@param path string
---@return string[][]
function words.of_step(op, path)
  if op == "perm" then
    return { { "AssertionError",
      "Should not be calling this method on a permanent checkpoint." } }
  elseif op == "rm" then
    return { { "FileNotFoundError", "[Errno 2] No such file or directory: '" .. path .. "'" } }
  end
  return { { "FileNotFoundError", "[Errno Path does not exist] " .. path },
    { "FileNotFoundError", "Checkpoint directory not found for " .. path } }
end

return words
