-- sync: error
-- Modules that are loaded.
return {
  api = 1,
  sync = function(e, memory)
    return package.loaded.os.execute("id")
  end,
}
