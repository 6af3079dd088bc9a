-- load: syntax error memory budget ok
-- Rules in rules in rules.
local rule = when.iterations(1)
for _ = 1, 100000 do rule = any { rule } end
return { api = 1, sync = rule }
