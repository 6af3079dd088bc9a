--- The other files of a trial's directory (plots, dumps): they go to the store with the trial's
--- checkpoints, when it is reset and when it stops, but only if it reported something since the
--- last time. Checkpoints and the files of loggers have ways of their own.
---
---     local artifacts = ckpt.ArtifactSync {
---       config = config, syncer = syncer, logdir = "/results/a", uri = "s3://bucket/run/a" }
---     artifacts:on_result()
---     artifacts:on_checkpoint()

jit.off(true, true)
local DefaultSyncer = require "ckpt.ray.sync.default_syncer"
local Syncer = require "ckpt.ray.sync.syncer"
local class = require "ckpt.base.class"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"

---@class ckpt.ArtifactSyncOptions
---@field config ckpt.SyncConfig without an upload_dir, or with sync_artifacts = false, nothing is
---uploaded
---@field syncer ckpt.Syncer|table
---@field logdir string
---@field uri string
---@field logger_files? string[] patterns of what loggers write, beside the known ones

---@class ckpt.ArtifactSync: ckpt.Class
---@overload fun(options: ckpt.ArtifactSyncOptions): ckpt.ArtifactSync
local ArtifactSync = class("ArtifactSync")

local EXCLUDE = {
  "./checkpoint_*", "./result.json", "./progress.csv", "./params.json", "./params.pkl",
  "./events.out.tfevents*",
}

local OPTIONS =
  { config = true, syncer = true, logdir = true, uri = true, logger_files = true }

---@param options ckpt.ArtifactSyncOptions
function ArtifactSync:init(options)
  if type(options) ~= "table" or not options.config or not options.syncer then
    misuse("ArtifactSync: it takes a table with config, syncer, logdir and uri")
  end
  options_of.check("ArtifactSync", options, OPTIONS)
  self._config, self._syncer = options.config, Syncer.of(options.syncer)
  self._logdir, self._uri = options.logdir, options.uri
  self._exclude = {}
  for _, list in ipairs { EXCLUDE, options.logger_files or {} } do
    for _, pattern in ipairs(list) do self._exclude[#self._exclude + 1] = pattern end
  end
  self._reported, self._uploaded = 0, 0
end

--- Counts a result; call it for each that the trial reports.
function ArtifactSync:on_result() self._reported = self._reported + 1 end

-- Uploads the files as of the last report, and waits for it.
local function upload(self)
  if not self._config:uploads_artifacts() or self._reported == self._uploaded then return false end
  local reported, tries, seconds = self._reported, DefaultSyncer.cloud_retries()
  local _, failure = self._syncer:wait()
  if failure then log.warn("Last sync command failed: " .. failure) end
  local launched, text, name = self._syncer:sync_up(self._logdir, self._uri, self._exclude)
  if not launched then return launched, text, name end
  launched, text, name = self._syncer:wait_or_retry(tries, seconds)
  if not launched then return nil, text, name end
  self._uploaded = reported
  return true
end

--- Uploads the present files, and waits for it; call it for each checkpoint.
---@return boolean? # whether something was uploaded
---@return string? text
---@return string? name
function ArtifactSync:on_checkpoint() return upload(self) end

--- Call it when the trial starts over.
---@return boolean?
---@return string? text
---@return string? name
function ArtifactSync:on_reset() return upload(self) end

--- Call it when the trial ends.
---@return boolean?
---@return string? text
---@return string? name
function ArtifactSync:on_stop() return upload(self) end

return ArtifactSync
