-- Names that are not worth saving. They are left out wherever they are, also inside a checkpoint.
--
--   ckpt-lua run -p excludes -p default ... -- python train.py
--
-- Excludes of several policies are put together. A star is any text without a slash, a question
-- mark one letter, [a-z] one of these. Without a slash a name is meant at any depth; "./x" is x at
-- the top of the watched directory; "a/b" is that path; a slash at the end means directories; ** is
-- any number of directories.

return {
  api = 1,

  exclude = {
    -- Logs and plots that are written on and on.
    "*.log",
    "events.out.tfevents.*",
    "wandb/",
    "runs/",
    "__pycache__/",

    -- What Ray's node sync leaves out.
    "./checkpoint_-00001",
    "./checkpoint_tmp*",
    "./save_to_object*",
    "./rank_*",
    "./.lazy_checkpoint_marker",
  },
}
