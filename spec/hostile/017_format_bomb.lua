-- sync: memory
-- Padding, a thousand times.
return {
  api = 1,
  sync = function(e, memory)
    local part = ("%99d"):rep(650)
    local numbers = {}
    for i = 1, 650 do numbers[i] = i end
    local text = ""
    while true do text = text .. part:format(unpack(numbers)) end
  end,
}
