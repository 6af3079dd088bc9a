--- The syncer that there is: trees of files, up to a store and down again, by the engine.
---
---     local syncer = ckpt.DefaultSyncer { sync_timeout = 600 }
---     syncer:sync_up("/results/a", "s3://bucket/results/a", { "./rank_*" })
---     assert(syncer:wait_or_retry())

local BackgroundSyncer = require "ckpt.background_syncer"
local Syncer = require "ckpt.syncer"
local fs = require "ckpt.fs"
local job = require "ckpt.job"
local store = require "ckpt.store"
local misuse = require "ckpt.misuse"
local target_lock = require "ckpt.target_lock"

---@class ckpt.DefaultSyncer: ckpt.BackgroundSyncer
---@overload fun(options?: ckpt.BackgroundSyncerOptions): ckpt.DefaultSyncer
local DefaultSyncer = BackgroundSyncer:extend("DefaultSyncer")

--- Uploads the files that differ; what is gone here stays there. (Items 182-184.)
---@param local_dir string
---@param remote_dir string
---@param exclude? string[]
---@return ckpt.Job?
---@return string? text
---@return string? name
function DefaultSyncer.sync_up_command(_, local_dir, remote_dir, exclude)
  return store.upload { dir = local_dir, uri = remote_dir, exclude = exclude }
end

-- A target that was not there before is not left half filled.
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

--- Downloads over what is there, one program at a time; also what an upload that was cut off, or
--- goes on, has sent by then: an experiment is resumed from that. A target that was absent stays so
--- if the download fails. (Items 182, 186, G 178.)
---@param remote_dir string
---@param local_dir string
---@param exclude? string[]
---@return ckpt.Job
function DefaultSyncer.sync_down_command(_, remote_dir, local_dir, exclude)
  return job.task(target_lock.hold, local_dir, function()
    return download(remote_dir, local_dir, exclude)
  end)
end

--- Removes what is stored under the URI. Failures are told by the next wait. (Item 182, G 185.)
---@param remote_dir string
---@return ckpt.Job?
---@return string? text
---@return string? name
function DefaultSyncer.delete_command(_, remote_dir)
  return store.delete { uri = remote_dir }
end

local function whole_number(variable, default)
  local text = os.getenv(variable)
  if not text then return default end
  return text:match("^%s*%d+%s*$") and tonumber(text)
    or error(("%s is %q: set it to a whole number, or unset it"):format(variable, text), 3)
end

--- How transfers to a store are retried, for wait_or_retry: TUNE_CHECKPOINT_CLOUD_RETRY_NUM (3) and
--- TUNE_CHECKPOINT_CLOUD_RETRY_WAIT_TIME_S (1). (Item 187.)
---@return integer tries
---@return integer seconds between two
function DefaultSyncer.cloud_retries()
  local tries = whole_number("TUNE_CHECKPOINT_CLOUD_RETRY_NUM", 3)
  local seconds = whole_number("TUNE_CHECKPOINT_CLOUD_RETRY_WAIT_TIME_S", 1)
  return tries, seconds
end

--- The syncer that a configuration asks for; nothing if it asks for none. (Items 143, 144.)
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
  error(("SyncConfig: unknown syncer type `%s`: a syncer is \"auto\", false, or a table with "
    .. "sync_up, sync_down and delete"):format(type(config.syncer)), 2)
end

return DefaultSyncer
