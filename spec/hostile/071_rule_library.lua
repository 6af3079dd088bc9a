-- sync: error
-- The same.
return {
  api = 1,
  sync = function(e, memory)
    keep.last = function() return nil end
    return "sync"
  end,
}
