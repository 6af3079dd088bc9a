-- sync: error
-- More results than a stack has room for.
return {
  api = 1,
  sync = function(e, memory)
    return unpack({}, 1, 1e7)
  end,
}
