-- keep: answer ok error
-- Items that nobody asked about.
return {
  api = 1,
  keep = function() return { { name = "x" }, { name = "y" } } end,
}
