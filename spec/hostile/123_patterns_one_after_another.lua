-- sync: budget
-- Each is admitted; a hundred of them fit between two looks of the hook at the clock.
return {
  api = 1,
  sync = function(e, memory)
    local text = ("a"):rep(4000)
    while true do text:gsub("a-b", "") end
  end,
}
