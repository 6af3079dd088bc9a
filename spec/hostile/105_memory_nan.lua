-- sync: answer error
-- A number that is none.
return {
  api = 1,
  sync = function(e, memory)
    memory.n = 0 / 0
    return "sync"
  end,
}
