-- sync: error
-- The same.
return {
  api = 1,
  sync = function(e, memory)
    math.huge = 1
    return "sync"
  end,
}
