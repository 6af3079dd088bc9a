-- load: ok memory budget syntax
-- Rules, very many.
local rules = {}
for i = 1, 200000 do rules[i] = when.iterations(i) end
return { api = 1, sync = any(rules) }
