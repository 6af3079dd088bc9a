-- sync: budget
-- A comparison that does not come back.
return {
  api = 1,
  sync = function(e, memory)
    table.sort({ 3, 2, 1 }, function()
      while true do end
    end)
  end,
}
