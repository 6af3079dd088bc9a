-- sync: error
-- Texts that are none.
return {
  api = 1,
  sync = function(e, memory)
    error({ kind = {}, text = 7 })
  end,
}
