-- sync: answer error
-- No data.
return {
  api = 1,
  sync = function(e, memory)
    memory.f = function() return "sync" end
    return "sync"
  end,
}
