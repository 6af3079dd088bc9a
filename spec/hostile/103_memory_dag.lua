-- sync: answer error budget
-- Small in memory, large in print.
return {
  api = 1,
  sync = function(e, memory)
    local t = { 1 }
    for _ = 1, 30 do t = { t, t } end
    memory.t = t
    return "sync"
  end,
}
