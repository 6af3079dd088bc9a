--- The configuration of where results go and how often, as Ray Tune's `SyncConfig`.
---
---     local config = ckpt.SyncConfig { upload_dir = "s3://bucket/run", sync_period = 60 }
---     config:validate_upload_dir()
---     local syncer = ckpt.get_node_to_storage_syncer(config)

jit.off(true, true)
local Syncer = require "ckpt.ray.sync.syncer"
local class = require "ckpt.base.class"
local defaults = require "ckpt.ray.sync.sync_defaults"
local duration = require "ckpt.base.duration"
local json = require "ckpt.base.json"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"

---@class ckpt.SyncConfigOptions
---@field upload_dir? string URI below which results are stored; none: nothing is uploaded
---@field syncer? "auto"|false|ckpt.Syncer|table "auto": the default syncer; false: none; or a table
---with sync_up, sync_down and delete
---@field sync_period? number seconds between two syncs, 300
---@field sync_timeout? number seconds after which a transfer is given up, 1800
---@field sync_artifacts? boolean whether a trial's other files are uploaded with its checkpoints,
---true; means nothing without upload_dir
---@field sync_on_checkpoint? boolean whether each checkpoint of a trial is fetched from its node at
---once, true; means nothing with upload_dir

---@class ckpt.SyncConfig: ckpt.Class
---@field upload_dir? string
---@field syncer "auto"|false|table
---@field sync_period number
---@field sync_timeout number
---@field sync_artifacts boolean
---@field sync_on_checkpoint boolean
---@overload fun(options?: ckpt.SyncConfigOptions): ckpt.SyncConfig
local SyncConfig = class("SyncConfig")

local DEFAULTS = {
  syncer = "auto",
  sync_period = defaults.sync_period,
  sync_timeout = defaults.sync_timeout,
  sync_artifacts = true,
  sync_on_checkpoint = true,
}

local TYPES = {
  upload_dir = "string", sync_period = "number", sync_timeout = "number",
  sync_artifacts = "boolean", sync_on_checkpoint = "boolean",
}

local SETTINGS = { syncer = true }
for name in pairs(TYPES) do SETTINGS[name] = true end

--- A syncer of another kind than the three is kept, and refused when it is needed.
---@param options? ckpt.SyncConfigOptions
function SyncConfig:init(options)
  if options ~= nil and type(options) ~= "table" then
    misuse("SyncConfig: its settings are a " .. type(options) .. ", not a table")
  end
  for name, value in pairs(options or {}) do
    if not TYPES[name] and name ~= "syncer" then
      misuse(("SyncConfig has no setting `%s`%s"):format(tostring(name),
        options_of.hint(name, SETTINGS)))
    elseif TYPES[name] and type(value) ~= TYPES[name] then
      misuse(("SyncConfig: %s is a %s, not a %s"):format(name, TYPES[name], type(value)))
    end
    self[name] = value
  end
  for _, name in ipairs { "sync_period", "sync_timeout" } do
    if self[name] then duration.option(self[name], "SyncConfig: " .. name) end
  end
  for name, value in pairs(DEFAULTS) do
    if self[name] == nil then self[name] = value end
  end
  if self:uploads() and self.syncer == false then
    misuse("SyncConfig: upload_dir says where to upload to, syncer = false that nothing uploads: "
      .. 'leave out upload_dir, or set syncer to "auto" or to a syncer of your own')
  end
  if not self:uploads() and Syncer.is(self.syncer) then
    misuse("SyncConfig: a syncer of your own needs an upload_dir to sync to")
  end
end

--- Tells whether there is a place to upload to.
---@return boolean
function SyncConfig:uploads() return self.upload_dir ~= nil and self.upload_dir ~= "" end

--- Tells whether the other files of trials are uploaded: sync_artifacts counts with an upload_dir
--- only.
---@return boolean
function SyncConfig:uploads_artifacts() return self:uploads() and self.sync_artifacts end

--- Tells whether a checkpoint is fetched from its node at once: sync_on_checkpoint counts without
--- an upload_dir only.
---@return boolean
function SyncConfig:fetches_checkpoints() return not self:uploads() and self.sync_on_checkpoint end

--- Checks that the syncer can write to upload_dir: true, or an error is raised. A syncer that has a
--- check of its own is asked, else the base check.
---@return true
function SyncConfig:validate_upload_dir()
  local syncer = Syncer.is(self.syncer) and self.syncer.validate_upload_dir and self.syncer
  if syncer then return syncer:validate_upload_dir(self.upload_dir) end
  return Syncer:validate_upload_dir(self.upload_dir)
end

-- These members are shown to people.
local SHOWN = {
  { "Upload directory", "upload_dir" },
  { "Sync on checkpoint", "sync_on_checkpoint" },
  { "Sync period", "sync_period" },
}

--- Returns them as a table of plain text.
---@return string
function SyncConfig:__tostring()
  local lines = { ("%-18s  %s"):format("Setting", "Value") }
  for _, row in ipairs(SHOWN) do
    local value = self[row[2]]
    lines[#lines + 1] = ("%-18s  %s"):format(row[1], value == nil and "none" or tostring(value))
  end
  return table.concat(lines, "\n")
end

--- Returns them as a JSON object.
---@return string
function SyncConfig:json()
  local object, keys = {}, {}
  for i, row in ipairs(SHOWN) do
    keys[i] = row[2]
    object[row[2]] = self[row[2]] == nil and json.null or self[row[2]]
  end
  return assert(json.encode(json.order(object, keys)))
end

return SyncConfig
