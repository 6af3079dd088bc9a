-- sync: error
-- Text as code.
return {
  api = 1,
  sync = function(e, memory)
    return loadstring("return 1")()
  end,
}
