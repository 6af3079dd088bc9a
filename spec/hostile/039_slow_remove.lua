-- sync: budget
-- The same the other way.
return {
  api = 1,
  sync = function(e, memory)
    local rows = {}
    for i = 1, 200000 do rows[i] = i end
    while true do table.remove(rows, 1) end
  end,
}
