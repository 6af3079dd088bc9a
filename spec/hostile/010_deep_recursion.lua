-- sync: error
-- Lua's stack.
return {
  api = 1,
  sync = function(e, memory)
    local function down(n) return 1 + down(n + 1) end
    return down(0)
  end,
}
