-- What breaks SyncerCallback, DurableTrainable and TrainableUtil, one item at a time.

local CALLBACK = "lua/ckpt/ray/sync/syncer_callback.lua"
local TRANSFER = "lua/ckpt/ray/sync/trial_transfer.lua"
local DURABLE = "lua/ckpt/ray/train/durable_trainable.lua"
local TRAINABLE = "lua/ckpt/ray/train/trainable.lua"
local UTIL = "lua/ckpt/ray/train/trainable_util.lua"

return {
  -- DurableTrainable
  {
    item = 115, file = DURABLE,
    from = "  self._local.init(self, config, options)\n"
      .. "  self.remote_checkpoint_dir = remote_checkpoint_dir\n"
      .. "  self.storage_client = self:create_storage_client(remote_checkpoint_dir)\n",
    to = "  self.remote_checkpoint_dir = remote_checkpoint_dir\n"
      .. "  self.storage_client = self:create_storage_client(remote_checkpoint_dir)\n"
      .. "  self._local.init(self, config, options)\n",
  },
  {
    item = 116, file = DURABLE,
    from = "self.storage_client = self:create_storage_client(remote_checkpoint_dir)",
    to = "self.storage_client = "
      .. "DurableTrainable.create_storage_client(self, remote_checkpoint_dir)",
  },
  {
    item = 119, file = DURABLE,
    from = [[  local path, text, name = self._local.save(self, checkpoint_dir)
  if not path then return nil, text, name end
  local done
  done, text, name = carry_out(self, "sync_up", self.logdir, self.remote_checkpoint_dir)
  if not done then return nil, text, name end
  return path
]],
    to = [[  local done, text, name =
    carry_out(self, "sync_up", self.logdir, self.remote_checkpoint_dir)
  if not done then return nil, text, name end
  return self._local.save(self, checkpoint_dir)
]],
  },
  {
    item = 120, file = DURABLE,
    from = "    if started and text then return nil, text, name end\n",
    to = "",
  },
  {
    item = 121, file = DURABLE,
    from = [["sync_up", self.logdir, self.remote_checkpoint_dir)]],
    to = [["sync_up", fs.parent(path), assert(self:storage_path(fs.parent(path))))]],
  },
  {
    item = 122, file = DURABLE,
    from = "if checkpoint_dir and not relative(self, checkpoint_dir) then",
    to = "if checkpoint_dir and relative(self, checkpoint_dir) then",
  },
  {
    item = 123, file = DURABLE,
    from = [[if inside:sub(1, #root + 1) == root .. "/" then]],
    to = [[if inside:sub(1, #root) == root then]],
  },
  {
    item = 124, file = DURABLE,
    from = [[  done, text, name = carry_out(self, "sync_up"]],
    to = [[  if checkpoint_dir then return path end
  done, text, name = carry_out(self, "sync_up"]],
  },
  {
    item = 125, file = DURABLE,
    from = [[  local done, text, name =
    carry_out(self, "sync_down", self.remote_checkpoint_dir, self.logdir)
  if not done then return nil, text, name end
  return self._local.restore(self, checkpoint_path)
]],
    to = [[  local done, text, name = self._local.restore(self, checkpoint_path)
  if not done then return nil, text, name end
  return carry_out(self, "sync_down", self.remote_checkpoint_dir, self.logdir)
]],
  },
  {
    item = 126, file = DURABLE,
    from = [[  local done, text, name =
    carry_out(self, "sync_down", self.remote_checkpoint_dir, self.logdir)
]],
    to = [[  if fs.exists(checkpoint_path) then
    return self._local.restore(self, checkpoint_path)
  end
  local done, text, name =
    carry_out(self, "sync_down", self.remote_checkpoint_dir, self.logdir)
]],
  },
  {
    item = 127, file = DURABLE,
    from = "  return self._local.delete_checkpoint(self, checkpoint_path)\n",
    to = "  return true\n",
  },
  {
    item = 128, file = DURABLE,
    from = "  local directory = found or directory_by_name(checkpoint_path)\n",
    to = "  if not found then return true end\n  local directory = found\n",
  },
  {
    item = 129, file = DURABLE,
    from = [[  done, text, name = carry_out(self, "delete", uri)
  if not done then return nil, text, name end
]],
    to = [[  done = self.storage_client:delete(uri)
  if not done then return nil, text, name end
]],
  },
  {
    item = 130, file = DURABLE,
    from = [[  return root .. "/" .. inside
]],
    to = [[  return root .. "/" .. fs.base(inside)
]],
  },
  {
    item = 131, file = DURABLE,
    from = [[  local inside = relative(self, path)
  if not inside then
]],
    to = [[  local inside = relative(self, path) or "../" .. fs.base(path)
  if not inside then
]],
  },
  {
    item = 132, file = DURABLE,
    from = [[  return root .. "/" .. inside
]],
    to = [[  return root .. "/" .. inside .. (path:match("/$") or "")
]],
  },
  {
    item = 133, file = TRAINABLE,
    from = [[logdir:gsub("/*$", "/")]],
    to = [[logdir:gsub("/*$", "")]],
  },
  {
    item = 134, file = DURABLE,
    from = "    if started then return true end\n",
    to = "    if started == false then return true end\n    if started then return true end\n",
  },
  {
    item = 135, file = DURABLE,
    from = [["sync_down", self.remote_checkpoint_dir, self.logdir)]],
    to = [["sync_up", self.logdir, self.remote_checkpoint_dir)]],
  },
  {
    item = 136, file = DURABLE,
    from = "DurableTrainable.uses_cloud_checkpointing = true",
    to = "DurableTrainable.uses_cloud_checkpointing = false",
  },

  -- SyncerCallback
  {
    item = 138, file = CALLBACK,
    from = "SyncerCallback.MIN_ITER, SyncerCallback.MIN_TIME = 2, 10",
    to = "SyncerCallback.MIN_ITER, SyncerCallback.MIN_TIME = 3, 10",
  },
  {
    item = 138, file = CALLBACK,
    from = "SyncerCallback.MIN_ITER, SyncerCallback.MIN_TIME = 2, 10",
    to = "SyncerCallback.MIN_ITER, SyncerCallback.MIN_TIME = 2, 9",
  },
  {
    item = 139, file = CALLBACK,
    from = [[  "./save_to_object*",
  "./rank_*",
]],
    to = [[  "./rank_*",
  "./save_to_object*",
]],
  },
  {
    item = 189, file = "lua/ckpt/ray/sync/sync_defaults.lua",
    from = "  if number then return number end\n",
    to = "  if true then return number or default end\n",
  },
  {
    item = 190, file = CALLBACK,
    from = "if reached[1] < self.min_iter and reached[2] < self.min_time then",
    to = "if reached[1] < self.min_iter or reached[2] < self.min_time then",
  },
  {
    item = 191, file = CALLBACK,
    from = "return clock.monotonic() - last >= self.sync_period",
    to = "return clock.monotonic() - last > self.sync_period",
  },
  {
    item = 192, file = CALLBACK,
    from = "local reached = self._reached[id] or { 0, 0 }",
    to = "local reached = self._reached[id] or { self.min_iter, self.min_time }",
  },
  {
    item = 193, file = CALLBACK,
    from = "tonumber(result.training_iteration) or self.min_iter,",
    to = "tonumber(result.training_iteration) or 0,",
  },
  {
    item = 193, file = CALLBACK,
    from = "tonumber(result.time_total_s) or self.min_time,",
    to = "tonumber(result.time_total_s) or 0,",
  },
  {
    item = 194, file = CALLBACK,
    from = "  self._reached[trial.id] = {\n"
      .. "    tonumber(result.training_iteration) or self.min_iter,",
    to = "  local last = self._reached[trial.id] or { 0, 0 }\n  self._reached[trial.id] = {\n"
      .. "    math.max(last[1], tonumber(result.training_iteration) or self.min_iter),",
  },
  {
    item = 195, file = CALLBACK,
    from = "if not self.enabled or trial.uses_cloud_checkpointing then return false end",
    to = "if not self.enabled then return false end",
  },
  {
    item = 195, file = CALLBACK,
    from = "if not self.enabled or trial.uses_cloud_checkpointing then return false end",
    to = "if trial.uses_cloud_checkpointing then return false end",
  },
  {
    item = 196, file = CALLBACK,
    from = "  local process = process_of(self, id)\n",
    to = "  if not force and not is_due(self, id) then return false end\n"
      .. "  local process = process_of(self, id)\n",
  },
  {
    item = 197, file = CALLBACK,
    from = "if not force and (process:is_running() or not is_due(self, id)) then",
    to = "if not force and not is_due(self, id) then",
  },
  {
    item = 198, file = CALLBACK,
    from = "if not force and (process:is_running() or not is_due(self, id)) then",
    to = "if process:is_running() or not is_due(self, id) then",
  },
  {
    item = 199, file = CALLBACK,
    from = "  if not source then return false end\n",
    to = "  if not source then source = trial.logdir end\n",
  },
  {
    item = 199, file = CALLBACK,
    from = "  if source then return source end\n",
    to = "",
  },
  {
    item = 200, file = CALLBACK,
    from = [[  check(trial, "on_trial_start")
  self._sources[trial.id] = nil
]],
    to = [[  check(trial, "on_trial_start")
]],
  },
  {
    item = 201, file = CALLBACK,
    from = [[  if text then log_failure(id, "previous", text) end]],
    to = [[  return text]],
  },
  {
    item = 202, file = CALLBACK,
    from = [[  if text then log_failure(id, "previous", text) end]],
    to = [[  if text and text:find("nil value") then error(text) end]],
  },
  {
    item = 202, file = CALLBACK,
    from = "      if process then finish_previous(self, id, process) end\n",
    to = "",
  },
  {
    item = 203, file = CALLBACK,
    from = "process:start(source, trial.logdir, SyncerCallback.EXCLUDE)",
    to = "process:start(source, trial.logdir, SyncerCallback.EXCLUDE, 2 ^ 30)",
  },
  {
    item = 204, file = CALLBACK,
    from = "  self._synced[id] = self._synced_before[id]\n",
    to = "",
  },
  {
    item = 205, file = CALLBACK,
    from = [[if text and name ~= "EINTERNAL" then log_failure(id, "current", text) end
  return true, text, name]],
    to = [[if text and name ~= "EINTERNAL" then return false, text, name end
  return true, text, name]],
  },
  {
    item = 206, file = CALLBACK,
    from = "return (sync(self, trial, false, false))",
    to = "return (sync(self, trial, false, true))",
  },
  {
    item = 207, file = CALLBACK,
    from = "local started = sync(self, trial, true, false)",
    to = "local started = sync(self, trial, false, false)",
  },
  {
    item = 208, file = CALLBACK,
    from = "    process:stop()\n  elseif process then",
    to = "    self._removing[trial.id] = true\n    return\n  elseif process then",
  },
  {
    item = 209, file = CALLBACK,
    from = [[if rawget(checkpoint, "memory") then return false end]],
    to = [[if rawget(checkpoint, "memory") then return sync(self, trial, true, true) end]],
  },
  {
    item = 210, file = CALLBACK,
    from = "sync(self, trial, trial.sync_on_checkpoint ~= false, true)",
    to = "sync(self, trial, true, true)",
  },
  {
    item = 211, file = CALLBACK,
    from = "  if text then\n    return nil, (\"Trial %s: checkpoint",
    to = "  if false then\n    return nil, (\"Trial %s: checkpoint",
  },
  {
    item = 211, file = CALLBACK,
    from = "if not started or fs.exists(path) then return started end",
    to = "if true then return started end",
  },
  {
    item = 212, file = CALLBACK,
    from = "if not started or fs.exists(path) then return started end",
    to = "if fs.exists(path) then return started end",
  },
  {
    item = 213, file = CALLBACK,
    from = "if not process or not process:is_running() then",
    to = "if true then",
  },
  {
    item = 214, file = CALLBACK,
    from = "  self._reached[id], self._sources[id] = nil, nil\n",
    to = "  self._sources[id] = nil\n",
  },
  {
    item = 214, file = CALLBACK,
    from = "  self._synced[id], self._synced_before[id] = nil, nil\n",
    to = "",
  },
  {
    item = 215, file = CALLBACK,
    from = [[    if not done then
      lines[#lines + 1] =]],
    to = [[    if not done and name ~= "EINTERNAL" then
      lines[#lines + 1] =]],
  },
  {
    item = 216, file = CALLBACK,
    from = "  if not done then log.error(text) end\n",
    to = "  if not done then error(text) end\n",
  },
  {
    item = 217, file = CALLBACK,
    from = "  self:_forget_all()\n  self.enabled, self.sync_period = state",
    to = "  self._synced, self._sources = nil, nil\n  self.enabled, self.sync_period = state",
  },
  {
    item = 219, file = TRANSFER,
    from = "  if source and source == target then return true end\n",
    to = "",
  },
  {
    item = 219, file = TRANSFER,
    from = "    return fs.replace_tree(copy, to)\n",
    to = "    return store.copy({ from = copy, to = to, merge = true }):wait()\n",
  },

  -- TrainableUtil
  {
    item = 233, file = UTIL,
    from = [[("%06d"):format(index)]],
    to = [[("%05d"):format(index)]],
  },
  {
    item = 234, file = UTIL,
    from = "  if override then\n",
    to = "  if override == nil then\n",
  },
  {
    item = 235, file = UTIL,
    from = "function TrainableUtil.metadata_path(path) return TrainableUtil.with_slash(path)",
    to = "function TrainableUtil.metadata_path(path) return (path:gsub('/$', ''))",
  },
  {
    item = 236, file = UTIL,
    from = "if fs.exists(fs.join(directory, TrainableUtil.MARKER)) then return directory end",
    to = "if directory then return directory end",
  },
  {
    item = 268, file = UTIL,
    from = "elseif not begins_with(checkpoint, parent) then",
    to = "elseif checkpoint == parent then",
  },
}
