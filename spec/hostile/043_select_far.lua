-- sync: error
-- A negative index that is too far.
return {
  api = 1,
  sync = function(e, memory)
    return select(-1e9, 1, 2)
  end,
}
