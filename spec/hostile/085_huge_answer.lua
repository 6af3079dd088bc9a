-- sync: answer
-- Megabytes instead of a word.
return {
  api = 1,
  sync = function(e, memory)
    local text = ("x"):rep(60000)
    for _ = 1, 5 do text = text .. text end
    return text
  end,
}
