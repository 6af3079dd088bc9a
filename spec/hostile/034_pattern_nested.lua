-- sync: error
-- Deep captures.
return {
  api = 1,
  sync = function(e, memory)
    return ("a"):find(("("):rep(300) .. "a" .. (")"):rep(300))
  end,
}
