-- sync: ok memory
-- A little more kept with each request: asked often it meets the cap, not the machine's.
local hoard = {}
return {
  api = 1,
  sync = function()
    for _ = 1, 20000 do hoard[#hoard + 1] = {} end
    return "sync"
  end,
}
