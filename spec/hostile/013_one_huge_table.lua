-- sync: memory
-- A table that is asked to be large at once.
return {
  api = 1,
  sync = function(e, memory)
    local rows = {}
    for i = 1, 2 ^ 20 do rows[i] = 0 end
    rows[2 ^ 26] = 1
    for i = 1, 2 ^ 20 do rows[i + 2 ^ 20] = { i } end
    return #rows > 0 and "sync" or nil
  end,
}
