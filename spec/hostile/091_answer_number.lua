-- sync: answer
-- No word.
return {
  api = 1,
  sync = function(e, memory)
    return 42
  end,
}
