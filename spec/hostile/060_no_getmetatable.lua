-- sync: error
-- What is behind a rule.
return {
  api = 1,
  sync = function(e, memory)
    return getmetatable(keep).__index
  end,
}
