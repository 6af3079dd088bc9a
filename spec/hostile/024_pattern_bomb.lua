-- sync: error
-- Twenty wildcards: more steps than there is time.
return {
  api = 1,
  sync = function(e, memory)
    return ("a"):rep(30000):find((".-"):rep(20) .. "b")
  end,
}
