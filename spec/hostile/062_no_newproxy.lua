-- sync: error
-- An object with a finaliser that runs at any time.
return {
  api = 1,
  sync = function(e, memory)
    return newproxy(true)
  end,
}
