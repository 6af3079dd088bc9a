-- sync: answer error
-- A key that is no text.
return {
  api = 1,
  sync = function(e, memory)
    memory[{}] = 1
    memory[true] = 2
    return "sync"
  end,
}
