-- load: syntax
-- More than a function may have.
-- 300 times: local v% = %
return { api = 1 }
