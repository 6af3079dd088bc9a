-- Mutants of FuncCheckpointUtil, StatusReporter, FunctionRunner and wrap_function.

local list = {}

local function mutants_of(file)
  return function(item, from, to)
    list[#list + 1] = { item = item, file = "lua/ckpt/" .. file .. ".lua", from = from, to = to }
  end
end

-- The directories of trainables.

local util = mutants_of "ray/train/trainable_util"
util(233, [[("%06d"):format(index)]], [[("%d"):format(index)]])
util(234, "  if override then", "  if false then")
util(235, [[local METADATA = ".tune_metadata"]], [[local METADATA = ".metadata"]])
util(236, "if fs.exists(fs.join(directory, TrainableUtil.MARKER)) then return directory end",
  "do return directory end")
util(268, "path = TrainableUtil.with_slash(checkpoint)", "path = checkpoint")
util(270, "local LARGE = 10e6", "local LARGE = 10e9")

local func = mutants_of "ray/train/func_checkpoint_util"
func(232, [[TEMP_MARKER = ".temp_marker"]], [[TEMP_MARKER = ".tmp_marker"]])
func(237, "TrainableUtil.make_checkpoint_dir(logdir, index, true)",
  "TrainableUtil.make_checkpoint_dir(logdir, index)")
func(238, "make_marked(logdir, -1, FuncCheckpointUtil.NULL_MARKER)",
  "make_marked(logdir, \"null\", FuncCheckpointUtil.NULL_MARKER)")
func(239, "nonce():sub(1, 6)", "nonce():sub(1, 5)")
func(240, "return fs.exists(fs.join(checkpoint_dir, FuncCheckpointUtil.NULL_MARKER))",
  "return fs.exists(checkpoint_dir)")
func(241, "  if not fs.exists(marker) then", "  if false then")
func(242, "  if done then done, text, name = fs.remove(marker) end\n", "")
func(243, "  local staging =", "  fs.remove(marker)\n  local staging =")
func(244, "follow = true", "follow = false")

-- Reports.

local reporter = mutants_of "ray/train/status_reporter"
reporter(245, "  if not self._reported then", "  if false then")
reporter(246, "  self._reported = now\n", "")
reporter(247, "for key, value in pairs(values) do result[key] = value end", "result = values")
reporter(248, "TrainableUtil.make_checkpoint_dir(self.logdir, step)",
  "TrainableUtil.make_checkpoint_dir(self.logdir, step, true)")
reporter(249, "      misuse(text)\n", "")
reporter(250, "if is_new ~= false then", "if is_new then")
reporter(251, "  self._fresh = false\n  return", "  return")
reporter(279, "TrainableUtil.make_checkpoint_dir(self.logdir, step)",
  "TrainableUtil.make_checkpoint_dir(self.logdir, 0)")
reporter(295, "self.trial_name, self.trial_id = options.trial_name, options.trial_id",
  "self.trial_name, self.trial_id = options.trial_id, options.trial_name")
reporter(296, "  local now =", "  result.done = nil\n  local now =")

local worker = mutants_of "ray/train/function_worker"
worker(255, "if not fine and value ~= StatusReporter.STOP then", "if not fine then")
worker(297, "return self._stopping == true", "return false")

-- Steps.

local runner = mutants_of "ray/train/function_runner"
runner(231, "RESULT_FETCH_TIMEOUT = 0.2", "RESULT_FETCH_TIMEOUT = 2")
runner(252, "if self._status_reporter:has_new_checkpoint() then", "if false then")
runner(253, "  session.init(self._status_reporter)\n", [[
  session.init(self._status_reporter)
  self._status_reporter:_start()
  self._worker = self:_new_worker()
  self._worker:result(true)
]])
runner(254, "local checkpoint = reporter:get_checkpoint()",
  "local checkpoint = reporter._checkpoint")
runner(256, "poll = self.RESULT_FETCH_TIMEOUT", "poll = 0")
runner(257, "    if failure then return fail(self, trial_error(failure)) end\n", "")
runner(258, "if self._worker:has_error() then", "if false then")
runner(259, "  if self._failure then return nil, self._failure.text, self._failure.name end\n", "")
runner(260, "    for key, value in pairs(self._last_result) do whole[key] = value end\n", "")
runner(293, "execute(fn) return fn(self) end", "execute(fn) fn(self) end")
runner(294, [[  error("not implemented: give your class a method _trainable_func]],
  [[  log.debug("not implemented: give your class a method _trainable_func]])

-- Programs.

local program = mutants_of "ray/train/program_worker"
program(247, "    self._report, self._waits = report, true\n",
  "    self._report, self._waits = report, true\n    report:answer()\n")
program(252, "until not report or accept(self, report)", "until true")
program(231, "linger = limits.error", "linger = 0")
program(276, "    left = left + refuse(self)\n    look", "    refuse(self)\n    look")
program(297, "report:answer(tostring(StatusReporter.STOP), { stop = true })", "report:answer()")
mutants_of "ray/train/program_runner" (254, "CKPT_RESUME = resume", "CKPT_RESUME = false")
mutants_of "job/job_command" (255, "if code == 0 then return { result } end",
  "do return { result } end")

-- Checkpoints.

runner(261, [[if checkpoint_path ~= nil and checkpoint_path ~= "" then]], "if false then")
runner(262, "FuncCheckpointUtil.mk_null_checkpoint_dir(self.logdir)",
  "TrainableUtil.make_checkpoint_dir(self.logdir, 0)")
runner(263, "state.iteration, state.timesteps_total, state.episodes_total = 0, 0, 0",
  "state.timesteps_total, state.episodes_total = 0, 0")
runner(264,
  [[if checkpoint == nil or checkpoint == "" or kind == "table" and next(checkpoint) == nil then]],
  "if checkpoint == nil then")
runner(265, "parent, text, name = TrainableUtil.make_checkpoint_dir(self.logdir, self.iteration)",
  "parent, text, name = TrainableUtil.make_checkpoint_dir(self.logdir, self.iteration, true)")
runner(266,
  "if not FuncCheckpointUtil.is_temp_checkpoint_dir(parent) then return checkpoint, parent end",
  "do return checkpoint, parent end")
runner(267, ":format(kind))", [[:format("value"))]])
runner(269, "local checkpoint, state = self._status_reporter:get_checkpoint(), self:get_state()",
  "local checkpoint, state = self._status_reporter._checkpoint, self:get_state()")
runner(271, "    own.tune_checkpoint_path = nil\n", "")
runner(272, "  if type(checkpoint) == \"table\" then\n", [[
  if FuncCheckpointUtil.is_null_checkpoint(checkpoint) then return end
  if type(checkpoint) == "table" then
]])
runner(273, "FuncCheckpointUtil.mk_temp_checkpoint_dir(self.logdir)",
  [[TrainableUtil.make_checkpoint_dir(self.logdir, "restored")]])
runner(274, "elseif FuncCheckpointUtil.is_null_checkpoint(checkpoint) then", "elseif false then")
runner(275, "table.insert(self._temporary, directory)", "self._temporary = { directory }")
runner(276, "if worker:stop() > 0 then", "if worker:stop() > 1e9 then")
runner(277, "  local done, text, name = remove_temporary(self)\n", [[
  if failure then return nil, trial_error(failure) end
  local done, text, name = remove_temporary(self)
]])
runner(278, "  return self:_restore_here(path)\n", [[
  local done, why, cause = self:restore(path)
  fs.remove_tree(directory)
  return done, why, cause
]])
runner(286, "  if type(checkpoint) == \"table\" then\n",
  "  if type(checkpoint) == \"table\" or checkpoint:find \"tune_checkpoint_path\" then\n")
runner(298, "  session.shutdown(self._status_reporter)\n", "")

-- Wrapping.

local wrap = mutants_of "ray/train/wrap_function"
wrap(280, [[return second == "reporter" and "reporter" or nil]], [[return "reporter"]])
wrap(281, [[if second == "checkpoint_dir" or second == "..." then return "checkpoint" end]], [[
  if second == "checkpoint_dir" then return "checkpoint" end
  if second == "..." then return "config" end
]])
wrap(282, "  warned = true\n", "")
wrap(283, "for i = #(mixins or {}), 1, -1 do", "for i = 1, #(mixins or {}) do")
wrap(284, "    reporter { __duplicate__ = true }\n", "")
runner(285, "if (options.checkpoint_freq or 0) ~= 0 or options.checkpoint_at_end then",
  "if options.checkpoint_at_end then")

return list
