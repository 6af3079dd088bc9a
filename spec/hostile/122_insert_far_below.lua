-- sync: budget
-- In C each of these would take minutes, and no hook fires there.
return {
  api = 1,
  sync = function(e, memory)
    table.insert({}, "-2147483648", 1)
    return "sync"
  end,
}
