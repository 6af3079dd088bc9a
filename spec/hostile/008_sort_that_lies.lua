-- sync: ok
-- A comparison that says yes to everything: Lua's own sort runs out of the table.
return {
  api = 1,
  sync = function(e, memory)
    local list = {}
    for i = 1, 1000 do list[i] = i end
    table.sort(list, function() return true end)
    return "sync", "sorted"
  end,
}
