-- sync: error
-- The answer goes through the same descriptor.
return {
  api = 1,
  sync = function(e, memory)
    print("{}")
    return "sync"
  end,
}
