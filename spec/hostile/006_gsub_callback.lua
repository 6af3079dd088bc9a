-- sync: budget
-- A loop inside of a C function.
return {
  api = 1,
  sync = function(e, memory)
    local text = ("x"):gsub("x", function()
      while true do end
    end)
    return text
  end,
}
