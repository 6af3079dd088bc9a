-- sync: answer
-- Almost a word.
return {
  api = 1,
  sync = function(e, memory)
    return "sink"
  end,
}
