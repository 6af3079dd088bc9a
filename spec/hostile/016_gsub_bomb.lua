-- sync: memory
-- A short text whose each letter becomes a long one.
return {
  api = 1,
  sync = function(e, memory)
    local part = ("y"):rep(60000)
    return (("x"):rep(60000):gsub(".", part))
  end,
}
