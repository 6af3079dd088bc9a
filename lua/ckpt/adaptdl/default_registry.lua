--- Saving and loading for programs with one set of states: `ckpt.save_all_states`,
--- `ckpt.save_state`, `ckpt.load_state`. The first is about the default registry, the others about
--- the registry that their state is in.

jit.off(true, true)
local misuse = require "ckpt.base.misuse"
local registry = require "ckpt.adaptdl.registry"

local states = {}

local function home(state)
  local found = registry.of(state)
  if not found then misuse("this is no ckpt.State that was made: " .. tostring(state)) end
  return found
end

--- Does as `ckpt.Registry:save_all_states`.
---@return string? path
---@return string? text
---@return string? name
function states.save_all_states() return registry.default():save_all_states() end

--- Does as `ckpt.Registry:save_state`.
---@param state ckpt.State
---@param checkpoint_dir? string
---@param sync? boolean
---@return true?
---@return string? text
---@return string? name
function states.save_state(state, checkpoint_dir, sync)
  return home(state):save_state(state, checkpoint_dir, sync)
end

--- Does as `ckpt.Registry:load_state`.
---@param state ckpt.State
---@param options? { fallback?: boolean }
---@return boolean? loaded
---@return string? text
---@return string? name
function states.load_state(state, options) return home(state):load_state(state, options) end

return states
