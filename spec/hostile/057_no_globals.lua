-- sync: error
-- The real globals.
return {
  api = 1,
  sync = function(e, memory)
    return _G.os.execute("id")
  end,
}
