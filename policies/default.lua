-- The policy that `ckpt-lua run` takes if you name none.
--
-- Never seen Lua? `--` begins a comment, { } is a list or a table of names, and what the file
-- returns at its end is the policy. To change it, copy this file and name the copy: -p ./mine.lua

-- What can be set from outside: ckpt-lua run -o sync_period=5m ...
local set = options {
  sync_period = { type = "duration", default = 0, help = "least time between two saves" },
  sync_min_iter = { type = "integer", default = 0, min = 0, help = "none before this iteration" },
  sync_min_time = { type = "duration", default = 0, help = "... or this much training" },
  keep_last = { type = "integer", default = 3, min = 1, help = "newest to keep" },
  keep_in_place = {
    type = "string",
    default = "few",
    values = { "few", "all" },
    help = "of a name that is overwritten: few (the newest three, one a day, one a start) or all",
  },
  keep_daily = { type = "integer", default = 7, min = 1, help = "days of which one is kept" },
}

-- Which checkpoints would be kept at the target, and which not.
local kept = any {
  keep.last(set.keep_last),
  keep.daily(set.keep_daily),
}

return {
  api = 1,

  -- One thing alone is deleted as this file stands: of a name without a number, which a job writes
  -- again and again (last.pt, best.ckpt), the generations but the newest three and the last one
  -- of each day and of each start; "all" keeps them. Where any policy has `keep`, that decides.
  keep_in_place = set.keep_in_place,

  -- Nothing else is. Take the two dashes away, and what the rules above do not keep is deleted.
  -- Until then the rules only tell, once, what they would free.
  -- keep = kept,
  would_keep = kept,

  -- Save each checkpoint, if none of the thresholds is set. They are those of Ray's node sync:
  -- below sync_min_iter and below sync_min_time nothing is saved, and later not more often than
  -- once in sync_period. When the job ends, the newest is saved whatever they say.
  sync = when.node_sync {
    period = set.sync_period,
    min_iter = set.sync_min_iter,
    min_time_s = set.sync_min_time,
  },

  -- What a checkpoint is called. {step} is a number; a slash at the end means a directory; the
  -- first name that fits counts.
  unit = {
    "checkpoint-{step}/", -- Hugging Face
    "checkpoint_{step}/", -- accelerate
    "step-{step}/", -- torch.distributed.checkpoint
    "step_{step}/",
    "global_step{step}/", -- DeepSpeed
    "iter_{step}/", -- Megatron
    "checkpoint_[0-9]{*}/", -- Ray: the time of day
    "ep*-ba{step}-rank*.pt", -- composer
    "*step={step}-*.ckpt/", -- Lightning: sharded, and files
    "*step={step}.ckpt/",
    "*.ckpt/",
    "*step={step}-*.ckpt",
    "*step={step}.ckpt",
    "*.ckpt",
    proven "{step}/", -- Orbax. Any directory may be a number: renamed, or with a marker in it
    "checkpoint_{step}", -- Flax
    "*.keras",
    "*.h5",
    "*.ubj", -- XGBoost
    "*.cbm", -- CatBoost
    "*.cbsnapshot",
    "*.joblib",
    "*.joblib.gz",
    "*.joblib.z",
    "*.joblib.bz2",
    "*.joblib.xz",
    "*.joblib.lzma",
    "*.joblib.lz4",
    "*_{step}_steps.zip", -- Stable-Baselines3
    "*_replay_buffer_{step}_steps.pkl",
    "*_vecnormalize_{step}_steps.pkl",
    proven "*.zip", -- only if it begins as its files do; so it is with LightGBM's
    proven "*.txt",
    proven "*.snapshot_iter_{step}",
    "*.pdparams", -- PaddlePaddle
    "epoch-{step}/", -- what many write by hand
    "epoch_{step}/",
    "ckpt-{step}/",
    "ckpt_{step}/",
    "*.pt",
    "*.pth",
    "*.safetensors",
    "*.npz",
    "*.msgpack",
    "pytorch_model*.bin",
    "ckpt-{step}.*", -- TensorFlow: all files with this beginning
  },

  -- Names that are no part of a checkpoint: what frameworks call a file while they write it. These
  -- are always left out, in any policy; the list stands here to be read.
  exclude = {
    ".tmp??????", -- safetensors, inside a checkpoint
    "tmp-checkpoint-*", -- transformers 4.36 and 4.37
    "*.tmp", -- torch.distributed.checkpoint, CatBoost, and most that people write
    ".validate_storage_marker", -- Ray
    ".????????-????-????-????-????????????-*", -- Ray Tune
    "*.symlink", -- composer
    "*.orbax-checkpoint-tmp*", -- Orbax
    "*.__lock", -- tensorstore
    "checkpoint_tmp", -- Flax
    "_checkpoint", -- AdaptDL
    "tmp[a-z0-9_][a-z0-9_][a-z0-9_][a-z0-9_][a-z0-9_][a-z0-9_][a-z0-9_][a-z0-9_]", -- ignite
    "*.bak", -- CatBoost
    "tmp/", -- CatBoost
    ".nfs[0-9a-f][0-9a-f][0-9a-f][0-9a-f]*", -- removed while it was open, or put into a bin
    ".fuse_hidden*",
    ".Trash-[0-9]*",
    "*_temp/", -- TensorFlow
    "*.tempstate*",
    "checkpoint.tmp*",
  },

  -- Files above the checkpoints: what a tuner keeps beside the directories of its trials. They are
  -- no checkpoints: each is saved by itself when it changes, once a minute at most, and put back
  -- last; the last three generations are kept.
  above = {
    "tuner.pkl", -- Ray Tune, in the experiment
    "experiment_state-*.json",
    "basic-variant-state-*.json",
    "search_gen_state-*.json",
    "searcher-state-*.pkl",
  },

  -- What is saved beside each checkpoint, from the directory that it is in: files that say which
  -- one is the newest, and what a trial needs to go on. Put back last at a restore.
  with = {
    "latest", -- DeepSpeed
    "checkpoint", -- TensorFlow
    "last_checkpoint", -- mmengine, detectron2
    "latest_checkpointed_iteration.txt", -- Megatron
    "latest_checkpoint.txt", -- T5X and others
    "training_metadata.json", -- Keras
    "checkpoint_manager_snapshot.json", -- Ray Train
    "result.json", -- Ray Tune, in a trial
    "progress.csv",
    "params.json",
    "params.pkl",
    "latest-rank*.pt", -- composer: a link
  },

  -- When a checkpoint is complete: it was renamed into place; or a file that is written last is
  -- there and nothing changed for `marked`; or it is one closed file, which its structure proves
  -- whole, and nothing changed for `sound`; or all files were closed and nothing changed for
  -- `quiet`. `when` names a file beside which the marker must be there; `newer` means that a marker
  -- that is older than the data counts for nothing; `final`, that it is written when every rank has
  -- written all: nobody asks then which files the checkpoint before had.
  complete = done.known {
    quiet = "30s",
    marked = "1500ms",
    sound = "1s",
    settled = "100ms",
    markers = {
      { name = "trainer_state.json", when = "training_args.bin" }, -- Hugging Face Trainer
      { name = ".metadata", when = "__*_*.distcp", newer = true, final = true }, -- torch DCP
      { name = ".snapshot_metadata", newer = true, final = true }, -- torchsnapshot
      { name = "commit_success.txt", final = true }, -- Orbax
      { name = "_CHECKPOINT_METADATA", newer = true, final = true }, -- Orbax
      { name = "training_metadata.json", newer = true }, -- Keras
    },
  },

  -- Directories with one of these files in it are no ordinary checkpoints (Ray): with the first
  -- there is nothing to restore, so it is not saved; the second is for a restore only, and is saved
  -- when a result names it (ckpt-lua notify checkpoint=NAME).
  markers = { null = ".null_marker", temp = ".temp_marker" },

  -- Where the numbers come from that rules like keep.best look at. The first that has one counts.
  -- `own`: only a file within the checkpoint.
  metrics = {
    -- Hugging Face Trainer
    from.json("trainer_state.json", "log_history[step=global_step]", { own = true }),
    from.json("metrics/metrics", nil, { own = true }), -- Orbax, with best_fn
    from.name(), -- Lightning: epoch=3-val_loss=0.126.ckpt
    from.notify(), -- ckpt-lua notify loss=0.2
  },
}
