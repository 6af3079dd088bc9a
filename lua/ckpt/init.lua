--- ckpt: the checkpoint engine for Lua programs. `require "ckpt"` in a script that `ckpt-lua exec`
--- runs, or in any LuaJIT that finds ckpt/core.so.
---
--- What fails returns nil, a text that says what to do, and a name ("ENOENT"); misuse raises.

-- luacheck: no max line length (LuaLS wants the type of a function in one line)

---@class ckpt.Item a checkpoint in a store; what the log does not say is absent
---@field group string
---@field name string
---@field dir string its directory in the store
---@field step? integer
---@field time number of the commit, seconds since 1970
---@field files integer
---@field bytes integer
---@field number integer of its log entry
---@field root string root digest, hex
---@field uri string
---@field policy? string who wanted it saved
---@field reason? string
---@field metrics? string a JSON object
---@field life "live"|"dropped"|"deleted"
---@field drop_policy? string
---@field drop_reason? string
---@field drop_time? number

---@class ckpt.Verified: ckpt.Item
---@field ok boolean
---@field status string "OK", "ECORRUPT", ...
---@field finding? string the first one
---@field findings integer
---@field links string those that lead out of it or nowhere, as JSON: what is there was not saved
---@field link_count integer

---@class ckpt.Finding
---@field topic string
---@field text string
---@field time? number

---@class ckpt.Examined
---@field topic string
---@field word "fine"|"note"|"warning"|"fault"
---@field status? string of a fault: "EACCESS", ...
---@field text string
---@field advice string "": nothing is to be done

---@class ckpt.Completion
---@field run ckpt.Run
---@field job integer 0 if none was begun
---@field kind "committed"|"dropped"|"retired"|"failed"|"retrying"|"fenced"|"unproven"|"skipped"|"expired"|"deleted"|"drained"
---@field status string "OK", "EIO", ...
---@field class "none"|"retryable"|"permanent"|"fatal"
---@field step? integer
---@field files integer
---@field bytes integer
---@field seconds number from complete to durable
---@field unit? string
---@field reason? string

---@class ckpt.RunOptions as in ckpt.h
---@field dir string the watched directory
---@field to string path or URI
---@field state? string
---@field run_id? string
---@field command? string
---@field program? string what `command` runs, without its flags
---@field launch? string
---@field units? string[]
---@field excludes? string[]
---@field markers? string[]
---@field quiet? number seconds; negative: none; math.huge: without end
---@field tries? integer of a save that fails for now; math.huge: without end
---@field policies? string[] names or paths
---@field settings? table<string, string|number|boolean>
---@field policy_dir? string
---@field max_delete? number
---@field grace_delete? number seconds; negative: none; math.huge: nothing is deleted
---@field rank? integer of the `world` that save together, from 0; `launch` is then needed
---@field world? integer
---@field rank_wait? number seconds that one waits for the others
---@field bad_after? integer starts that failed until a checkpoint is marked bad; math.huge: never
---@field stall? number seconds until a save that waits for one thing is named
---@field start_wait? number seconds that a store which does not answer is waited for; negative: none
---@field wait_lease? number seconds that another live writer is waited for
---@field environment? string[] "NAME=VALUE", laid over the process's where the target's keys are looked for
---@field in_place_every? number seconds between two saves of a name without a step; negative: none
---@field record? string a file to which each event is added, for `policy simulate`
---@field deadline? number seconds until the job is ended, for policies to see; negative: not known
---@field task? integer of the `tasks` of a launch that write into `dir`, from 0; `launch` is then needed
---@field tasks? integer
---@field restore_parts? string "own": of `world` ranks each gets what the rank of its number had; "all"
---@field continue_run? boolean
---@field take_over? boolean
---@field poll? boolean
---@field no_delete? boolean
---@field single_writer? boolean
---@field start_anyway? boolean begin though the store does not answer
---@field trust? boolean
---@field beside? boolean
---@field owns_dir? boolean
---@field fresh? boolean ranks begin anew at a new target, whatever is here

---@class ckpt.Prepared
---@field resume? string path to resume from
---@field restored_from? string URI
---@field restored integer fetched
---@field quarantined integer moved away
---@field incomplete integer of these: torn, or not proven whole
---@field found integer complete, and here

---@class ckpt.RunStatus
---@field committed integer since the run was opened, as the next three
---@field dropped integer
---@field retired integer
---@field failed integer
---@field pending integer wanted and not durable yet
---@field settling integer those of them that are not known to be complete
---@field unproven integer
---@field standing? "durable"|"nothing_to_save"|"not_wanted"|"not_proven"|"not_durable"
---@field unproven_unit? string newer than all of its kind that are whole, as the next one
---@field unproven_reason? string
---@field unwanted_unit? string newer than all that the policies wanted, as the next two
---@field unwanted_policy? string
---@field unwanted_reason? string
---@field bytes_committed number
---@field bytes_left number of the complete ones
---@field newest_step? integer of the newest commit, as the next two
---@field newest_age? number seconds
---@field newest_unit? string
---@field newest_status string of the newest complete one: "OK", "EIO", ...
---@field fenced boolean
---@field unmatched integer files that belong to no unit
---@field unmatched_example? string

---@class ckpt.Evict what it costs to end the job now; times are seconds since 1970
---@field time number
---@field last_durable_time? number
---@field complete_time? number
---@field name? string
---@field step? integer
---@field bytes_pending number
---@field seconds_to_durable? number
---@field lost_since? number
---@field lost_if_killed_now number

---@class ckpt.Event
---@field kind "child"|"exit"|"result"|"preempt"|"list"|"drain"
---@field pid? integer
---@field clean? boolean
---@field grace? number seconds
---@field json? string an object

---@class ckpt.ReloadOptions
---@field policies? string[]
---@field settings? table<string, string|number|boolean>
---@field dry_run? boolean

---@class ckpt.ReloadChange
---@field group string
---@field name string
---@field commit integer
---@field step? integer
---@field before boolean
---@field after boolean
---@field before_reason string
---@field after_reason string

---@class ckpt.Reloaded
---@field over boolean
---@field dry boolean
---@field status string "OK", or "EPOLICY" and its like
---@field text string
---@field policies string
---@field replaced string
---@field stays string
---@field newest_only string
---@field left number seconds
---@field changes ckpt.ReloadChange[]
---@field changes_all integer
---@field uncompared integer
---@field max_delete number the share that one pass lets go at most

---@class ckpt.Run
---@field prepare fun(self, options?: { restore?: "auto"|"never"|"required"|"named", named?: string }): ckpt.Prepared?, string?, string?
---@field start fun(self): true?, string?, string?
---@field notify fun(self, event: ckpt.Event): true|integer|nil, string?, string? the number of a drain
---@field evict fun(self): ckpt.Evict?, string?, string?
---@field status fun(self): ckpt.RunStatus?, string?, string?
---@field why fun(self, name: string): string?, string?, ckpt.Finding[]|string
---@field reload fun(self, options?: ckpt.ReloadOptions): integer?, string?, string? a job
---@field reloaded fun(self, job?: integer): ckpt.Reloaded?, string?, string?
---@field place fun(self): { dir: string, state: string, target: string, id: string, socket: string }
---@field close fun(self)

---@class ckpt.Engine one thread at a time
---@field run fun(self, options: ckpt.RunOptions): ckpt.Run?, string?, string?
---@field dispatch fun(self, milliseconds?: integer): integer?, string?, string? -1 waits without limit
---@field next fun(self): ckpt.Completion?
---@field fd fun(self): integer
---@field close fun(self)

---@class ckpt
---@field version fun(): string
---@field weigh fun(text: string, entries?: integer): true?, string?, string?
---@field list fun(uri: string): ckpt.Item[]?, string?, string?
---@field restore fun(options: { uri: string, dir: string, name?: string, only?: string[], dry_run?: boolean }): ckpt.Item[]?, string?, string?
---@field verify fun(uri: string, name?: string, fn?: fun(record: ckpt.Verified)): ckpt.Verified[]|true|nil, string?, string?, ckpt.Verified[]?
---@field doctor fun(uri: string): ckpt.Examined[]?, string?, string?, ckpt.Examined[]?
---@field show fun(uri: string, name?: string): string?, string?, string? a JSON text
---@field pin fun(uri: string, name: string, seconds?: number): string?, string?, string? the pin's id
---@field unpin fun(uri: string, name_or_id: string): integer?, string?, string?
---@field remove fun(options: { uri: string, name?: string, all?: boolean, dry_run?: boolean, grace_delete?: number }): ckpt.Item[]?, string?, string?
---@field why fun(options: { name: string, dir?: string, state?: string, to?: string }): string?, string?, ckpt.Finding[]|string
---@field open fun(options?: { workers?: integer, libexec?: string, policy_in_process?: boolean }): ckpt.Engine?, string?, string?
---@field fs ckpt.fs
---@field lock ckpt.lock
---@field store ckpt.store
---@field tar ckpt.tar
---@field digest ckpt.digest
---@field clock ckpt.clock
---@field log ckpt.log
---@field job ckpt.job
---@field json ckpt.json
---@field class ckpt.class
---@field file_transfer ckpt.file_transfer
---@field session ckpt.session
---@field testing ckpt.testing
---@field Checkpoint ckpt.Checkpoint
---@field State ckpt.State
---@field Registry ckpt.Registry
---@field RayRegistry ckpt.RayRegistry
---@field CheckpointManager ckpt.CheckpointManager
---@field SyncConfig ckpt.SyncConfig
---@field BackgroundProcess ckpt.BackgroundProcess
---@field Syncer ckpt.Syncer
---@field BackgroundSyncer ckpt.BackgroundSyncer
---@field DefaultSyncer ckpt.DefaultSyncer
---@field ArtifactSync ckpt.ArtifactSync
---@field SyncerCallback ckpt.SyncerCallback
---@field DurableTrainable ckpt.DurableTrainable
---@field Trainable ckpt.Trainable
---@field TrainableUtil ckpt.TrainableUtil
---@field FuncCheckpointUtil ckpt.FuncCheckpointUtil
---@field StatusReporter ckpt.StatusReporter
---@field FunctionRunner ckpt.FunctionRunner
---@field save_all_states fun(): string?, string?, string?
---@field save_state fun(state: ckpt.State, checkpoint_dir?: string, sync?: boolean): true?, string?, string?
---@field load_state fun(state: ckpt.State, options?: { fallback?: boolean }): boolean?, string?, string?
---@field get_node_to_storage_syncer fun(config: ckpt.SyncConfig): ckpt.Syncer?
---@field wrap_function fun(train_func: function|table, options?: ckpt.WrapOptions): ckpt.FunctionRunner
---@field wrap_command fun(argv: string[], options?: ckpt.WrapCommandOptions): ckpt.FunctionRunner

-- The library is never compiled: each of its modules begins with this line. LuaJIT 2.1.0-beta3, which
-- Debian 12 has, now and then makes code of calls between a module here and a store written in Lua
-- that loses entries of a list: a download then fails, or a sync takes a file for absent. What a
-- script itself does stays compiled, and the modules ask this for themselves alone: the host's own
-- loaders are left as they are.
jit.off(true, true)

local core = require "ckpt.core"

-- A state that is closed unloads the C modules in the order opposite to that in which they came, and
-- finalizers of ours (what as_directory left open) read JSON: cjson has to be older than they are.
-- Who needs it (ckpt.base.need_cjson) says so if it is missing.
pcall(require, "cjson")

-- A module is read when its name is first used: a script that only lists a store needs none.
local MODULES = {
  fs = "ckpt.prims.fs",
  lock = "ckpt.job.lock",
  digest = "ckpt.prims.digest",
  clock = "ckpt.base.clock",
  log = "ckpt.base.log",
  store = "ckpt.store.store",
  job = "ckpt.job.job",
  tar = "ckpt.prims.tar",
  testing = "ckpt.testing.testing",
  class = "ckpt.base.class",
  json = "ckpt.base.json",
  Checkpoint = "ckpt.ray.checkpoint.checkpoint",
  State = "ckpt.adaptdl.state",
  Registry = "ckpt.adaptdl.registry",
  RayRegistry = "ckpt.adaptdl.ray_registry",
  CheckpointManager = "ckpt.ray.checkpoint.checkpoint_manager",
  SyncConfig = "ckpt.ray.sync.sync_config",
  BackgroundProcess = "ckpt.ray.sync.background_process",
  Syncer = "ckpt.ray.sync.syncer",
  BackgroundSyncer = "ckpt.ray.sync.background_syncer",
  DefaultSyncer = "ckpt.ray.sync.default_syncer",
  ArtifactSync = "ckpt.ray.sync.artifact_sync",
  file_transfer = "ckpt.store.file_transfer",
  SyncerCallback = "ckpt.ray.sync.syncer_callback",
  DurableTrainable = "ckpt.ray.train.durable_trainable",
  Trainable = "ckpt.ray.train.trainable",
  TrainableUtil = "ckpt.ray.train.trainable_util",
  FuncCheckpointUtil = "ckpt.ray.train.func_checkpoint_util",
  StatusReporter = "ckpt.ray.train.status_reporter",
  FunctionRunner = "ckpt.ray.train.function_runner",
  session = "ckpt.ray.train.session",
}

-- Functions that are one module's.
local FUNCTIONS = {
  save_all_states = "ckpt.adaptdl.default_registry",
  save_state = "ckpt.adaptdl.default_registry",
  load_state = "ckpt.adaptdl.default_registry",
  get_node_to_storage_syncer = "ckpt.ray.sync.default_syncer",
  wrap_function = "ckpt.ray.train.wrap_function",
  wrap_command = "ckpt.ray.train.wrap_function",
}

---@type ckpt
local ckpt = {}
for name, value in pairs(core) do
  if type(value) == "function" then ckpt[name] = value end
end

return setmetatable(ckpt, {
  __index = function(self, name)
    local value
    if MODULES[name] then
      value = require(MODULES[name])
    elseif FUNCTIONS[name] then
      value = require(FUNCTIONS[name])[name]
    end
    rawset(self, name, value)
    return value
  end,
})
