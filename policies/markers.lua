-- Checkpoints that are none, and checkpoints for the moment, told by an empty file in them.
--
--   ckpt-lua run -p markers ... -- python train.py
--
-- null: there is nothing in it to restore. It is never saved, and a job never resumes from it.
-- temp: it is there for a restore that is about to happen. It is not saved by itself. When the
--       job names it (ckpt-lua notify checkpoint=checkpoint_tmp1a2b3c), it is saved without the
--       marker, so it is an ordinary, permanent one in the store. What is temporary in the watched
--       directory goes when the job has ended well.

return {
  api = 1,

  -- The names as Ray has them. An empty file at the top of a checkpoint's directory is enough.
  markers = { null = ".null_marker", temp = ".temp_marker" },
}
