-- sync: error
-- What was captured is compared again at each place.
return {
  api = 1,
  sync = function(e, memory)
    return ("a"):rep(60000):find("(.*)%1b")
  end,
}
