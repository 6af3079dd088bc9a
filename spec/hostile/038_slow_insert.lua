-- sync: budget
-- Each call moves all rows.
return {
  api = 1,
  sync = function(e, memory)
    local rows = {}
    for i = 1, 200000 do rows[i] = i end
    while true do table.insert(rows, 1, 0) end
  end,
}
