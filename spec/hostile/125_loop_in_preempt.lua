-- on_preempt: budget
-- When there is no time at all.
return {
  api = 1,
  on_preempt = function()
    while true do end
  end,
}
