--- Advice in place of the methods that a Checkpoint had once. The same texts come from the class
--- and from an object.

jit.off(true, true)
local misuse = require "ckpt.base.misuse"

local migration = {}

local DIRECTORIES = [[
A Checkpoint has no `%s`: it holds a directory of files, and nothing else.

To store a table in a checkpoint:

  local ckpt = require "ckpt"
  local dir = assert(ckpt.fs.temporary_directory())
  assert(ckpt.fs.write(dir .. "/data.json", ckpt.json.encode { data = "value" }))
  local checkpoint = ckpt.Checkpoint.from_directory(dir)

To load it again:

  local data = checkpoint:as_directory(function(path)
    return ckpt.json.decode(assert(ckpt.fs.read(path .. "/data.json")))
  end)]]

local URIS = [[
A Checkpoint has no `%s`: to name a checkpoint in a store, give its constructor the URI.

  local checkpoint = ckpt.Checkpoint("s3://bucket/path/to/checkpoint")

Its files come by checkpoint:as_directory(fn) or checkpoint:to_directory(). To put files into a
store use ckpt.store.upload, or a client of your own.]]

local PREPROCESSORS = [[
A Checkpoint has no `%s`: note what you need to know about the preprocessor in the metadata.

  checkpoint:update_metadata { preprocessor = "..." }
  local name = checkpoint:get_metadata().preprocessor]]

local TEXTS = {
  from_dict = DIRECTORIES, to_dict = DIRECTORIES, from_bytes = DIRECTORIES, to_bytes = DIRECTORIES,
  get_internal_representation = DIRECTORIES,
  from_uri = URIS, to_uri = URIS, uri = URIS,
  get_preprocessor = PREPROCESSORS, set_preprocessor = PREPROCESSORS,
}

--- Raises for a name that a Checkpoint does not have.
---@param name any
function migration.refuse(name)
  local text = TEXTS[name] or "a Checkpoint has no `%s`"
  misuse(text:format(tostring(name)))
end

return migration
