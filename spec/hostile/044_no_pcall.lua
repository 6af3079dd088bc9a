-- sync: error
-- Nothing that could swallow the end of a budget.
return {
  api = 1,
  sync = function(e, memory)
    while true do
      pcall(function()
        while true do end
      end)
    end
  end,
}
