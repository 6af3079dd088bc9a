-- load: ok memory budget answer syntax error
-- Options, very many.
local wanted = {}
for i = 1, 50000 do wanted["o" .. i] = { type = "integer", default = i, help = "x" } end
local set = options(wanted)
return { api = 1, sync = set.o1 == 1 and when.each_checkpoint() or nil }
