-- sync: error
-- Each "?" is tried both ways.
return {
  api = 1,
  sync = function(e, memory)
    return ("a"):rep(40):find(("a?"):rep(40) .. ("a"):rep(40))
  end,
}
