-- sync: ok budget
-- An order that is the worst for a quicksort with the median of three: n^2 in one C call.
return {
  api = 1,
  sync = function(e, memory)
    local list, n = {}, 20000
    local half = n / 2
    for i = 1, half do
      list[2 * i - 1] = i % 2 == 1 and i or half + i - 1
      list[2 * i] = half + i
    end
    table.sort(list)
    return "sync", "sorted"
  end,
}
