-- sync: error
-- The same.
return {
  api = 1,
  sync = function(e, memory)
    table.sort = nil
    return "sync"
  end,
}
