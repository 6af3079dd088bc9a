-- sync: error syntax setting answer
-- It looks like an error of the rule library.
return {
  api = 1,
  sync = function(e, memory)
    error({ kind = "setting", text = ("x"):rep(60000) })
  end,
}
