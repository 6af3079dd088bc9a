-- sync: error answer
-- The rule library reads texts with patterns of its own.
return {
  api = 1,
  sync = function(e, memory)
    return when.at_most_every(("1"):rep(60000)) and "sync"
  end,
}
