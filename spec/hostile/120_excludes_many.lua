-- load: ok memory budget answer
-- Data, very much of it.
local globs = {}
for i = 1, 300000 do globs[i] = "a" .. i end
return { api = 1, exclude = globs }
