-- sync: ok
-- Addresses tell where things lie in memory, and are other ones in each run.
return {
  api = 1,
  sync = function(e, memory)
    local seen = tostring({}) .. tostring(error) .. ("%s"):format({})
    return seen == "tablefunctiontable" and "sync" or "skip", seen
  end,
}
