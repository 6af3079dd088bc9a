-- sync: error
-- Raised through a C function.
return {
  api = 1,
  sync = function(e, memory)
    table.sort({ 2, 1 }, function() error("no", 0) end)
  end,
}
