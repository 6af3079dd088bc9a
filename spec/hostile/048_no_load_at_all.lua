-- sync: error
-- The other three.
return {
  api = 1,
  sync = function(e, memory)
    local f = load or dofile or loadfile
    return f("/etc/passwd")
  end,
}
