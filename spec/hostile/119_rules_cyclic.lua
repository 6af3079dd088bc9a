-- load: syntax error
-- A rule that is part of itself.
local parts = {}
local rule = any(parts)
parts[1] = rule
return { api = 1, sync = rule }
