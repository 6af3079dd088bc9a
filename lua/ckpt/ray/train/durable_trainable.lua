--- ckpt.DurableTrainable: a trainable whose checkpoints are in a store before `save` returns, so
--- that the loss of its machine loses no checkpoint.
---
---     local Mine = ckpt.DurableTrainable:extend "Mine" -- setup, step, save_checkpoint, ...
---     local mine = Mine("s3://bucket/trial", config, { logdir = "/results/trial" })
---     mine:train()
---     local path = assert(mine:save())
---     assert(Mine("s3://bucket/trial", config, { logdir = "/results/trial" }):restore(path))
---
--- Let nobody else copy its directory: a second copy costs twice.

jit.off(true, true)
local DefaultSyncer = require "ckpt.ray.sync.default_syncer"
local Trainable = require "ckpt.ray.train.trainable"
local TrainableUtil = require "ckpt.ray.train.trainable_util"
local fs = require "ckpt.prims.fs"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local store = require "ckpt.store.store"

---@class ckpt.StorageClient what a syncer is too
---@field sync_up fun(self, dir: string, uri: string): boolean
---@field sync_down fun(self, uri: string, dir: string): boolean
---@field delete fun(self, uri: string): boolean
---@field wait fun(self): any, string?, string?

---@class ckpt.DurableTrainable: ckpt.Trainable
---@field remote_checkpoint_dir string
---@field storage_client ckpt.StorageClient
---@overload fun(remote: string, config?: table, options?: table): ckpt.DurableTrainable
local DurableTrainable = Trainable:extend "DurableTrainable"

-- The trainable that saves and restores on this machine; here, and in a class of `over`.
DurableTrainable._local = Trainable

--- For a trial that a `ckpt.SyncerCallback` is told of: nothing of it is fetched.
DurableTrainable.uses_cloud_checkpointing = true

--- Calls `setup(config)`, then makes the storage client.
---@param remote_checkpoint_dir string URI of the trial's copy
---@param config? table
---@param options? ckpt.TrainableOptions
function DurableTrainable:init(remote_checkpoint_dir, config, options)
  if type(remote_checkpoint_dir) ~= "string" or remote_checkpoint_dir == "" then
    misuse("DurableTrainable: the first argument is the URI of the remote directory")
  end
  self._local.init(self, config, options)
  self.remote_checkpoint_dir = remote_checkpoint_dir
  self.storage_client = self:create_storage_client(remote_checkpoint_dir)
  for _, method in ipairs { "sync_up", "sync_down", "delete", "wait" } do
    if type(self.storage_client) ~= "table" or not self.storage_client[method] then
      misuse(("DurableTrainable: the storage client has no function `%s`"):format(method))
    end
  end
end

-- What is in the directory for a moment only, or was left there by a process that died.
local PASSING = { "./checkpoint_tmp*", "./save_to_object*", "./restore_from_object*" }

local Client = DefaultSyncer:extend "DurableClient"

function Client:sync_up_command(dir, uri) -- luacheck: ignore 212
  return store.upload { dir = dir, uri = uri, exclude = PASSING }
end

--- To be overridden for a client of one's own. Raises for a URI that no store is known for.
---@param remote_checkpoint_dir string
---@return ckpt.StorageClient
function DurableTrainable:create_storage_client(remote_checkpoint_dir) -- luacheck: ignore 212
  local known, text = store.resolve(remote_checkpoint_dir)
  if not known then misuse(text) end
  return Client()
end

-- Resolves a path; one that is not there yet is where it would be made.
local function resolved(path)
  local real = fs.real(path)
  if real or fs.parent(path) == path then return real or path end
  return fs.normalize(fs.join(resolved(fs.parent(path)), fs.base(path)))
end

-- Returns the path relative to the log directory, "." for that one itself; nil outside of it.
local function relative(self, path)
  local inside, root = resolved(path), resolved(self.logdir)
  if inside == root then return "." end
  if inside:sub(1, #root + 1) == root .. "/" then return inside:sub(#root + 2) end
end

--- Returns the remote twin of a local path.
---@param path string below the log directory
---@return string? uri
---@return string? text
---@return string? name "EINVAL": it is not in the log directory
function DurableTrainable:storage_path(path)
  if type(path) ~= "string" then
    misuse("storage_path: `path` is a " .. type(path) .. ", not a path")
  end
  local inside = relative(self, path)
  if not inside then
    return nil, ("%s is not in the log directory %s, so it has no place in %s")
      :format(path, self.logdir, self.remote_checkpoint_dir), "EINVAL"
  end
  local root = self.remote_checkpoint_dir:gsub("(.)/+$", "%1")
  if inside == "." then return root end
  -- A percent sign begins an escape in such a URI.
  if root:find("^file://") then inside = inside:gsub("%%", "%%25") end
  return root .. "/" .. inside
end

-- Has the client do one action, and waits until it is done. A client that is busy with another one
-- refuses; then that one is waited for first.
local function carry_out(self, method, ...)
  local client = self.storage_client
  for _ = 1, 2 do
    local started, text, name = client[method](client, ...)
    if started == nil and text then return nil, text, name end
    local done
    done, text, name = client:wait()
    if started and text then return nil, text, name end
    if started and done == false then
      return nil, ("the storage client says that %s of %s failed"):format(method,
        self.remote_checkpoint_dir), "EIO"
    end
    if started then return true end
    if text then log.warn(("Trial %s: %s"):format(self.trial_id, text)) end
  end
  return nil, ("the storage client refuses %s of %s"):format(method, self.remote_checkpoint_dir),
    "EHELD"
end

--- Saves as `Trainable:save` does, then uploads the whole log directory, and waits.
---@param checkpoint_dir? string the log directory or one in it; anything else raises
---@return string? path the local one, for `restore`; it is in the store now
---@return string? text
---@return string? name
function DurableTrainable:save(checkpoint_dir)
  if checkpoint_dir and not relative(self, checkpoint_dir) then
    misuse(("save: %s is not in the log directory %s, and would not be uploaded: give that one or "
      .. "a directory in it"):format(checkpoint_dir, self.logdir))
  end
  local path, text, name = self._local.save(self, checkpoint_dir)
  if not path then return nil, text, name end
  local done
  done, text, name = carry_out(self, "sync_up", self.logdir, self.remote_checkpoint_dir)
  if not done then return nil, text, name end
  return path
end

--- Downloads all files that the store has of the trial into the log directory, then restores from
--- there. Local files that the store does not have stay.
---@param checkpoint_path string as `save` returned it, in this log directory
---@return true?
---@return string? text
---@return string? name "EINVAL": it is of another log directory, to which nothing is downloaded
function DurableTrainable:restore(checkpoint_path)
  if type(checkpoint_path) ~= "string" then
    misuse("restore: `path` is a " .. type(checkpoint_path) .. ", not a path")
  end
  if not relative(self, checkpoint_path) and not fs.exists(checkpoint_path) then
    return nil, ("%s is not in the log directory %s, into which the checkpoints of %s come: a path "
      .. "that another log directory had begins with this one here"):format(checkpoint_path,
      self.logdir, self.remote_checkpoint_dir), "EINVAL"
  end
  local done, text, name =
    carry_out(self, "sync_down", self.remote_checkpoint_dir, self.logdir)
  if not done then return nil, text, name end
  return self._local.restore(self, checkpoint_path)
end

-- An object is in nobody's store: nothing of it is uploaded, and nothing downloaded for it.
function DurableTrainable:_save_here(directory) return self._local.save(self, directory) end
function DurableTrainable:_restore_here(path) return self._local.restore(self, path) end

-- Returns the checkpoint directory of a path of which nothing is here: by its name.
local function directory_by_name(path)
  local at = path
  while fs.parent(at) ~= at do
    if fs.base(at):find("^checkpoint_") then return at end
    at = fs.parent(at)
  end
  -- A path that is here, and is no checkpoint by its mark nor by its name, is something else of the
  -- trial.
  if fs.lstat(path) then return nil end
  return path
end

--- Deletes a checkpoint in the store, and then here. If nothing of it is here, the remote copy is
--- deleted all the same. A failure in the store is reported, and nothing is deleted here.
---@param checkpoint_path string as `save` returned it
---@return true?
---@return string? text
---@return string? name "EINVAL": it is no checkpoint of this trial
function DurableTrainable:delete_checkpoint(checkpoint_path)
  local found, text, name = TrainableUtil.find_checkpoint_dir(checkpoint_path)
  if not found and name ~= "ENOENT" then return nil, text, name end
  local directory = found or directory_by_name(checkpoint_path)
  if not directory then return nil, text, "EINVAL" end
  local uri
  uri, text, name = self:storage_path(directory)
  if not uri then return nil, text, name end
  if relative(self, directory) == "." then
    return nil, ("%s is the log directory, not a checkpoint"):format(checkpoint_path), "EINVAL"
  end
  if not found then
    log.warn(("Trial %s: %s is not here as a checkpoint; its remote copy is deleted")
      :format(self.trial_id, directory))
  end
  local done
  done, text, name = carry_out(self, "delete", uri)
  if not done then return nil, text, name end
  return self._local.delete_checkpoint(self, checkpoint_path)
end

--- Makes a durable class of another kind of trainable, as of a FunctionRunner (the option `durable`
--- of `ckpt.wrap_function`). Its objects are made by `Class(uri, config, options)`.
---@param base ckpt.Trainable a class
---@param name string
---@return ckpt.DurableTrainable # a class
function DurableTrainable.over(base, name)
  local Durable = base:extend(name)
  for key, value in pairs(DurableTrainable) do
    local own = key ~= "extend" and key ~= "over"
    if own and (type(value) == "function" or type(value) == "boolean") then Durable[key] = value end
  end
  Durable._local = base
  return Durable
end

return DurableTrainable
