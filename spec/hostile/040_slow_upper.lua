-- sync: budget
-- Megabytes, again and again: few instructions, much time.
return {
  api = 1,
  sync = function(e, memory)
    local text = ("x"):rep(60000)
    for _ = 1, 5 do text = text .. text end
    while true do text = text:upper() end
  end,
}
