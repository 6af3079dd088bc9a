-- sync: error
-- An empty text, very often: a loop in C that makes nothing.
return {
  api = 1,
  sync = function(e, memory)
    return (""):rep(2 ^ 52)
  end,
}
