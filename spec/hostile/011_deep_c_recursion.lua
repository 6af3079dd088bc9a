-- sync: error
-- C's stack: gsub calls us, and we call gsub.
return {
  api = 1,
  sync = function(e, memory)
    local function down() return ("x"):gsub("x", down) end
    return down()
  end,
}
