-- exclude: budget
-- What one checkpoint is saved without.
return {
  api = 1,
  exclude = function()
    while true do end
  end,
}
