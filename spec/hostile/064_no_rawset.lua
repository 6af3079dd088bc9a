-- sync: error
-- Around what is frozen.
return {
  api = 1,
  sync = function(e, memory)
    rawset(string, "rep", nil)
    return "sync"
  end,
}
