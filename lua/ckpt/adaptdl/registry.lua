--- ckpt.Registry: the states of a job, which are saved together and loaded one by one, as AdaptDL
--- does it. A program that is restarted, perhaps on another number of machines, goes on from the
--- newest checkpoint:
---
---   local model = Model("model")                -- a ckpt.State, in the default registry
---   ckpt.load_state(model)                      -- false on the first start
---   ... ckpt.save_all_states()                  -- syncs on every rank, writes on rank 0
---
--- A save becomes the directory `checkpoint-<N>` in one step, N being the restart; then the older
--- ones are removed. Where, N and the rank are read from the environment at every call:
--- ADAPTDL_CHECKPOINT_PATH (unset: nothing is kept), ADAPTDL_NUM_RESTARTS, ADAPTDL_REPLICA_RANK.

jit.off(true, true)
local class = require "ckpt.base.class"
local fs = require "ckpt.prims.fs"
local log = require "ckpt.base.log"
local misuse = require "ckpt.base.misuse"
local options_of = require "ckpt.base.options"
local restart_listing = require "ckpt.adaptdl.restart_listing"
local restarts = require "ckpt.adaptdl.restarts"
local staging = require "ckpt.adaptdl.staging"
local state_file = require "ckpt.adaptdl.state_file"

local LOOKS = 16 -- others may save meanwhile, but not this often
local LARGEST = 2 ^ 53 -- from here on a number does not hold every integer

---@class ckpt.RegistryOptions what is not given comes from the environment
---@field path? string the checkpoint path
---@field restarts? integer how often the job was restarted
---@field rank? integer this replica's; 0 writes

---@class ckpt.Registry: ckpt.Class
---@overload fun(options?: ckpt.RegistryOptions): ckpt.Registry
local Registry = class("Registry")

--- The names of its options. A class that takes more has a table of its own.
Registry.OPTIONS = { path = true, restarts = true, rank = true }

local HOME = {} -- the key of a state's registry in it: a table of them would keep both alive

---@param options? ckpt.RegistryOptions
function Registry:init(options)
  self.options = options_of.check(class.of(self).name, options, self.OPTIONS)
  if self.options.path ~= nil and type(self.options.path) ~= "string" then
    misuse("Registry: its `path` is a " .. type(self.options.path) .. ", not a text")
  end
  self.states = {} -- in the order of their registration
  self.names = {} -- state -> name
  self.taken = {} -- name -> state
  self.stages = {} -- checkpoint path -> what was written there and is not committed
end

-- ---- names ----

local function unusable(name)
  if type(name) ~= "string" then return "it is a " .. type(name) .. ", not a text" end
  if name == "" then return "it is empty" end
  if #name > 255 then return "it is longer than 255 bytes" end
  if name:find("[/%z]") then return "it has a slash or a zero byte in it" end
  if name == "." or name:find("..", 1, true) then return "it has dots that lead elsewhere" end
  if name == restarts.RECORD then return "it is the commit record's" end
end

--- Takes a state in under a name; `ckpt.State` calls it.
---@param state ckpt.State
---@param name string
---@return true?
---@return string? text
function Registry:add(state, name)
  if not self.states then return nil, "the registry is closed; make another one" end
  local why = unusable(name)
  if why then
    return nil, ("state '%s': the name is that of its file, but %s"):format(tostring(name), why)
  end
  if self.taken[name] then
    return nil, ("state '%s' exists already; give this one another name, or close the registry")
      :format(name)
  end
  self.states[#self.states + 1] = state
  self.names[state], self.taken[name] = name, state
  rawset(state, HOME, self)
  return true
end

-- Returns the name of a state of this registry.
local function name_of(self, state)
  local name = self.states and state ~= nil and self.names[state]
  if not name then
    misuse(self.states and "this is no state of the registry: make it with State(name, registry)"
      or "the registry is closed; make another one")
  end
  return name
end

-- ---- where ----

local function whole(given, variable, title)
  local text = given == nil and os.getenv(variable) or given or "0"
  local number = tostring(text):match "^%s*[+-]?%d+%s*$" and tonumber(text)
  if number and math.abs(number) < LARGEST then return number end
  return nil, ("%s, \"%s\", is no integer: it is %s"):format(
    given == nil and variable or "the registry's `" .. title .. "`", tostring(text), title == "rank"
      and "the number of this replica, 0 for the one that writes"
      or "how often the job was restarted")
end

---@class ckpt.RegistryPlace
---@field path? string nil: nothing is kept
---@field restarts integer
---@field rank integer

--- Tells where the states go, by the options or the environment of this moment.
---@return ckpt.RegistryPlace?
---@return string? text what is wrong with it
function Registry:place()
  local options = self.options
  local path = options.path or os.getenv "ADAPTDL_CHECKPOINT_PATH"
  if path == "" then
    return nil, "the checkpoint path is empty: unset ADAPTDL_CHECKPOINT_PATH to keep nothing"
  end
  local count, text = whole(options.restarts, "ADAPTDL_NUM_RESTARTS", "restarts")
  if not count then return nil, text end
  local rank
  rank, text = whole(options.rank, "ADAPTDL_REPLICA_RANK", "rank")
  if not rank then return nil, text end
  return { path = path, restarts = count, rank = rank }
end

--- Returns the directory that a save goes to; nil: none. A subclass may have another one.
---@param place ckpt.RegistryPlace
---@return string? directory
function Registry:save_directory(place) -- luacheck: no self
  return place.path
end

--- Called before a save writes into that directory.
---@param directory string
---@return true?
---@return string? text
---@return string? name
function Registry:prepare(directory) -- luacheck: no unused args
  return true
end

--- Returns the directory that states are loaded from; nil: none.
---@param place ckpt.RegistryPlace
---@return string? directory
function Registry:load_directory(place) -- luacheck: no self
  return place.path
end

-- ---- save ----

local function skipped(state)
  local skip = state.skip
  if type(skip) == "function" then skip = skip(state) end
  return skip and true or false
end

-- Forgets the states that were staged for a path. They stay on disk, and the next save removes
-- them.
local function abandon(self, path)
  local stage = path and self.stages[path]
  if stage then stage:abandon() end
  if path then self.stages[path] = nil end
end

-- Syncs a state; on rank 0, if there is a path, writes it.
local function stage_state(self, state, path, rank, sync)
  if sync then
    local failed, text, name = state_file.outcome(state:sync())
    if failed then return nil, text, name end
  end
  if rank ~= 0 or not path then return true end
  local stage = self.stages[path]
  if stage and not fs.exists(stage.states) then -- the path was removed, or made anew
    abandon(self, path)
    stage = nil
  end
  if not stage then
    local text, name
    stage, text, name = staging.open(path)
    if not stage then return nil, text, name end
    self.stages[path] = stage
  end
  return state_file.save(state, fs.join(stage.states, self.names[state]))
end

--- Syncs one state and, on rank 0, writes it into the staging directory of a checkpoint path; it
--- becomes part of a checkpoint with the next `save_all_states`. Errors of the state's functions go
--- straight to the caller.
---@param state ckpt.State
---@param checkpoint_dir? string nil: it is only synced
---@param sync? boolean false: it is not synced
---@return true? # nil and nothing more: this rank writes nothing
---@return string? text
---@return string? name
function Registry:save_state(state, checkpoint_dir, sync)
  name_of(self, state)
  local place, why = self:place()
  if not place then misuse(why) end
  local done, text, name = stage_state(self, state, checkpoint_dir, place.rank, sync ~= false)
  if not done then return nil, text, name end
  if place.rank == 0 and checkpoint_dir then return true end
  return nil
end

-- Removes directories that the commit made old. The commit stands whatever happens here.
local function remove_old(stage, names)
  local strange = {}
  for _, name in ipairs(names) do
    local found = fs.lstat(fs.join(stage.root, name))
    if found and found.type ~= "directory" then
      strange[#strange + 1] = name
    elseif found then
      local done, text = stage:remove(name)
      if not done then log.warn(("an older checkpoint stays: %s"):format(text)) end
    end
  end
  if #strange > 0 then
    log.warn(("%s: not removed, because they are no directories: %s"):format(stage.root,
      table.concat(strange, ", ")))
  end
end

-- Makes the staged states the newest checkpoint.
local function commit(self, path, count)
  local entries, text, name = restart_listing.read(path)
  if not entries then return nil, text, name end
  local stage = self.stages[path]
  local sequence = restarts.next_sequence(entries)
  local record = fs.join(stage.states, restarts.RECORD)
  local done
  done, text, name = fs.write(record, restarts.encode(sequence, entries))
  if not done then return nil, text, name end
  local title = restarts.name(("%d"):format(count))
  done, text, name = stage:publish(fs.join(path, title))
  if not done then return nil, text, name end
  -- The path is listed again: a directory that another save committed meanwhile must not go.
  remove_old(stage, restarts.outdated(restart_listing.read(path) or {}, title, sequence))
  self.stages[path] = nil
  stage:discard()
  return path
end

-- Returns the states that take part; a save without any would replace a checkpoint by nothing.
local function taking_part(self)
  local list = {}
  for _, state in ipairs(self.states) do
    if not skipped(state) then list[#list + 1] = state end
  end
  return list
end

--- Saves all states, in the order in which they were made: each is synced, and written on rank 0
--- alone. Then rank 0 commits them as `checkpoint-<N>`, flushed to the disk, and removes every
--- other `checkpoint-*`. A save that fails, or raises, leaves the older checkpoints as they are.
---@return string? path the checkpoint path on rank 0; nil and nothing more: nothing was to be kept
---@return string? text
---@return string? name "EINVAL": there are no states
function Registry:save_all_states()
  if not self.states then misuse("the registry is closed; make another one") end
  if self.is_saving then misuse("a save of this registry is under way; let it end first") end
  local place, why = self:place()
  if not place then misuse(why) end
  if place.restarts < 0 then
    misuse(("%d restarts: a checkpoint of that number would never be loaded"):format(
      place.restarts))
  end
  local states = taking_part(self)
  local path = place.rank == 0 and self:save_directory(place) or nil
  if path and #states == 0 then
    return nil, path .. ": there are no states to save, so what is there stays", "EINVAL"
  end
  local function write()
    if path then
      local ready, what, kind = self:prepare(path)
      if not ready then return nil, what, kind end
    end
    for _, state in ipairs(states) do
      local done, what, kind = stage_state(self, state, path, place.rank, true)
      if not done then return nil, what, kind end
    end
    if not path then return nil end
    return commit(self, path, place.restarts)
  end
  self.is_saving = true
  local fine, saved, text, name = pcall(write)
  self.is_saving = false
  if not fine or text then abandon(self, path) end
  if not fine then error(saved, 0) end
  if text then return nil, text, name end
  return saved
end

-- ---- load ----

-- Chooses among the directories of a path. `which` tells the directory of that name from another
-- one that gets the name later.
local function look(path)
  local entries, text, name = restart_listing.read(path)
  if not entries then return nil, text, name end
  local choice = restarts.choose(entries)
  local found = fs.lstat(fs.join(path, restarts.name(choice.number)))
  choice.which = choice.number .. (found and (" %d %.9f"):format(found.inode, found.mtime) or "")
  choice.is_empty = text == 0
  return choice
end

-- Logs a choice that is odd.
local function comment(path, choice, count)
  if #choice.skipped > 0 then
    log.warn(("%s: passed over, because what follows \"checkpoint-\" is no plain number: %s")
      :format(path, table.concat(choice.skipped, ", ")))
  end
  if not restarts.is_last(choice.number, count) then
    log.warn(("%s: there is no checkpoint from the last restart, %d; loading that of restart %s")
      :format(path, count - 1, choice.number))
  end
end

-- Loads from the newest checkpoint of a path. Nil and nothing more: another replica saved since, so
-- that the chosen one is gone, or was missed in the listing.
local function load_newest(state, file, path, place, fallback)
  local choice, text, name = look(path)
  if not choice then return nil, text, name end
  if choice.is_empty then
    log.info(("no checkpoint found in %s"):format(path))
    return false
  end
  local function has_changed()
    local again = look(path)
    return again and again.which ~= choice.which
  end
  local wanted = fs.join(path, restarts.name(choice.number), file)
  if not fs.exists(wanted) and has_changed() then return nil end
  comment(path, choice, place.restarts)
  local loaded
  loaded, text, name = state_file.load(state, path, file,
    fallback and choice.order[1] and choice.order or { choice.number })
  if (loaded == false or name == "ENOENT") and has_changed() then return nil end
  return loaded, text, name
end

--- Loads one state from the newest checkpoint, on every rank.
---
--- False is the answer when there is nothing: no checkpoint path, or no file of this state in the
--- newest checkpoint. An older one is not tried, unless `fallback` asks for it, and then the log
--- says so; a state must then bear being loaded again after a load that failed half-way. What
--- `load` raises goes straight to the caller. A checkpoint path that does not exist raises: who
--- took that for a first start would write over what a missing mount hides.
---@param state ckpt.State
---@param options? { fallback?: boolean }
---@return boolean? loaded
---@return string? text
---@return string? name
function Registry:load_state(state, options)
  local file = name_of(self, state)
  options = options_of.check("load_state", options, { fallback = true })
  local place, why = self:place()
  if not place then misuse(why) end
  local path = self:load_directory(place)
  if not path then return false end
  local there, cause = fs.stat(path)
  if not there then
    misuse(cause .. "; the checkpoint path must be there before the first start")
  end
  local fallback = options.fallback
  for _ = 1, LOOKS do
    local loaded, text, name = load_newest(state, file, path, place, fallback)
    if loaded ~= nil or text then return loaded, text, name end
  end
  return nil, path .. ": each checkpoint that was chosen was removed at once: who saves here?",
    "ECONFLICT"
end

-- ---- life ----

--- Forgets the states, so that their names are free, and removes those that were staged and not
--- committed. Committed checkpoints stay.
function Registry:close()
  for _, stage in pairs(self.stages) do stage:discard() end
  self.states, self.names, self.taken, self.stages = nil, {}, {}, {}
end

local default

--- Returns the registry of states that name none. After it was closed there is a new one.
---@return ckpt.Registry
function Registry.default()
  if not default or not default.states then default = Registry() end
  return default
end

--- Returns the registry that a state is in; nil: it is in none.
---@param state any
---@return ckpt.Registry?
function Registry.of(state) return type(state) == "table" and rawget(state, HOME) or nil end

return Registry
