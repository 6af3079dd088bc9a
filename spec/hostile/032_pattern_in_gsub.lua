-- sync: error
-- The same, in gsub.
return {
  api = 1,
  sync = function(e, memory)
    return ("a"):rep(60000):gsub(".-.-.-b", "")
  end,
}
