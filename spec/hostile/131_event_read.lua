-- sync: ok
-- What it is handed is copied as it is read, and is a table like any other all the same.
return {
  api = 1,
  sync = function(e, memory)
    local kept = {}
    assert(e.step == 3 and e.none == nil and e[1] == nil and #e == 0)
    e.name, e.none, e.bytes = nil, 1, "b"
    assert(e.name == nil and e.none == 1 and e.bytes == "b" and e.metrics.loss == 1)
    e.metrics.loss = nil
    assert(e.metrics.loss == nil and next(e.metrics) == nil)
    for k in pairs(e) do
      assert(type(k) == "string")
      kept[#kept + 1] = k
    end
    assert(table.concat(kept, " ") == "bytes error grace list metrics none step")
    assert(#e.list == 5 and e.list[5].name == "c-4" and next(e.list[1]) == "bytes")
    assert(select("#", unpack(e)) == 0 and e.name == nil and e.error == "IO")
    memory.e, memory.item = e, e.list[2]
    memory.item.step = nil
    return "sync"
  end,
}
