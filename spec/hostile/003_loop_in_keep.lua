-- keep: budget
-- Retention is asked with the whole list.
return {
  api = 1,
  keep = function()
    while true do end
  end,
}
