-- sync: error
-- Memory is not theirs to manage.
return {
  api = 1,
  sync = function(e, memory)
    collectgarbage("stop")
    return "sync"
  end,
}
