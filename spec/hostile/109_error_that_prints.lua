-- sync: error
-- An object that would run code when it is shown.
return {
  api = 1,
  sync = function(e, memory)
    error({ __tostring = function()
      while true do end
    end })
  end,
}
