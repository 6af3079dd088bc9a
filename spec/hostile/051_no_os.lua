-- sync: error
-- Programs.
return {
  api = 1,
  sync = function(e, memory)
    return os.execute("id")
  end,
}
