-- sync: answer error
-- It has no end.
return {
  api = 1,
  sync = function(e, memory)
    memory.me = memory
    return "sync"
  end,
}
