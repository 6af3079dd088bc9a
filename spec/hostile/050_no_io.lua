-- sync: error
-- Files.
return {
  api = 1,
  sync = function(e, memory)
    return io.open("/etc/passwd"):read("*a")
  end,
}
