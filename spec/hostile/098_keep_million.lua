-- keep: answer ok memory budget error
-- The same item, very often.
return {
  api = 1,
  keep = function(list)
    local out = {}
    for i = 1, 300000 do out[i] = list[1] end
    return out
  end,
}
