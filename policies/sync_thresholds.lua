-- Saves not every checkpoint: nothing in the first moments of a job, and then one now and then.
--
--   ckpt-lua run -p sync_thresholds -o period=10m ... -- python train.py
--
-- The job tells how far it is: ckpt-lua notify training_iteration=3 time_total_s=12.5
-- A checkpoint that was left out is looked at again with each result, and the newest is saved when
-- the job ends, whatever the thresholds say.

local set = options {
  period = { type = "duration", default = "5m", help = "least time between two saves" },
  min_iter = { type = "integer", default = 2, min = 0, help = "none before this iteration" },
  min_time = { type = "duration", default = "10s", help = "... or before this much training" },
  on_checkpoint = { type = "boolean", default = false, help = "save each checkpoint all the same" },
}

return {
  api = 1,

  -- Skipped while both are below: the iteration, and the time. One of them reached is enough. Then
  -- skipped again until `period` has passed since the last save began.
  sync = when.node_sync {
    period = set.period,
    min_iter = set.min_iter,
    min_time_s = set.min_time,
    on_checkpoint = set.on_checkpoint,
  },
}
