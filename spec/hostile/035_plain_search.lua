-- sync: ok error memory
-- Two long texts, compared at each place; four billion steps if nobody looks.
return {
  api = 1,
  sync = function(e, memory)
    local text = ("a"):rep(60000)
    for _ = 1, 5 do text = text .. text end
    return (text:find(text:sub(1, #text / 2) .. "b", 1, true)) and "sync"
  end,
}
