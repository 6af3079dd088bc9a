-- sync: error
-- C takes a text for a number; the way to this one has two billion steps.
return {
  api = 1,
  sync = function(e, memory)
    local rows = { 1, 2, 3 }
    table.insert(rows, "2", "x")
    assert(#rows == 4 and rows[2] == "x" and table.remove(rows, "1") == 1)
    return table.insert({}, "nan", 1)
  end,
}
