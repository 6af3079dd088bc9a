-- sync: error
-- What all texts share.
return {
  api = 1,
  sync = function(e, memory)
    ("").rep = nil
    return "sync"
  end,
}
