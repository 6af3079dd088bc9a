-- sync: answer error ok budget
-- Tables that are large inside and empty.
return {
  api = 1,
  sync = function(e, memory)
    local hollow = {}
    for i = 1, 60000 do hollow[i .. ""] = 1 end
    for i = 1, 60000 do hollow[i .. ""] = nil end
    for i = 1, 20000 do memory[i] = hollow end
    return "sync"
  end,
}
