-- sync: error
-- Functions as bytes.
return {
  api = 1,
  sync = function(e, memory)
    return string.dump(function() end)
  end,
}
