-- on_error: answer ok
-- Seconds that are none.
return {
  api = 1,
  on_error = function() return "retry", 1 / 0 end,
}
