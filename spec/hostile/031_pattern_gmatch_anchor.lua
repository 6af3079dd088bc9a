-- sync: error
-- In gmatch ^ is no anchor: it is a letter, and the pattern is tried from each place.
return {
  api = 1,
  sync = function(e, memory)
    for word in ("^"):rep(4000):gmatch("^.*.*b") do return word end
  end,
}
