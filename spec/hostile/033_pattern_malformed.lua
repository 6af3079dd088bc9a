-- sync: error
-- A set that does not end.
return {
  api = 1,
  sync = function(e, memory)
    return ("a"):find("[a-")
  end,
}
