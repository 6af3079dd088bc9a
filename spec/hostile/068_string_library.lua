-- sync: error
-- For the next call, and for the rule library.
return {
  api = 1,
  sync = function(e, memory)
    string.rep = function() return "owned" end
    return "sync"
  end,
}
