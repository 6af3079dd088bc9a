-- sync: error
-- No wildcard at all, and each place is compared far before it fails.
return {
  api = 1,
  sync = function(e, memory)
    return ("a"):rep(60000):match(("a"):rep(30000) .. "b")
  end,
}
