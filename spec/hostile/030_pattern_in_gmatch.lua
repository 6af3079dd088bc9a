-- sync: error
-- The other doors to the same room.
return {
  api = 1,
  sync = function(e, memory)
    for word in ("a"):rep(60000):gmatch(".-.-.-b") do return word end
  end,
}
