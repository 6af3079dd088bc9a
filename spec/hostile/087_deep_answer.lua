-- sync: answer
-- A table in a table in a table.
return {
  api = 1,
  sync = function(e, memory)
    local t = {}
    for _ = 1, 1000 do t = { t } end
    return t
  end,
}
