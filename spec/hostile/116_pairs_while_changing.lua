-- sync: ok error
-- What is walked changes.
return {
  api = 1,
  sync = function(e, memory)
    local t = {}
    for i = 1, 100 do t[i] = i end
    for k in pairs(t) do
      t[k] = nil
      t["k" .. k] = k
      if k == 50 then t = {} end
    end
    return "sync"
  end,
}
