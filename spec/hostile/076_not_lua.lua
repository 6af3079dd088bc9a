-- load: syntax
-- No Lua at all.
this is a policy
