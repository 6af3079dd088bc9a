-- sync: answer
-- It has no end.
return {
  api = 1,
  sync = function(e, memory)
    local t = {}
    t[1] = t
    return t
  end,
}
