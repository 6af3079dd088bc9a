-- Deletes old checkpoints at the target, and keeps those that any of these rules wants.
--
--   ckpt-lua run -p retention -o last=5 -o metric=eval_loss ... -- python train.py
--   ckpt-lua plan URI -p retention        shows what would go, and why; deletes nothing
--
-- Whatever stands here, the engine itself never deletes the newest, the one the job resumed from, a
-- pinned one, or more than --max-delete at once; what goes can be read for --grace-delete more.

local set = options {
  last = { type = "integer", default = 3, min = 1, help = "newest to keep" },
  every = { type = "integer", default = 0, min = 0, help = "keep each N-th step; 0: do not" },
  days = { type = "integer", default = 7, min = 0, help = "one for each of so many days" },
  weeks = { type = "integer", default = 4, min = 0, help = "one for each of so many weeks" },
  metric = { type = "string", default = "", help = "keep the best by this; empty: do not" },
  best = { type = "integer", default = 2, min = 1, help = "how many of the best" },
  mode = { type = "string", default = "min", values = { "min", "max" }, help = "what is good" },
}

-- The rules, one below the other; #rules + 1 is the next free place.
local rules = { keep.last(set.last) }
if set.every > 0 then rules[#rules + 1] = keep.every_steps(set.every) end
if set.days > 0 then rules[#rules + 1] = keep.daily(set.days) end
if set.weeks > 0 then rules[#rules + 1] = keep.weekly(set.weeks) end
if set.metric ~= "" then rules[#rules + 1] = keep.best(set.metric, set.best, set.mode) end

return {
  api = 1,
  keep = any(rules),
}
