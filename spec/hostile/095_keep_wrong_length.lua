-- keep: answer ok error
-- Another list than it was asked about.
return {
  api = 1,
  keep = function() return { true } end,
}
