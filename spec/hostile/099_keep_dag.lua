-- keep: answer ok budget error
-- A small table with a billion ways through it.
return {
  api = 1,
  keep = function()
    local t = { 1 }
    for _ = 1, 30 do t = { t, t } end
    return t
  end,
}
