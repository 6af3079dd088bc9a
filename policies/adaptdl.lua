-- AdaptDL: rank 0 writes, into a directory whose number counts the restarts of the job.
--
--   ckpt-lua run --dir "$ADAPTDL_CHECKPOINT_PATH" --to URI -p adaptdl ... -- python train.py
--
-- AdaptDL writes all states of a job into "_checkpoint", renames that to "checkpoint-N" in one
-- step, and then removes every other "checkpoint-*": N is how often the job was restarted, not a
-- step. So the rename says that it is complete, one checkpoint is there at a time, and after a
-- restart the highest number is loaded. Only the replica with rank 0 writes; the others, which see
-- the same directory, are by-standers by themselves (docs/ranks.md).

local set = options {
  keep = { type = "integer", default = 2, min = 1, help = "newest to keep at the target" },
}

return {
  api = 1,

  -- A number and nothing else: with a "checkpoint-3.tmp" beside it AdaptDL would not load any.
  unit = "checkpoint-{step}/",

  -- What a save that died has left: AdaptDL's next one goes on in it, ckpt.Registry's, which has a
  -- name of its own for each, removes it.
  exclude = { "_checkpoint/", "_checkpoint.*/" },

  -- The rename, and nothing before it.
  complete = done.renamed(),

  -- Each is one: the next restart loads no other, and the directory of this one is removed by the
  -- next save, which must not come before this one is safe.
  queue = "newest",

  -- AdaptDL keeps one. Two: the one before, until the newest has been loaded once.
  keep = keep.last(set.keep),

  -- The highest number is loaded, whatever else is there: bring back that one alone.
  restore = keep.last(1),

  -- It holds every state there is, so when time is short the newest is all that counts.
  on_preempt = "newest",
}
