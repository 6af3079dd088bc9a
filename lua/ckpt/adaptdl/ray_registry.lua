--- ckpt.RayRegistry: states of a job that runs under Ray. A save is made afresh in the directory
--- `checkpoint` of the system's temporary directory, from where Ray takes it; loading asks the
--- session for the checkpoint that it was started with.

jit.off(true, true)
local fs = require "ckpt.prims.fs"
local misuse = require "ckpt.base.misuse"
local registry = require "ckpt.adaptdl.registry"
local session = require "ckpt.ray.train.session"
local trainable_util = require "ckpt.ray.train.trainable_util"

---@class ckpt.RaySession for example a ckpt.StatusReporter
---@field get_checkpoint fun(self: ckpt.RaySession): string? the directory to go on from

---@class ckpt.RayRegistryOptions: ckpt.RegistryOptions
---@field session? ckpt.RaySession nil: the one of the function that is running, `ckpt.session`
---@field directory? string where `checkpoint` is made; nil: the system's temporary directory

---@class ckpt.RayRegistry: ckpt.Registry
---@overload fun(options?: ckpt.RayRegistryOptions): ckpt.RayRegistry
local RayRegistry = registry:extend("RayRegistry")

RayRegistry.OPTIONS =
  { path = true, restarts = true, rank = true, session = true, directory = true }

---@param options? ckpt.RayRegistryOptions
function RayRegistry:init(options)
  registry.init(self, options)
  local given = self.options.session
  if given ~= nil and (type(given) ~= "table" or type(given.get_checkpoint) ~= "function") then
    misuse("RayRegistry: its session needs a method get_checkpoint()")
  end
end

--- Returns the directory `checkpoint`.
---@return string directory
function RayRegistry:save_directory()
  return fs.join(self.options.directory or fs.temp(), "checkpoint")
end

--- Makes it afresh, with the mark `.is_checkpoint`: old files there are deleted first.
---@param directory string
---@return true?
---@return string? text
---@return string? name
function RayRegistry:prepare(directory)
  self.stages[directory] = nil -- it is deleted with the rest
  local made, text, name = trainable_util.make_checkpoint_dir(fs.parent(directory), nil, true)
  if not made then return nil, text, name end
  return true
end

--- Returns the checkpoint that the session goes on from.
---@return string? directory
function RayRegistry:load_directory()
  return (self.options.session or session.get()):get_checkpoint()
end

return RayRegistry
