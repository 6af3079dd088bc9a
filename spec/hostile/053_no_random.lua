-- sync: error
-- Dice.
return {
  api = 1,
  sync = function(e, memory)
    return math.random() < 0.5 and "sync" or "skip"
  end,
}
