-- sync: error
-- The same.
return {
  api = 1,
  sync = function(e, memory)
    return xpcall(error, error)
  end,
}
