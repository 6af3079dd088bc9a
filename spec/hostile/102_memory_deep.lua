-- sync: answer error
-- It nearly has no end.
return {
  api = 1,
  sync = function(e, memory)
    local t = memory
    for _ = 1, 3000 do
      t.t = {}
      t = t.t
    end
    return "sync"
  end,
}
