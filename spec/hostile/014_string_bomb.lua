-- sync: memory
-- Twice as long each time.
return {
  api = 1,
  sync = function(e, memory)
    local text = "x"
    while true do text = text .. text end
  end,
}
