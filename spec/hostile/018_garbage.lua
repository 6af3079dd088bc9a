-- sync: ok budget
-- Much is made and nothing kept: it must be collected, not refused.
return {
  api = 1,
  sync = function(e, memory)
    local n = 0
    for i = 1, 200 do
      local rows = {}
      for j = 1, 500 do rows[j] = { i, j } end
      n = n + #rows
    end
    return "sync", n .. " rows"
  end,
}
