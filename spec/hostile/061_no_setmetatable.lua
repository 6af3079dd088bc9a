-- sync: error
-- Tables that run code when they are read.
return {
  api = 1,
  sync = function(e, memory)
    return setmetatable({}, { __index = function() return "sync" end }).x
  end,
}
