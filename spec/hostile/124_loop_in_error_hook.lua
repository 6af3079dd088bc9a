-- on_error: budget
-- When something is wrong already.
return {
  api = 1,
  on_error = function()
    while true do end
  end,
}
