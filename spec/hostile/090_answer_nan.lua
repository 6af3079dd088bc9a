-- sync: answer
-- A number that is none.
return {
  api = 1,
  sync = function(e, memory)
    return 0 / 0
  end,
}
