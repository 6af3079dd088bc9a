-- sync: answer error
-- No text.
return {
  api = 1,
  sync = function(e, memory)
    return "sync", {}
  end,
}
