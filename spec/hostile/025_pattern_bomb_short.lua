-- sync: error
-- Few wildcards, and a long text.
return {
  api = 1,
  sync = function(e, memory)
    return ("a"):rep(60000):find(".*.*.*b")
  end,
}
