-- sync: error
-- The separator makes it long.
return {
  api = 1,
  sync = function(e, memory)
    return ("").rep("", 60000, ("x"):rep(60000))
  end,
}
