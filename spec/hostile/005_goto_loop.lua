-- sync: budget
-- A loop without a keyword for it.
return {
  api = 1,
  sync = function(e, memory)
    ::again::
    goto again
  end,
}
