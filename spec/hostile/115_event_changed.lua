-- sync: ok
-- What it is handed is a copy.
return {
  api = 1,
  sync = function(e, memory)
    e.step, e.metrics, e.name = nil, nil, nil
    for k in pairs(e) do e[k] = e end
    return "sync"
  end,
}
