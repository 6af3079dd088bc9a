-- Saves when Ray Tune would fetch the directory of a trial, and leaves out what that leaves out.
--
--   ckpt-lua run --dir results/trial -p ray_tune -o period=1m ... -- python train.py
--
-- The job tells how far it is: ckpt-lua notify training_iteration=3 time_total_s=12.5
-- Nothing is saved in the first moments of a trial, then not more often than once in a period. Each
-- checkpoint is saved at once all the same, unless on_checkpoint=false, and the newest at the end.

local set = options {
  period = { type = "duration", default = "5m", help = "least time between two saves" },
  min_iter = { type = "integer", default = 2, min = 0, help = "none before this iteration" },
  min_time = { type = "duration", default = "10s", help = "... or before this much training" },
  on_checkpoint = { type = "boolean", default = true, help = "save each checkpoint all the same" },
}

return {
  api = 1,

  -- Skipped while both are below: the iteration, and the time. Then once in `period`.
  sync = when.node_sync {
    period = set.period,
    min_iter = set.min_iter,
    min_time_s = set.min_time,
    on_checkpoint = set.on_checkpoint,
  },

  -- At the top of the trial's directory, with all that is below: the checkpoint that is none, those
  -- for a restore, objects, what the other ranks write, a mark of its own.
  exclude = {
    "./checkpoint_-00001",
    "./checkpoint_tmp*",
    "./save_to_object*",
    "./rank_*",
    "./.lazy_checkpoint_marker",
  },
}
