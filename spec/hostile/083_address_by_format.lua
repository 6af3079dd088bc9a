-- sync: error
-- The other way to an address.
return {
  api = 1,
  sync = function(e, memory)
    return "sync", ("%p"):format({})
  end,
}
