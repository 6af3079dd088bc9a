-- sync: ok answer
-- A megabyte of reasons.
return {
  api = 1,
  sync = function(e, memory)
    local text = ("x"):rep(60000)
    return "sync", text .. text .. text .. text
  end,
}
