-- load: budget
-- Before anything of it is in force.
while true do end
