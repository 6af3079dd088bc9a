-- sync: error
-- Another stack, another hook.
return {
  api = 1,
  sync = function(e, memory)
    return coroutine.wrap(function() return "sync" end)()
  end,
}
