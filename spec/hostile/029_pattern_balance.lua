-- sync: error
-- %b runs to the end from each place.
return {
  api = 1,
  sync = function(e, memory)
    return ("("):rep(60000):find("%b()%b()b")
  end,
}
