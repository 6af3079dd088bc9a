-- sync: budget ok
-- next() in order is slow in a large table; it has to be counted.
return {
  api = 1,
  sync = function(e, memory)
    local rows = {}
    for i = 1, 5000 do rows["k" .. i] = i end
    local key
    repeat key = next(rows, key) until key == nil
    return "sync"
  end,
}
