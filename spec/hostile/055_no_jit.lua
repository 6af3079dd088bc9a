-- sync: error
-- With the JIT on no loop could be stopped.
return {
  api = 1,
  sync = function(e, memory)
    jit.on()
    while true do end
  end,
}
