-- sync: budget
-- The plainest one.
return {
  api = 1,
  sync = function(e, memory)
    while true do end
  end,
}
