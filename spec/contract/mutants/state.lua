-- Mutants of states, registries and the checkpoint manager: items 73-114, 287-292, 299.

local REGISTRY = "lua/ckpt/adaptdl/registry.lua"
local LISTING = "lua/ckpt/adaptdl/restart_listing.lua"
local RESTARTS = "lua/ckpt/adaptdl/restarts.lua"
local STAGING = "lua/ckpt/adaptdl/staging.lua"
local FILE = "lua/ckpt/adaptdl/state_file.lua"
local MANAGER = "lua/ckpt/ray/checkpoint/checkpoint_manager.lua"
local HEAP = "lua/ckpt/ray/checkpoint/score_heap.lua"

return {
  { item = 73, file = RESTARTS,
    from = [[PREFIX = "checkpoint-"]], to = [[PREFIX = "checkpoint."]] },
  { item = 74, file = REGISTRY, from = [[os.getenv "ADAPTDL_CHECKPOINT_PATH"]],
    to = [[os.getenv "ADAPTDL_PATH"]] },
  { item = 75, file = REGISTRY,
    from = [[tostring(text):match "^%s*[+-]?%d+%s*$" and tonumber(text)]],
    to = [[tonumber(text)]] },
  { item = 76, file = REGISTRY, from = [[return { path = path, restarts = count, rank = rank }]],
    to = [[self.options = { path = path, restarts = count, rank = rank }
  return self.options]] },
  { item = 77, file = REGISTRY, from = [[if self.taken[name] then]], to = [[if false then]] },
  { item = 78, file = REGISTRY, from = [[  local why = unusable(name)]],
    to = [[  self.states[#self.states + 1] = state
  local why = unusable(name)]] },
  { item = 79, file = REGISTRY,
    from = [[self.states, self.names, self.taken, self.stages = nil, {}, {}, {}]],
    to = [[self.stages = {}]] },
  { item = 80, file = "lua/ckpt/adaptdl/state.lua", from = [[function State:sync() end]],
    to = [[function State:sync() error "nothing to sync" end]] },
  { item = 81, file = REGISTRY,
    from = [[  if sync then]], to = [[  if sync or sync == false then]] },
  { item = 82, file = REGISTRY, from = [[if rank ~= 0 or not path then return true end]],
    to = [[if not path then return true end]] },
  { item = 83, file = STAGING, from = [[PREFIX = "_checkpoint."]], to = [[PREFIX = ".staging."]] },
  { item = 84, file = FILE, from = [[io.open(path, "wb")]], to = [[io.open(path, "ab")]] },
  { item = 85, file = REGISTRY, from = [[name:find("[/%z]")]], to = [[name:find("%z")]] },
  { item = 86, file = REGISTRY, from = [[if not skipped(state) then list[#list + 1] = state end]],
    to = [[if not skipped(state) then table.insert(list, 1, state) end]] },
  { item = 87, file = STAGING, from = [[(there and fs.replace_tree or fs.publish)]],
    to = [[(there and fs.replace_tree or fs.copy_tree)]] },
  { item = 88, file = RESTARTS,
    from = [[if restarts.has_prefix(entry.name) and entry.name ~= name]],
    to = [[if restarts.number(entry.name) and entry.name ~= name]] },
  { item = 89, file = RESTARTS, from = [[return name:sub(1, #PREFIX) == PREFIX]],
    to = [[return name:lower():sub(1, #PREFIX - 1) == PREFIX:sub(1, -2)]] },
  { item = 90, file = REGISTRY, from = [[if found and found.type ~= "directory" then]],
    to = [[if not found then]] },
  { item = 91, file = REGISTRY, from = [[  done, text, name = stage:publish(fs.join(path, title))]],
    to = [[  remove_old(stage, restarts.outdated(entries, title, sequence))
  done, text, name = stage:publish(fs.join(path, title))]] },
  { item = 92, file = LISTING,
    from = [[entry.sequence, entry.replaced = record.sequence, record.replaced]],
    to = [[entry.sequence = nil]] },
  { item = 93, file = REGISTRY, from = [[  return saved
]], to = [[  return saved or place.path
]] },
  { item = 94, file = REGISTRY, from = [[stage_state(self, state, path, place.rank, true)]],
    to = [[stage_state(self, state, path, place.rank, path ~= nil)]] },
  { item = 95, file = STAGING, from = [[(there and fs.replace_tree or fs.publish)]],
    to = [[fs.publish]] },
  { item = 96, file = STAGING, from = [[if there and there.type ~= "directory" then]],
    to = [[if there then]] },
  { item = 97, file = STAGING, from = [[  clear(root)
]], to = "" },
  { item = 98, file = REGISTRY, from = [[if not fine then error(saved, 0) end]],
    to = [[if not fine then return nil, tostring(saved), "EINTERNAL" end]] },
  { item = 99, file = REGISTRY, from = [[if path and #states == 0 then]],
    to = [[if not path and #states == 0 then]] },
  { item = 100, file = STAGING, from = [[local done, text, name = fs.sync_tree(self.states)]],
    to = [[local done, text, name = true, nil, nil]] },
  { item = 101, file = REGISTRY, from = [[  if not path then return false end]],
    to = [[  if not path then log.info "there is no checkpoint path" end
  if not path then return false end]] },
  { item = 102, file = REGISTRY, from = [[  if not there then]],
    to = [[  if not cause then]] },
  { item = 103, file = RESTARTS, from = [[  if #a ~= #b then return #a > #b end
]], to = "" },
  { item = 104, file = RESTARTS,
    from = [[elseif number == nil and restarts.has_prefix(entry.name) then]],
    to = [[elseif number == true then]] },
  { item = 105, file = RESTARTS, from = [[suffix:match "^[1-9]%d*$"]],
    to = [[suffix:match "^%d+$"]] },
  { item = 106, file = RESTARTS, from = [[if suffix:find "^%-[1-9]%d*$" then return false end]],
    to = [[if suffix:find "^%-[1-9]%d*$" then return suffix end]] },
  { item = 107, file = LISTING,
    from = [[if restarts.has_prefix(each) then entries[#entries + 1] = entry end]],
    to = [[if restarts.has_prefix(each) and fs.stat(fs.join(path, each)).type == "directory" then
      entries[#entries + 1] = entry
    end]] },
  { item = 108, file = RESTARTS,
    from = [[("%d"):format(count - 1)]], to = [[("%d"):format(count)]] },
  { item = 109, file = FILE, from = [[(found and found.type ~= "file")]],
    to = [[(found and found.type == "other")]] },
  { item = 110, file = REGISTRY, from = [[fallback and choice.order[1] and choice.order]],
    to = [[choice.order[1] and choice.order]] },
  { item = 111, file = FILE,
    from = [[return { raised = results[2], text = tostring(results[2]) }]],
    to = [[return { text = tostring(results[2]), name = "EIO" }]] },
  { item = 112, file = FILE, from = [[    local found, text, kind = fs.stat(path)]],
    to = [[    if not fs.exists(path) then path = fs.join(root, "_checkpoint", name) end
    local found, text, kind = fs.stat(path)]] },
  { item = 113, file = "lua/ckpt/adaptdl/ray_registry.lua",
    from = [[make_checkpoint_dir(fs.parent(directory), nil, true)]],
    to = [[make_checkpoint_dir(fs.parent(directory), nil, false)]] },
  { item = 114, file = REGISTRY, from = [[local path = self:load_directory(place)]],
    to = [[local path = place.rank == 0 and self:load_directory(place)]] },
  { item = 287, file = MANAGER, from = [[self.keep = keep == 0 and math.huge or keep]],
    to = [[self.keep = math.max(keep, 1)]] },
  { item = 288, file = MANAGER, from = [[== "min-" and -1 or 1]], to = [[== "max-" and -1 or 1]] },
  { item = 289, file = MANAGER, from = [[if worst and worst.value ~= checkpoint.value then]],
    to = [[if worst then]] },
  { item = 290, file = HEAP, from = [[worst.priority >= row.priority]],
    to = [[worst.priority > row.priority]] },
  { item = 291, file = MANAGER,
    from = [[if before and before.value == checkpoint.value then return true end]],
    to = [[if before and before == checkpoint then return true end]] },
  { item = 292, file = MANAGER, from = [[    self.newest_memory_checkpoint = checkpoint
    return true
]], to = [[    self.newest_memory_checkpoint = checkpoint
]] },
  { item = 299, file = REGISTRY, from = [[return skip and true or false]], to = [[return false]] },
}
