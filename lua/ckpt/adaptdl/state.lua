--- ckpt.State: a piece of a program's state that is saved and loaded when the job is restarted, and
--- made the same on all replicas before. Extend it and write `save`, `load`, `sync`.
---
---   local Model = ckpt.State:extend("Model")
---   function Model:save(file) file:write(self.weights) end
---   function Model:load(file) self.weights = file:read "*a" end
---   local model = Model("model")
---
--- A class with an `init` of its own calls `ckpt.State.init(self, name)` in it.

jit.off(true, true)
local class = require "ckpt.base.class"
local misuse = require "ckpt.base.misuse"
local registry = require "ckpt.adaptdl.registry"

---@class ckpt.State: ckpt.Class
---@overload fun(name: string, registry?: ckpt.Registry): ckpt.State
---@field skip? boolean|fun(self: ckpt.State): boolean? true: it is neither synced nor saved with
---all states. It is loaded as before.
local State = class("State")

--- Registers the object under its name, which is the name of its file in a checkpoint. Raises if
--- the registry has a state of that name, or it can be no file's name.
---@param name string
---@param into? ckpt.Registry nil: the default one
function State:init(name, into)
  if into ~= nil and not class.is(into, registry) then
    misuse(("state '%s': its registry is a %s"):format(tostring(name), type(into)))
  end
  local added, text = (into or registry.default()):add(self, name)
  if not added then misuse(text) end
end

--- Writes the state. It is called on rank 0 alone. Its errors reach the caller of the save; so does
--- a failure that it returns as Lua's files do: nil and a text.
---@param file userdata open for writing
function State:save(file) end -- luacheck: no unused args

--- Reads what `save` has written.
---@param file userdata open for reading
function State:load(file) end -- luacheck: no unused args

--- Makes the state the same on all replicas. Called on every rank before `save`.
function State:sync() end -- luacheck: no unused args

return State
