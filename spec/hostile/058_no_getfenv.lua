-- sync: error
-- Other functions' globals.
return {
  api = 1,
  sync = function(e, memory)
    return getfenv(0).os.execute("id")
  end,
}
