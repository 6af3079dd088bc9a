-- sync: error
-- One C call, a gigabyte.
return {
  api = 1,
  sync = function(e, memory)
    return ("x"):rep(2 ^ 30)
  end,
}
