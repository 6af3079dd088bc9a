--- The syncer by default: trees of files, up to a store and down again, by the engine.
---
---     local syncer = ckpt.DefaultSyncer { sync_timeout = 600 }
---     syncer:sync_up("/results/a", "s3://bucket/results/a", { "./rank_*" })
---     assert(syncer:wait_or_retry())

jit.off(true, true)
local BackgroundSyncer = require "ckpt.ray.sync.background_syncer"
local Syncer = require "ckpt.ray.sync.syncer"
local class = require "ckpt.base.class"
local defaults = require "ckpt.ray.sync.sync_defaults"
local fs = require "ckpt.prims.fs"
local job = require "ckpt.job.job"
local store = require "ckpt.store.store"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"
local target_lock = require "ckpt.job.target_lock"

---@class ckpt.DefaultSyncer: ckpt.BackgroundSyncer
---@overload fun(options?: ckpt.BackgroundSyncerOptions): ckpt.DefaultSyncer
local DefaultSyncer = BackgroundSyncer:extend("DefaultSyncer")

local OPTIONS = { sync_period = true, sync_timeout = true, queue = true }

--- An option that it does not have raises. A class that extends it may take more.
---@param options? ckpt.BackgroundSyncerOptions
function DefaultSyncer:init(options)
  if class.of(self) == DefaultSyncer then options_of.check("DefaultSyncer", options, OPTIONS) end
  BackgroundSyncer.init(self, options)
end

--- Uploads the files that differ; files that are gone here stay there.
---@param local_dir string
---@param remote_dir string
---@param exclude? string[]
---@return ckpt.Job?
---@return string? text
---@return string? name
function DefaultSyncer.sync_up_command(_, local_dir, remote_dir, exclude)
  return store.upload { dir = local_dir, uri = remote_dir, exclude = exclude }
end

-- Downloads; a target that was not there before is not left half filled.
local function download(remote_dir, local_dir, exclude)
  local there = fs.exists(local_dir)
  local done
  local transfer, text, name =
    store.download { uri = remote_dir, dir = local_dir, exclude = exclude, merge = there,
      unfinished = true }
  if transfer then
    done, text, name = transfer:wait()
  end
  if done == nil and text and not there then fs.remove_tree(local_dir) end
  return done, text, name
end

--- Downloads over the files that are there, one program at a time; also those that an upload that
--- was cut off, or goes on, has sent by then: an experiment is resumed from that. A target that was
--- absent stays so if the download fails.
---@param remote_dir string
---@param local_dir string
---@param exclude? string[]
---@return ckpt.Job
function DefaultSyncer.sync_down_command(_, remote_dir, local_dir, exclude)
  return job.task(target_lock.hold, local_dir, function()
    return download(remote_dir, local_dir, exclude)
  end)
end

--- Removes all files under the URI. The next wait tells of failures.
---@param remote_dir string
---@return ckpt.Job?
---@return string? text
---@return string? name
function DefaultSyncer.delete_command(_, remote_dir)
  return store.delete { uri = remote_dir }
end

--- Tells how transfers to a store are retried, for wait_or_retry: TUNE_CHECKPOINT_CLOUD_RETRY_NUM
--- (3) and TUNE_CHECKPOINT_CLOUD_RETRY_WAIT_TIME_S (1).
---@return integer tries
---@return integer seconds between two
function DefaultSyncer.cloud_retries()
  local tries = defaults.setting("TUNE_CHECKPOINT_CLOUD_RETRY_NUM", "%d+", "a whole number", 3)
  local seconds =
    defaults.setting("TUNE_CHECKPOINT_CLOUD_RETRY_WAIT_TIME_S", "%d+", "a whole number", 1)
  return tries, seconds
end

--- Returns the syncer that a configuration asks for; nothing if it asks for none.
---@param config ckpt.SyncConfig
---@return ckpt.Syncer? # a syncer of the user's as it is
function DefaultSyncer.get_node_to_storage_syncer(config)
  if type(config) ~= "table" or not config.uploads then
    misuse("get_node_to_storage_syncer: it takes a SyncConfig, not a " .. type(config))
  end
  if config.syncer == false or not config:uploads() then return nil end
  if config.syncer == "auto" then
    return DefaultSyncer {
      sync_period = config.sync_period, sync_timeout = config.sync_timeout,
    }
  end
  if Syncer.is(config.syncer) then return config.syncer end
  misuse(("SyncConfig: unknown syncer type `%s`: a syncer is \"auto\", false, or a table with "
    .. "sync_up, sync_down and delete"):format(type(config.syncer)))
end

return DefaultSyncer
