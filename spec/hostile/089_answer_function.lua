-- sync: answer
-- No data.
return {
  api = 1,
  sync = function(e, memory)
    return function() return "sync" end
  end,
}
