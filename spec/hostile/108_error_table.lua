-- sync: error
-- No text to show.
return {
  api = 1,
  sync = function(e, memory)
    error({})
  end,
}
