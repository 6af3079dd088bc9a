-- sync: error
-- Nothing to show.
return {
  api = 1,
  sync = function(e, memory)
    error(nil)
  end,
}
