-- What breaks SyncConfig, the syncers and the rules of copying, one item at a time.

local DEFAULTS = "lua/ckpt/ray/sync/sync_defaults.lua"
local CONFIG = "lua/ckpt/ray/sync/sync_config.lua"
local PROCESS = "lua/ckpt/ray/sync/background_process.lua"
local BASE = "lua/ckpt/ray/sync/syncer.lua"
local BACKGROUND = "lua/ckpt/ray/sync/background_syncer.lua"
local DEFAULT = "lua/ckpt/ray/sync/default_syncer.lua"
local ARTIFACTS = "lua/ckpt/ray/sync/artifact_sync.lua"
local FILES = "lua/ckpt/store/file_transfer.lua"
local LOCK = "lua/ckpt/job/target_lock.lua"
local TRIAL = "lua/ckpt/ray/sync/trial_transfer.lua"
local FS = "lua/ckpt/prims/fs.lua"

local EXCLUDED = "return core.fs.excluded(patterns, relative_path)"
local UPLOAD = "return store.upload { dir = local_dir, uri = remote_dir, exclude = exclude }"
local RESOLVE = "local filesystem, text = store.resolve(upload_dir)"

return {
  -- Configuration
  { item = 137, file = DEFAULTS, from = "sync_period = 300", to = "sync_period = 310" },
  { item = 300, file = DEFAULTS, from = "sync_timeout = 1800", to = "sync_timeout = 1900" },
  {
    item = 140, file = CONFIG,
    from = "  sync_on_checkpoint = true,\n", to = "  sync_on_checkpoint = false,\n",
  },
  {
    item = 141, file = CONFIG,
    from = "if self:uploads() and self.syncer == false then", to = "if self.syncer == 0 then",
  },
  {
    item = 142, file = CONFIG,
    from = "if not self:uploads() and Syncer.is(self.syncer) then", to = "if false then",
  },
  {
    item = 143, file = DEFAULT,
    from = "if Syncer.is(config.syncer) then return config.syncer end",
    to = "if config.syncer then return config.syncer end",
  },
  {
    item = 144, file = DEFAULT,
    from = "sync_period = config.sync_period, sync_timeout = config.sync_timeout,",
    to = "sync_timeout = config.sync_timeout,",
  },
  {
    item = 145, file = CONFIG,
    from = [[  { "Sync on checkpoint", "sync_on_checkpoint" },]] .. "\n", to = "",
  },
  {
    item = 146, file = BASE,
    from = [[if upload_dir:sub(1, 7) == "file://" then return true end]], to = "",
  },
  {
    item = 147, file = BASE,
    from = "if filesystem and not filesystem.is_local then return true end",
    to = "if filesystem and not filesystem.is_local then return end",
  },
  {
    item = 148, file = CONFIG,
    from = "if syncer then return syncer:validate_upload_dir(self.upload_dir) end", to = "",
  },
  {
    item = 149, file = BASE,
    from = RESOLVE,
    to = RESOLVE .. "\n  if filesystem and not filesystem.is_local then\n"
      .. "    filesystem, text = store.open(upload_dir):list('') and filesystem\n  end",
  },
  {
    item = 150, file = BASE,
    from = RESOLVE,
    to = "Syncer.seen = rawget(Syncer, 'seen') or {}\n"
      .. "  local filesystem, text = Syncer.seen[upload_dir]\n"
      .. "  if not filesystem then filesystem, text = store.resolve(upload_dir) end\n"
      .. "  Syncer.seen[upload_dir] = filesystem",
  },
  {
    item = 152, file = CONFIG,
    from = "return self:uploads() and self.sync_artifacts end", to = "return self:uploads() end",
  },
  {
    item = 152, file = CONFIG,
    from = "return not self:uploads() and self.sync_on_checkpoint end",
    to = "return self.sync_on_checkpoint end",
  },

  -- BackgroundProcess
  {
    item = 153, file = PROCESS,
    from = "if self:is_running() then return false end", to = "",
  },
  { item = 154, file = PROCESS, from = "  self._started = clock.monotonic()\n", to = "" },
  {
    item = 155, file = PROCESS,
    from = [[return pack(nil, tostring((...)), "EINTERNAL")]], to = "return pack()",
  },
  {
    item = 156, file = PROCESS,
    from = "local work, result = self._job, self._result\n",
    to = "local work, result = self._job, self._result or pack(false)\n",
  },
  {
    item = 157, file = PROCESS,
    from = "left = math.max(timeout - (clock.monotonic() - self._started), 0)",
    to = "left = timeout",
  },
  {
    item = 158, file = PROCESS,
    from = "if timeout and timeout ~= 0 then", to = "if timeout then",
  },
  { item = 159, file = PROCESS, from = "      work:cancel()\n", to = "" },
  {
    item = 160, file = PROCESS,
    from = "  if self._job == work then self._job, self._result = nil, nil end\n", to = "",
  },

  -- Syncer
  {
    item = 161, file = BASE,
    from = [[local DUTIES = { "sync_up", "sync_down", "delete" }]],
    to = [[local DUTIES = { "sync_up", "sync_down" }]],
  },
  {
    item = 162, file = BASE,
    from = "(self._launches[kind][key] or -math.huge)",
    to = "(self._launches[kind][key] or 0)",
  },
  {
    item = 163, file = BASE,
    from = "or -math.huge) >= self.sync_period", to = "or -math.huge) > self.sync_period",
  },
  {
    item = 164, file = BASE,
    from = 'if not is_due(self, "up", pair(local_dir, remote_dir), now) then return end',
    to = 'if not is_due(self, "up", pair(local_dir, remote_dir), now) then return false end',
  },
  {
    item = 165, file = BASE,
    from = 'if launched then self:count_launch("up", local_dir, remote_dir, now) end',
    to = 'self:count_launch("up", local_dir, remote_dir, now)',
  },
  {
    item = 165, file = BACKGROUND,
    from = "  if waiting.from_period then\n", to = "  if false then\n",
  },
  {
    item = 166, file = BASE,
    from = "local launched, text, name = self:sync_down(remote_dir, local_dir, exclude)",
    to = "self:count_launch('down', remote_dir, local_dir, now)\n"
      .. "  local launched, text, name = self:sync_down(remote_dir, local_dir, exclude)",
  },
  {
    item = 167, file = BASE,
    from = 'if launched then self:count_launch("down", remote_dir, local_dir, now) end',
    to = 'if launched then self:count_launch("up", remote_dir, local_dir, now) end',
  },
  { item = 168, file = DEFAULTS, from = "max_retries = 3", to = "max_retries = 4" },
  { item = 168, file = BASE, from = "or max_retries < 1 then", to = "then" },
  { item = 169, file = BASE, from = "    clock.sleep(backoff_s)\n", to = "" },
  { item = 170, file = BASE, from = "if PERMANENT[name] then", to = "if false then" },
  {
    item = 170, file = BASE,
    from = "    if try == max_retries then\n",
    to = "    if try == max_retries then\n      clock.sleep(backoff_s)\n      self:retry()\n",
  },
  {
    item = 171, file = BASE,
    from = "if done or text == nil then return true end",
    to = "if done or text == nil then return true end\n"
      .. "    if name == 'ETIMEOUT' then return nil, text, name end",
  },
  { item = 172, file = BASE, from = "  self.last_sync_down_time = -math.huge\n", to = "" },

  -- BackgroundSyncer
  {
    item = 173, file = BACKGROUND,
    from = "return process ~= nil and process:is_running()\n", to = "return process ~= nil\n",
  },
  {
    item = 174, file = BACKGROUND,
    from = "if skips then return end", to = "do return end",
  },
  {
    item = 174, file = BACKGROUND,
    from = [[self.queue == "skip" or command.kind ~= "sync_up"]], to = [[self.queue == "skip"]],
  },
  {
    item = 175, file = BACKGROUND,
    from = [[if not done then log.warn("Last sync command failed: " .. text) end]],
    to = "if not done then error(text, 0) end",
  },
  {
    item = 176, file = BACKGROUND,
    from = "process:start_time() < self.sync_timeout",
    to = "process:start_time() <= self.sync_timeout",
  },
  {
    item = 177, file = BACKGROUND,
    from = "  if busy(self) then\n",
    to = "  if busy(self) and self._command.kind == command.kind then\n",
  },
  {
    item = 178, file = BACKGROUND,
    from = "start(self, command.remote_dir, command.local_dir, command.exclude)",
    to = "start(self, command.remote_dir, command.local_dir)",
  },
  {
    item = 179, file = BACKGROUND,
    from = [[if name == "ETIMEOUT" then return nil, text, name end]], to = "",
  },
  {
    item = 180, file = BACKGROUND,
    from = "if self._process and self._process:is_running() then settle(self) end", to = "",
  },
  {
    item = 181, file = BACKGROUND,
    from = "state.command, state.waiting = copy_of(self._command), copy_of(self._waiting)",
    to = "state.waiting = copy_of(self._waiting)",
  },
  {
    item = 181, file = BASE,
    from = "return clock.monotonic() - math.max(clock.now() - time, 0)", to = "return -math.huge",
  },

  -- DefaultSyncer
  {
    item = 182, file = DEFAULT,
    from = UPLOAD, to = "return store.upload { dir = local_dir, uri = remote_dir }",
  },
  {
    item = 183, file = DEFAULT,
    from = UPLOAD,
    to = "for i, p in ipairs(exclude or {}) do exclude[i] = p:gsub('^%./', '*/') end\n  " .. UPLOAD,
  },
  {
    item = 184, file = DEFAULT,
    from = UPLOAD, to = "store.delete({ uri = remote_dir }):wait()\n  " .. UPLOAD,
  },
  {
    item = 185, file = DEFAULT,
    from = "return store.delete { uri = remote_dir }",
    to = "local deletion = store.delete { uri = remote_dir }\n"
      .. "  return deletion and deletion:wait() or true",
  },
  {
    item = 186, file = DEFAULT,
    from = "if done == nil and text and not there then fs.remove_tree(local_dir) end", to = "",
  },
  {
    item = 186, file = DEFAULT,
    from = "return job.task(target_lock.hold, local_dir, function()",
    to = "return job.task(function()",
  },
  {
    item = 187, file = DEFAULT,
    from = [[RETRY_WAIT_TIME_S", "%d+", "a whole number", 1)]],
    to = [[RETRY_WAIT_TIME_S", "%d+", "a whole number", 5)]],
  },
  {
    item = 188, file = ARTIFACTS,
    from = " or self._reported == self._uploaded then", to = " then",
  },
  { item = 188, file = ARTIFACTS, from = [["./checkpoint_*", ]], to = "" },

  -- What is left out, and what is sent
  {
    item = 220, file = FS,
    from = "return core.fs.match(pattern, text)",
    to = "return core.fs.match(pattern:lower(), text:lower())",
  },
  {
    item = 221, file = FS,
    from = EXCLUDED,
    to = "for _, p in ipairs(patterns) do\n"
      .. "    if core.fs.match(p, relative_path) then return true end\n  end\n  return false",
  },
  {
    item = 225, file = FS,
    from = EXCLUDED,
    to = "for _, p in ipairs(patterns) do\n"
      .. "    if core.fs.match(p, './' .. relative_path) then return true end\n  end\n"
      .. "  return false",
  },
  {
    item = 222, file = TRIAL,
    from = "store.copy { from = from, to = copy, exclude = exclude }",
    to = "store.copy { from = from, to = copy }",
  },
  {
    item = 223, file = FILES,
    from = [[if fs.excluded(patterns, entry.path) then return "skip" end]],
    to = [[if entry.type ~= "directory" then
      for _, p in ipairs(patterns) do if fs.match(p, entry.path) then return nil end end
    end]],
  },
  {
    item = 224, file = FILES,
    from = [[if entry.type == "directory" then return fs.mkdirs(to) end
  if entry.type == "link"]],
    to = [[if entry.type == "directory" then return true end
  if entry.type == "file" then fs.mkdirs(fs.parent(to)) end
  if entry.type == "link"]],
  },
  {
    item = 226, file = FILES,
    from = "there.mtime == entry.mtime", to = "there.mtime >= entry.mtime",
  },
  {
    item = 227, file = FILES,
    from = [[(name == "ENOENT" or name == "ERETIRED")]], to = "false",
  },
  {
    item = 228, file = FILES,
    from = "if options.bytes_max and bytes > options.bytes_max then", to = "if false then",
  },
  {
    item = 229, file = FILES,
    from = "if not fs.exists(dir) then return fs.rename(tree, dir) end",
    to = "fs.remove_tree(dir)\n  do return fs.rename(tree, dir) end",
  },
  {
    item = 230, file = LOCK,
    from = "if not waited then return work_on(held, work) end",
    to = "do return work_on(held, work) end",
  },
  {
    item = 230, file = LOCK,
    from = "    if fs.exists(dir) then return true end\n", to = "    do return true end\n",
  },
}
